package sessionlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func mustOpen(t testing.TB, c Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	sessiontest.Run(t, func(t *testing.T) session.Store {
		return mustOpen(t, Config{Path: filepath.Join(t.TempDir(), "sessions.log")})
	}, sessiontest.Sheet{Watches: true, Reopen: func(t *testing.T, s session.Store) session.Store {
		path := s.(*Store).c.Path
		if err := s.(*Store).Close(); err != nil {
			t.Fatal(err)
		}
		return mustOpen(t, Config{Path: path})
	}})
}

func now() stamp.Time { return stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func say(id string) session.Draft { return session.Say(now(), id, json.RawMessage(`"`+id+`"`)) }

// onDisk is a log on a disk in memory.
func onDisk(d durable.FS) Config {
	return Config{Path: "/home/sessions.log", Holder: "this test", Now: now, fs: d}
}

// ids are what a session holds, in order.
func ids(t testing.TB, s *Store, name string) (out []string) {
	t.Helper()
	for after := uint64(0); ; {
		page, err := s.Read(context.Background(), name, after, 3)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			return out
		}
		for _, e := range page {
			out = append(out, fmt.Sprint(e.Seq, ":", e.ID))
			after = e.Seq
		}
	}
}

func TestOneWriterAndReadersBesideIt(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	if _, err := Read(onDisk(&disk)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	w := mustOpen(t, onDisk(&disk))
	r, err := Read(onDisk(&disk))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	_, err = Open(onDisk(&disk))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Holder != "this test" {
		t.Errorf("a second writer: %v", err)
	}
	for _, id := range []string{"a", "b", "c", "d"} {
		if _, err := w.Append(t.Context(), "s", []session.Draft{say(id)}); err != nil {
			t.Fatal(err)
		}
		if got := ids(t, r, "s"); len(got) == 0 || !strings.HasSuffix(got[len(got)-1], id) {
			t.Errorf("after %s the reader sees %q", id, got)
		}
	}
	if _, err := r.Append(t.Context(), "s", []session.Draft{say("e")}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an append by a reader: %v", err)
	}
	if h, err := r.Head(t.Context(), "s"); err != nil || h.Last != 4 {
		t.Errorf("the reader's head: %+v, %v", h, err)
	}
	if e, ok, err := r.Find(t.Context(), "s", "c"); err != nil || !ok || e.Seq != 3 {
		t.Errorf("the reader finds %+v, %t, %v", e, ok, err)
	}
	if l, err := r.List(t.Context(), "", 0); err != nil || len(l) != 1 {
		t.Errorf("the reader lists %d sessions, %v", len(l), err)
	}
}

// story appends batches of two to three sessions and reports each that was acknowledged.
func story(s *Store, acknowledged func(name, id string)) error {
	for i := range 5 {
		for _, name := range []string{"x", "y", "z"} {
			a, b := fmt.Sprint(name, i, "a"), fmt.Sprint(name, i, "b")
			r, err := s.Append(context.Background(), name, []session.Draft{say(a), say(b)})
			if err = errors.Join(err, r.Err()); err != nil {
				return err
			}
			acknowledged(name, a)
			acknowledged(name, b)
		}
	}
	return nil
}

// The power goes before each operation: what was acknowledged is there, batches are whole, numbers have no gap.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(15) {
		var disk faultfs.Disk
		told := map[string]int{}
		s := mustOpen(t, onDisk(faultfs.Tap(&disk, func(op faultfs.Op) error {
			if op.Kind == faultfs.Look {
				return nil
			}
			again, err := Open(onDisk(disk.Boot(faultfs.Survival{Seed: seed + 1})))
			if err != nil {
				t.Fatalf("seed %d, before %s: %v", seed, op, err)
			}
			defer again.Close()
			for name, n := range told {
				got := ids(t, again, name)
				if len(got) < n || len(got)%2 != 0 {
					t.Errorf("seed %d, before %s: %s has %q, and %d were acknowledged", seed, op, name, got, n)
				}
			}
			return nil
		})))
		if err := story(s, func(name, _ string) { told[name]++ }); err != nil {
			t.Fatal(err)
		}
		if t.Failed() {
			return
		}
	}
}

