package framelog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// written makes a log with four blocks of two records each and says where they begin.
func written(t testing.TB, d durable.Dir) (blocks []int64) {
	t.Helper()
	l := mustOpen(t, small(d))
	for i := range 4 {
		p, ticket, err := l.Add(fmt.Append(nil, "a", i))
		if err == nil {
			_, ticket, err = l.Add(fmt.Append(nil, "b", i))
		}
		if err == nil {
			err = l.Wait(context.Background(), ticket)
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, p.Block)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return blocks
}

func flip(t testing.TB, d durable.Dir, at int64) {
	t.Helper()
	f, err := d.Overwrite("events")
	b := make([]byte, 1)
	if err == nil {
		_, err = f.ReadAt(b, at)
	}
	if err == nil {
		b[0] ^= 0x40
		_, err = f.WriteAt(b, at)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDamageIsReadOnlyUntilRepaired(t *testing.T) {
	t.Parallel()
	d := dir(t, &faultfs.Disk{})
	blocks := written(t, d)
	flip(t, d, blocks[1]+30)

	_, err := Open(small(d))
	var damage *DamageError
	if !errors.As(err, &damage) || damage.At != blocks[1] || damage.Next != blocks[2] {
		t.Fatalf("opening a damaged log: %v", err)
	}
	r, err := Read(d, "events")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := r.Next(func(e Entry) bool { got = append(got, string(e.Record)); return true }); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, []string{"a0", "b0"}) || !errors.As(r.Damage(), &damage) {
		t.Errorf("a reader saw %q, damage %v", got, r.Damage())
	}

	gaps, err := Repair(d, "events", "an operator")
	if err != nil || len(gaps) != 1 || gaps[0] != (Gap{Block: blocks[1], Size: blocks[2] - blocks[1], Lost: 2}) {
		t.Fatalf("repair: %+v, %v", gaps, err)
	}
	l := mustOpen(t, small(d))
	if got := all(t, l); !slices.Equal(got, []string{"a0", "b0", "gap of 2", "a2", "b2", "a3", "b3"}) {
		t.Errorf("after the repair: %q", got)
	}
	if l.Records() != 8 {
		t.Errorf("%d records", l.Records())
	}
	kept, _, err := durable.ReadFile(d, fmt.Sprint("events.damage-", blocks[1]), 1<<20)
	if err != nil || !bytes.Contains(kept, []byte("b1")) {
		t.Errorf("the damaged bytes were not kept: %q, %v", kept, err)
	}
	if _, err := add(l, "on"); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if gaps, err := Repair(d, "events", "an operator"); err != nil || len(gaps) != 0 {
		t.Errorf("repairing a sound log: %v, %v", gaps, err)
	}
}

// A bad last block was acknowledged or not, nobody can know: by the order of writing it is the one that was never
// finished.
func TestLastBlockIsTorn(t *testing.T) {
	t.Parallel()
	d := dir(t, &faultfs.Disk{})
	blocks := written(t, d)
	flip(t, d, blocks[3]+30)
	l := mustOpen(t, small(d))
	if got := all(t, l); len(got) != 6 || l.Torn() == 0 {
		t.Errorf("%q, torn %d", got, l.Torn())
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if l = mustOpen(t, small(d)); l.Torn() != 0 {
		t.Errorf("%d torn bytes were left for the next one", l.Torn())
	}
}

func TestStrangeFilesAreRefused(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"too short":           "mlg",
		"not begin as a log":  strings.Repeat("x", 100),
		"its head is damaged": string(magic[:]) + strings.Repeat("\x00", 100),
		"newer version":       string(magic[:7]) + "\x02" + strings.Repeat("\x00", 100),
	} {
		d := dir(t, &faultfs.Disk{})
		if err := durable.Replace(d, ".e", "events", []byte(content), nil); err != nil {
			t.Fatal(err)
		}
		_, err := Open(small(d))
		_, err2 := Read(d, "events")
		for _, err := range []error{err, err2} {
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if b, _, err := durable.ReadFile(d, "events", 1<<20); err != nil || string(b) != content {
			t.Errorf("%s: the file was changed: %v", name, err)
		}
	}
	if _, _, err := mustOpen(t, small(dir(t, &faultfs.Disk{}))).Add(make([]byte, MaxRecord+1)); err == nil {
		t.Error("a record over the limit was taken")
	}
	d := dir(t, &faultfs.Disk{})
	if _, err := Repair(d, "nothing", "me"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("repairing nothing: %v", err)
	}
}

// Whatever bytes are changed: reading ends, and no record comes back that was not written.
func FuzzDamage(f *testing.F) {
	f.Add(uint16(100), []byte("x"))
	f.Add(uint16(64), []byte("rec1\xff\xff\xff\x7f"))
	f.Add(uint16(64), []byte("gap1\x10\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Add(uint16(0), []byte("mlgfram\x02"))
	var disk faultfs.Disk
	written(f, dir(f, &disk))
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		d := dir(t, disk.Boot(faultfs.Survival{}))
		file, err := d.Overwrite("events")
		if err == nil {
			_, err = file.WriteAt(patch, int64(at))
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Repair(d, "events", "me"); err != nil {
			return
		}
		l, err := Open(small(d))
		if err != nil {
			t.Fatalf("after a repair: %v", err)
		}
		for _, r := range all(t, l) {
			if !strings.HasPrefix(r, "gap of") && (len(r) != 2 || !strings.ContainsAny(r[:1], "ab") || r[1] < '0' || r[1] > '3') {
				t.Errorf("a record %q was never written", r)
			}
		}
		if _, err := add(l, "a3"); err != nil {
			t.Error(err)
		}
	})
}
