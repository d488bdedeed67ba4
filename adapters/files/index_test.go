package files

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// An index that is made anew must not lose what is written meanwhile. Both ways in which that could happen are tried
// step by step.
func TestIndexMadeAnewLosesNothing(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*Home, func(line string) int) {
		h, err := Open(Config{Dir: filepath.Join(t.TempDir(), "home")})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		r, err := ledger.New(ledger.Key{Project: "p", Lineage: "l"}, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: h.Instances().Self()})
		if err == nil {
			err = h.Ledger().Create(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return h, func(line string) int {
			b, err := os.ReadFile(filepath.Join(h.Dir(), "ledger", indexName))
			if err != nil {
				t.Fatal(err)
			}
			return bytes.Count(b, []byte(line))
		}
	}
	t.Run("appended while the records are read", func(t *testing.T) {
		t.Parallel()
		h, count := open(t)
		x := h.records.index
		old, err := h.records.dir.Stat(indexName)
		if err != nil {
			t.Fatal(err)
		}
		_, b, err := x.scan(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		x.append([]byte("1 2 3 meanwhile {}\n"))
		x.install(b, old)
		if n := count("meanwhile"); n != 1 {
			t.Errorf("the line is there %d times", n)
		}
	})
	t.Run("made anew between the line and the write", func(t *testing.T) {
		t.Parallel()
		h, count := open(t)
		x := h.records.index
		n := x.note("meanwhile", []byte("{}"))
		n.before(durable.Info{Ino: 1, Size: 2, MTime: 3})
		if _, _, err := x.rebuild(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if n := count("meanwhile"); n != 0 {
			t.Fatalf("before the write was made the line is there %d times", n)
		}
		n.after()
		if n := count("meanwhile"); n != 1 {
			t.Errorf("the line is there %d times", n)
		}
	})
}

// TestPollIsACorrectSlowPath watches without the kernel's help.
func TestPollIsACorrectSlowPath(t *testing.T) {
	t.Parallel()
	h, err := Open(Config{Dir: filepath.Join(t.TempDir(), "home")})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, stop := context.WithCancel(t.Context())
	wake, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- h.box.poll(ctx, wake, time.Millisecond) }()
	if err := h.Doorbell().Ring(t.Context(), doorbell.Note{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	<-wake
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// FuzzUnseal looks for bytes that are taken for a sealed body and are none.
func FuzzUnseal(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(seal([]byte(`{"schema":1}`)))
	f.Add(durable.Pad(seal([]byte("x"))))
	f.Add([]byte(`{"schema":2}`))
	f.Add(bytes.Replace(seal([]byte(`{"schema":1}`)), []byte(sealMiddle), []byte("000000000"), 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		body, bad := unseal(b)
		if bad == nil && !bytes.Equal(seal(body), bytes.TrimRight(b, " \n")) {
			t.Fatalf("%q is taken for %q", b, body)
		}
		if bad != nil && bad.Torn == bad.Newer {
			t.Fatalf("%q is %+v", b, bad)
		}
		if got, bad := unseal(durable.Pad(seal(b))); bad != nil || !bytes.Equal(got, b) {
			t.Fatalf("%q comes back as %q, %v", b, got, bad)
		}
		if _, name, _, ok := parseIndexLine(b); ok && name == "" && len(b) < 7 {
			t.Fatalf("%q is a line of the index", b)
		}
	})
}