// A disk that fails once, at each operation: the error is told, nothing half is left, and the store goes on.
func TestDiskFailsOnce(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	for n := 1; ; n++ {
		var disk faultfs.Disk
		mustOpen(t, onDisk(&disk)).Close()
		count, armed, broke := 0, false, false
		s := mustOpen(t, onDisk(faultfs.Tap(&disk, func(op faultfs.Op) error {
			if !armed || op.Kind == faultfs.Look {
				return nil
			}
			if count++; count == n {
				broke = true
				return faultfs.Short(full)
			}
			return nil
		})))
		armed = true
		want := map[string][]string{}
		err := story(s, func(name, id string) { want[name] = append(want[name], fmt.Sprint(len(want[name])+1, ":", id)) })
		if !broke {
			if n == 1 {
				t.Fatal("nothing failed")
			}
			return
		}
		if !errors.Is(err, full) || errors.Is(err, session.ErrOutcomeUnknown) {
			t.Fatalf("operation %d: %v", n, err)
		}
		for _, name := range []string{"x", "y", "z"} {
			id := name + " after"
			if r, err := s.Append(t.Context(), name, []session.Draft{say(id)}); errors.Join(err, r.Err()) != nil {
				t.Fatalf("operation %d: %v %v", n, err, r.Err())
			}
			want[name] = append(want[name], fmt.Sprint(len(want[name])+1, ":", id))
		}
		after := mustOpen(t, onDisk(disk.Boot(faultfs.Survival{})))
		for name := range want {
			for _, s := range []*Store{s, after} {
				if got := ids(t, s, name); fmt.Sprint(got) != fmt.Sprint(want[name]) {
					t.Errorf("operation %d: %s has %q, want %q", n, name, got, want[name])
				}
			}
		}
	}
}

// Many append while the disk fails again and again: what was acknowledged stays, what was refused does not come back.
func TestFailuresAmongMany(t *testing.T) {
	t.Parallel()
	full := errors.New("no space left")
	var disk faultfs.Disk
	var mu sync.Mutex
	syncs, armed := 0, false
	s := mustOpen(t, onDisk(faultfs.Tap(&disk, func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if armed && op.Kind == faultfs.SyncFile {
			if syncs++; syncs%5 == 0 {
				return full
			}
		}
		return nil
	})))
	mu.Lock()
	armed = true
	mu.Unlock()
	var wg sync.WaitGroup
	good := make([][]string, 8)
	for w := range 8 {
		wg.Go(func() {
			name := fmt.Sprint("s", w%3)
			for i := range 40 {
				id := fmt.Sprint(w, "/", i)
				r, err := s.Append(t.Context(), name, []session.Draft{say(id)})
				switch {
				case err == nil && r.Err() == nil:
					good[w] = append(good[w], id)
				case !errors.Is(err, full) || errors.Is(err, session.ErrOutcomeUnknown):
					// The recovery itself may have failed: then nobody knows, and it is tried again.
					if !errors.Is(err, session.ErrOutcomeUnknown) {
						t.Errorf("%s: %v %v", id, err, r.Err())
					}
				}
			}
		})
	}
	wg.Wait()
	mu.Lock()
	armed = false
	mu.Unlock()
	if _, err := s.Append(t.Context(), "s0", []session.Draft{say("last")}); err != nil {
		t.Fatal(err)
	}
	again := mustOpen(t, onDisk(disk.Boot(faultfs.Survival{})))
	total := 0
	for w := range 8 {
		name := fmt.Sprint("s", w%3)
		for _, id := range good[w] {
			if _, ok, err := again.Find(t.Context(), name, id); err != nil || !ok {
				t.Errorf("%s was acknowledged and is gone (%v)", id, err)
			}
			total++
		}
	}
	if total == 0 || total == 320 {
		t.Errorf("%d of 320 were acknowledged", total)
	}
	for i := range 3 {
		name := fmt.Sprint("s", i)
		for at, id := range ids(t, again, name) {
			if !strings.HasPrefix(id, fmt.Sprint(at+1, ":")) {
				t.Errorf("%s has a hole at %s", name, id)
				break
			}
		}
	}
}

