package framelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// dir opens a folder of a disk in memory.
func dir(t testing.TB, d durable.FS) durable.Dir {
	t.Helper()
	out, err := d.Open("/log")
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func small(d durable.Dir) Config {
	return Config{Dir: d, Name: "events", Holder: "this test", Ahead: 512}
}

func mustOpen(t testing.TB, c Config) *Log {
	t.Helper()
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func add(l *Log, rec string) (Position, error) {
	p, ticket, err := l.Add([]byte(rec))
	if err == nil {
		err = l.Wait(context.Background(), ticket)
	}
	return p, err
}

func all(t testing.TB, l *Log) (out []string) {
	t.Helper()
	err := l.Scan(func(e Entry) bool {
		if e.Gap != nil {
			out = append(out, fmt.Sprintf("gap of %d", e.Gap.Lost))
		} else {
			out = append(out, string(e.Record))
		}
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecordsComeBackInOrder(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	l := mustOpen(t, small(dir(t, &disk)))
	want := []string{"", "a", strings.Repeat("long ", 400), "z"}
	var at []Position
	for _, r := range want {
		p, err := add(l, r)
		if err != nil {
			t.Fatal(err)
		}
		at = append(at, p)
	}
	check := func(l *Log) {
		t.Helper()
		if got := all(t, l); !slices.Equal(got, want) {
			t.Errorf("the log holds %.60q", got)
		}
		c := l.Cursor()
		for i, p := range slices.Backward(at) {
			if r, err := c.Record(p); err != nil || string(r) != want[i] {
				t.Errorf("record %d is %.20q, %v", i, r, err)
			}
		}
		if l.Records() != uint64(len(want)) {
			t.Errorf("%d records", l.Records())
		}
	}
	check(l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = mustOpen(t, small(dir(t, disk.Boot(faultfs.Survival{}))))
	check(l)
	if l.Torn() != 0 {
		t.Errorf("%d bytes were torn", l.Torn())
	}
	if _, err := add(l, "more"); err != nil || !slices.Equal(all(t, l), append(want, "more")) {
		t.Errorf("after reopening: %v", err)
	}
}

func TestManyWritersShareFlushes(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	var mu sync.Mutex
	flushes := 0
	d := dir(t, faultfs.Tap(&disk, func(op faultfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if op.Kind == faultfs.SyncFile {
			flushes++
		}
		return nil
	}))
	l := mustOpen(t, Config{Dir: d, Name: "events"})
	const writers, each = 32, 20
	var order sync.Mutex
	var want []string
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				rec := fmt.Sprint(w, "/", i)
				order.Lock()
				_, ticket, err := l.Add([]byte(rec))
				want = append(want, rec)
				order.Unlock()
				if err == nil {
					err = l.Wait(t.Context(), ticket)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := all(t, l); !slices.Equal(got, want) {
		t.Error("the records do not stand in the order in which they were added")
	}
	if flushes > writers*each/2 {
		t.Errorf("%d flushes for %d records of %d writers", flushes, writers*each, writers)
	}
}

func TestOneProcessWrites(t *testing.T) {
	t.Parallel()
	d := dir(t, &faultfs.Disk{})
	l := mustOpen(t, small(d))
	_, err := Open(small(d))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.Holder != "this test" || !strings.Contains(err.Error(), "this test") {
		t.Errorf("a second writer got %v", err)
	}
	if _, err := Repair(d, "events", "me"); !errors.As(err, &busy) {
		t.Errorf("a repair beside a writer got %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, small(d)).Close(); err != nil {
		t.Error(err)
	}
	if _, _, err := l.Add(nil); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("adding to a closed log: %v", err)
	}
}

func TestReadersFollow(t *testing.T) {
	t.Parallel()
	d := dir(t, &faultfs.Disk{})
	if _, err := Read(d, "events"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
	l := mustOpen(t, small(d))
	r, err := Read(d, "events")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, rec := range []string{"a", "b", "c"} {
		if _, err := add(l, rec); err != nil {
			t.Fatal(err)
		}
		if err := r.Next(func(e Entry) bool { got = append(got, string(e.Record)); return true }); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, []string{"a", "b", "c"}) || r.Damage() != nil {
		t.Errorf("the reader saw %q, damage %v", got, r.Damage())
	}
}

// A cancelled caller never strands those who wait with it, and what it added is not left lying either.
func TestCancelledWaitersStrandNobody(t *testing.T) {
	t.Parallel()
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	var armed atomic.Bool
	d := dir(t, faultfs.Tap(&faultfs.Disk{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.SyncFile && armed.CompareAndSwap(true, false) {
			held <- struct{}{}
			<-hold
		}
		return nil
	}))
	l := mustOpen(t, Config{Dir: d, Name: "events"})
	armed.Store(true)

	first := make(chan error)
	go func() { _, err := add(l, "first"); first <- err }()
	<-held // it is in its flush
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, ticket, err := l.Add([]byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(gone, ticket); !errors.Is(err, ErrUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was given up: %v", err)
	}
	hold <- struct{}{}
	if err := <-first; err != nil {
		t.Error(err)
	}
	// The one who wrote took along what nobody waited for any more.
	if got := all(t, l); !slices.Equal(got, []string{"first", "second"}) {
		t.Errorf("the log holds %q", got)
	}
}

// What comes while the log is being closed is refused, and not taken and then lost.
func TestNothingIsAddedToALogThatIsBeingClosed(t *testing.T) {
	t.Parallel()
	var l *Log
	var armed atomic.Bool
	var late error
	d := dir(t, faultfs.Tap(&faultfs.Disk{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.SyncFile && armed.CompareAndSwap(true, false) {
			_, _, late = l.Add([]byte("late"))
		}
		return nil
	}))
	l = mustOpen(t, Config{Dir: d, Name: "events"})
	_, ticket, err := l.Add([]byte("first"))
	if err != nil {
		t.Fatal(err)
	}
	armed.Store(true)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(late, fs.ErrClosed) {
		t.Errorf("what was added during the close: %v", late)
	}
	if err := l.Wait(t.Context(), ticket); err != nil {
		t.Errorf("what was added before it: %v", err)
	}
	if got := all(t, mustOpen(t, Config{Dir: d, Name: "events"})); !slices.Equal(got, []string{"first"}) {
		t.Errorf("the log holds %q", got)
	}
}

// What was added while a flush was failing would stand behind a hole, so it fails too.
func TestFailedFlushTakesAlongWhatWaits(t *testing.T) {
	t.Parallel()
	boom := errors.New("the disk is gone")
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	var armed atomic.Bool
	d := dir(t, faultfs.Tap(&faultfs.Disk{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.SyncFile && armed.CompareAndSwap(true, false) {
			held <- struct{}{}
			<-hold
			return boom
		}
		return nil
	}))
	l := mustOpen(t, Config{Dir: d, Name: "events"})
	armed.Store(true)
	first := make(chan error)
	go func() { _, err := add(l, "first"); first <- err }()
	<-held
	_, ticket, err := l.Add([]byte("second"))
	if err != nil {
		t.Fatal(err)
	}
	hold <- struct{}{}
	if err := <-first; !errors.Is(err, boom) {
		t.Errorf("the first: %v", err)
	}
	if err := l.Wait(t.Context(), ticket); !errors.Is(err, boom) {
		t.Errorf("the second: %v", err)
	}
	for _, want := range []bool{true, false} {
		if ok, err := l.Recover(); err != nil || ok != want {
			t.Fatal(ok, err)
		}
	}
	if _, err := add(l, "third"); err != nil || !slices.Equal(all(t, l), []string{"third"}) {
		t.Errorf("the log holds %q, %v", all(t, l), err)
	}
}

func TestFailedFlushIsToldAndRecovered(t *testing.T) {
	t.Parallel()
	boom := errors.New("no space left")
	// For each operation of an append that can fail, with a file that must grow and one that need not.
	for n := 1; n < 12; n++ {
		var disk faultfs.Disk
		l := mustOpen(t, small(dir(t, &disk)))
		if _, err := add(l, "kept"); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		count, broke := 0, false
		armed := false
		l = mustOpen(t, small(dir(t, faultfs.Tap(&disk, func(op faultfs.Op) error {
			if !armed || op.Kind == faultfs.Look {
				return nil
			}
			if count++; count == n {
				broke = true
				return faultfs.Short(boom)
			}
			return nil
		}))))
		armed = true
		want := []string{"kept"}
		for i := range 6 {
			rec := fmt.Sprint(i, strings.Repeat("x", 300))
			_, err := add(l, rec)
			switch {
			case err == nil:
				want = append(want, rec)
				continue
			case !errors.Is(err, boom) || !errors.Is(err, ErrBroken):
				t.Fatalf("operation %d: %v", n, err)
			}
			if _, _, err := l.Add(nil); !errors.Is(err, ErrBroken) {
				t.Fatalf("operation %d: a broken log took a record: %v", n, err)
			}
			if ok, err := l.Recover(); err != nil || !ok {
				t.Fatal(ok, err)
			}
		}
		if !broke {
			continue
		}
		if got := all(t, l); !slices.Equal(got, want) {
			t.Errorf("operation %d: the log holds %.40q, want %.40q", n, got, want)
		}
		again := mustOpen(t, small(dir(t, disk.Boot(faultfs.Survival{}))))
		if got := all(t, again); !slices.Equal(got, want) {
			t.Errorf("operation %d, after a power cut: the log holds %.40q, want %.40q", n, got, want)
		}
	}
}

// The power goes before each operation, and chance decides what it leaves: all that was acknowledged is there, in order,
// and nothing that is there is taken for damage.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		var disk faultfs.Disk
		var acknowledged, added int
		verify := func(op faultfs.Op) error {
			if op.Kind == faultfs.Look {
				return nil
			}
			cut := disk.Boot(faultfs.Survival{Seed: seed + 1})
			l, err := Open(small(dir(t, cut)))
			if err != nil {
				t.Fatalf("seed %d, before %s: %v", seed, op, err)
			}
			got := all(t, l)
			if len(got) < acknowledged || len(got) > added {
				t.Errorf("seed %d, before %s: %d records of %d added and %d acknowledged", seed, op, len(got), added, acknowledged)
			}
			for i, r := range got {
				if !strings.HasPrefix(r, fmt.Sprint(i, " ")) {
					t.Errorf("seed %d, before %s: record %d is %.20q", seed, op, i, r)
				}
			}
			// It goes on from there, also after another cut.
			if _, err := add(l, "next"); err != nil {
				t.Errorf("seed %d, before %s: %v", seed, op, err)
			}
			l = mustOpen(t, small(dir(t, cut.Boot(faultfs.Survival{}))))
			if again := all(t, l); !slices.Equal(again, append(got, "next")) {
				t.Errorf("seed %d, before %s: after going on the log holds %.40q", seed, op, again)
			}
			return nil
		}
		l := mustOpen(t, small(dir(t, faultfs.Tap(&disk, verify))))
		for i := range 4 {
			var tickets []Ticket
			for j := range 3 { // a block of three
				_, ticket, err := l.Add(fmt.Append(nil, i*3+j, " ", strings.Repeat("x", 60*j)))
				if err != nil {
					t.Fatal(err)
				}
				tickets = append(tickets, ticket)
				added++
			}
			for _, ticket := range tickets {
				if err := l.Wait(t.Context(), ticket); err != nil {
					t.Fatal(err)
				}
			}
			acknowledged = added
		}
		if t.Failed() {
			return
		}
	}
}