// endsWhenAwaited is a context that ends the moment somebody waits for its end, however late that is.
type endsWhenAwaited struct {
	context.Context
	awaited atomic.Bool
}

func (c *endsWhenAwaited) Done() <-chan struct{} {
	c.awaited.Store(true)
	ended := make(chan struct{})
	close(ended)
	return ended
}

func (c *endsWhenAwaited) Err() error {
	if c.awaited.Load() {
		return context.Canceled
	}
	return nil
}

// holdable is a store whose next flush, once it is armed, says so on held and waits for the end of hold.
func holdable(t *testing.T) (s *Store, armed *atomic.Bool, held, hold chan struct{}) {
	hold, held, armed = make(chan struct{}), make(chan struct{}, 1), &atomic.Bool{}
	return mustOpen(t, onDisk(faultfs.Tap(&faultfs.Disk{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.SyncFile && armed.CompareAndSwap(true, false) {
			held <- struct{}{}
			<-hold
		}
		return nil
	}))), armed, held, hold
}

// Who appended is gone before the event is durable. Those who watch hear of it all the same.
func TestHintOfAnAppendThatWasGivenUp(t *testing.T) {
	t.Parallel()
	s, armed, held, hold := holdable(t)
	hints, err := s.Watch(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	first := make(chan error)
	go func() { _, err := s.Append(t.Context(), "another", []session.Draft{say("a")}); first <- err }()
	<-held
	if _, err := s.Append(&endsWhenAwaited{Context: t.Context()}, "s", []session.Draft{say("a")}); !errors.Is(err, session.ErrOutcomeUnknown) {
		t.Errorf("while another flush is under way: %v", err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
	select {
	case <-hints:
	case <-time.After(time.Minute):
		t.Fatal("no hint came")
	}
	if got := ids(t, s, "s"); fmt.Sprint(got) != "[1:a]" {
		t.Errorf("with the hint the log has %q", got)
	}
}

// An event that is on its way already is not said to be there before it is durable.
func TestRepeatedEventWaitsForTheFirst(t *testing.T) {
	t.Parallel()
	s, armed, held, hold := holdable(t)
	if _, err := s.Append(t.Context(), "s", []session.Draft{say("zero")}); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	first := make(chan error)
	go func() { _, err := s.Append(t.Context(), "s", []session.Draft{say("a")}); first <- err }()
	<-held
	if r, err := s.Append(&endsWhenAwaited{Context: t.Context()}, "s", []session.Draft{say("a")}); !errors.Is(err, session.ErrOutcomeUnknown) {
		t.Errorf("while the first is under way: %+v, %v", r, err)
	}
	if got := ids(t, s, "s"); len(got) != 1 {
		t.Errorf("what is not durable can be read: %q", got)
	}
	if _, ok, err := s.Find(t.Context(), "s", "a"); ok || err != nil {
		t.Errorf("what is not durable can be found (%v)", err)
	}
	close(hold)
	if err := <-first; err != nil {
		t.Error(err)
	}
	r, err := s.Append(t.Context(), "s", []session.Draft{say("a")})
	if err != nil || r.Outcomes[0] != (session.Outcome{Seq: 2, Repeated: true}) {
		t.Errorf("afterwards: %+v, %v", r, err)
	}
}

// Two batches of a session are under way, and the first is durable: the head and the log show that one alone.
func TestHeadIsTheDurableOne(t *testing.T) {
	t.Parallel()
	flushes := make(chan chan struct{})
	var armed atomic.Bool
	s := mustOpen(t, onDisk(faultfs.Tap(&faultfs.Disk{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.SyncFile && armed.Load() {
			release := make(chan struct{})
			flushes <- release
			<-release
		}
		return nil
	})))
	if _, err := s.Append(t.Context(), "s", []session.Draft{say("zero")}); err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	ended := make(chan error, 2)
	go func() { _, err := s.Append(t.Context(), "s", []session.Draft{say("a")}); ended <- err }()
	first := <-flushes
	_, second, err := s.add("s", []session.Draft{say("b")})
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- s.log.Wait(t.Context(), *second) }()
	close(first)
	last := <-flushes
	if h, err := s.Head(t.Context(), "s"); err != nil || h.Last != 2 {
		t.Errorf("with the second on its way the head is at %d, %v", h.Last, err)
	}
	if got := ids(t, s, "s"); fmt.Sprint(got) != "[1:zero 2:a]" {
		t.Errorf("and the log has %q", got)
	}
	armed.Store(false)
	close(last)
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if h, err := s.Head(t.Context(), "s"); err != nil || h.Last != 3 {
		t.Errorf("in the end the head is at %d, %v", h.Last, err)
	}
}

func TestRepairShowsWhatWasLost(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	s := mustOpen(t, onDisk(&disk))
	for _, at := range []string{"x a", "y a", "x b", "y b", "x c"} {
		name, id, _ := strings.Cut(at, " ")
		if _, err := s.Append(t.Context(), name, []session.Draft{say(id)}); err != nil {
			t.Fatal(err)
		}
	}
	at := s.idx.of("y").logs["y"].waitingOrBatch(1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := disk.Open("/home")
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.Overwrite("sessions.log")
	if err == nil {
		_, err = f.WriteAt([]byte("damage"), at+40)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(onDisk(&disk))
	var damage *DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("a damaged log: %v", err)
	}
	gaps, err := Repair(onDisk(&disk))
	if err != nil || len(gaps) != 1 || gaps[0].Lost != 1 {
		t.Fatalf("%+v, %v", gaps, err)
	}
	for range 2 { // the second opening finds the gate and adds none
		s = mustOpen(t, onDisk(&disk))
		if got := ids(t, s, "x"); fmt.Sprint(got) != "[1:a 2:b 3:c]" {
			t.Errorf("x, whose later events show that it lost nothing, has %q", got)
		}
		// y's second event is lost, and nothing after it says so: its numbers are not used again, and a person has to look.
		h, err := s.Head(t.Context(), "y")
		if err != nil || len(h.Gates) != 1 || h.Gates[0].Interrupt != "log-damage-1" || h.Last < 3 {
			t.Errorf("y is %+v, %v", h, err)
		}
		if got := ids(t, s, "y"); len(got) != 2 || got[0] != "1:a" {
			t.Errorf("y has %q", got)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// waitingOrBatch is where the i-th batch of a session is.
func (l *log) waitingOrBatch(i int) int64 {
	if i < len(l.batches) {
		return l.batches[i].at.Block
	}
	return l.waiting[i-len(l.batches)].at.Block
}

func TestConfig(t *testing.T) {
	t.Parallel()
	if _, err := Open(Config{}); err == nil || !strings.Contains(err.Error(), "Path") {
		t.Errorf("no path: %v", err)
	}
}

func FuzzRecord(f *testing.F) {
	rec, err := new(scratch).encode("s", session.Plan{Events: []session.Event{{ID: "a", Seq: 1, Kind: session.KindMessage, Schema: 1}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec)
	f.Add([]byte{1, 's', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		name, events, err := decode(b)
		if err != nil {
			return
		}
		if len(events) == 0 || len(name) > len(b) {
			t.Errorf("%q: %d events of %q", b, len(events), name)
		}
	})
}
