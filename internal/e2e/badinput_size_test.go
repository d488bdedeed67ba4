package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
)

// seen is what a looker tells of its passes.
type seen struct {
	// Relaunched are the runs that it put back, Bad how many outcomes of its last pass had an error, Later how many
	// notes were not read in one look, and Rows the notices.
	Relaunched []string
	Bad, Later int
	Rows       map[string]int
	Deliveries int
}

// lookAround is a healer that passes five times, whatever goes wrong, and tells what it saw.
func (r role) lookAround(ctx context.Context) error {
	rows := &notifytest.Recorder{}
	count := &counter{Notifier: rows}
	p, err := wire(ctx, r.Home, options{settings: restart.Settings{Quiescence: r.Quiescence}, notifiers: []notify.Notifier{count}})
	if err != nil {
		return err
	}
	defer p.close()
	s := seen{Rows: map[string]int{}}
	s.Later, err = later(ctx, p.home.Doorbell())
	for i := 0; i < 5 && err == nil; i++ {
		var res restart.Result
		if res, err = p.healer.Pass(ctx, everything); err != nil {
			break
		}
		s.Bad = 0
		for _, o := range res.Outcomes {
			if o.Error != "" {
				s.Bad++
			}
			if o.Launch != "" {
				s.Relaunched = append(s.Relaunched, o.Run)
			}
		}
	}
	if err != nil {
		return err
	}
	for _, row := range rows.Rows() {
		s.Rows[row.Kind]++
	}
	s.Deliveries = int(count.n.Load())
	return json.NewEncoder(os.Stdout).Encode(s)
}

// later is how many notes one look leaves for the next.
func later(ctx context.Context, box doorbell.Box) (n int, err error) {
	items, err := box.Pending(ctx)
	for _, it := range items {
		if errors.Is(it.Err, doorbell.ErrLater) {
			n++
		}
	}
	return n, err
}

// looks plays a looker, and returns what it saw and the most memory that it ever had, in bytes.
func (w *world) looks() (s seen, most int64) {
	w.t.Helper()
	a := w.play(role{Play: "looker"})
	select {
	case <-a.done:
	case <-time.After(15 * time.Minute): // it has much to look at, and the machine may be busy
		w.t.Fatal("the looker does not end")
	}
	a.endsWell()
	if err := json.Unmarshal(a.out.Bytes(), &s); err != nil {
		w.t.Fatalf("%v: %s", err, a.out.String())
	}
	most = a.cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	if most < 1<<24 {
		most <<= 10 // Linux counts kilobytes
	}
	return s, most
}

// ofLooker is the memory that a looker needs who has nothing much to look at, with the race detector too.
func (w *world) ofLooker() int64 {
	w.t.Helper()
	_, most := w.looks()
	return most
}

// TestDoorbellOfAGigabyte: it is not read, in any file of the state folder that may be one.
func TestDoorbellOfAGigabyte(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	usual := w.ofLooker()
	dead := w.fallen(plain(3)...)
	time.Sleep(rest) // a looker does not wait for the tree
	path := w.file("doorbell", "huge")
	for _, p := range []string{path, w.file("doorbell", "huger"), w.file("runs", dead[1].ID+".json"), w.file("runs", "names", project+"__"+dead[2].Name+".json")} {
		f, err := os.OpenFile(p, os.O_CREATE|os.O_RDWR, 0o600)
		if err == nil {
			err = errors.Join(f.Truncate(1<<30), f.Close()) // a hole: it costs no room
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, most := w.looks()
	if len(s.Relaunched) != 1 || s.Relaunched[0] != dead[0].ID || s.Bad != 4 {
		t.Errorf("it put back %v with %d errors, want the one that can be read, and 4", s.Relaunched, s.Bad)
	}
	if s.Rows["unreadable"] != 3 {
		t.Errorf("the rows are %v", s.Rows)
	}
	if over := most - usual; over > 100<<20 {
		t.Errorf("it took %d MB more than usual", over>>20)
	}
	if st, err := os.Stat(path); err != nil || st.Size() != 1<<30 {
		t.Errorf("the file is now %v, %v", st, err)
	}
	t.Logf("%d MB, usually %d MB", most>>20, usual>>20)
}

// drop leaves n notes, each of a run that nobody knows unless it is no note at all.
func drop(t testing.TB, dir string, n int, at time.Time) {
	t.Helper()
	for i := range n {
		note := fmt.Sprintf(`{"schema":1,"run":"unknown-%d","at":{"wall":%q},"text":"Error: %d"}`, i, at.Format(time.RFC3339Nano), i)
		if i%2 == 1 {
			note = note[:len(note)/2]
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("0-%05d", i)), []byte(note), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTenThousandDoorbells: half of them are no notes, half are of runs that nobody knows, and beside them lie two thousand
// large notes of one death, more than one look may read. The passes come to their end, the one sound death is put back,
// people get a bounded number of rows, nothing is lost, and memory stays bounded.
func TestTenThousandDoorbells(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	usual := w.ofLooker()
	dead := w.fallen(plain(2)...)
	dir := w.file("doorbell")
	drop(t, dir, 10000, time.Now())
	large, err := json.Marshal(doorbell.Note{Schema: 1, Run: "large", Text: []byte(strings.Repeat("x", doorbell.TextLimit-1000))})
	if err != nil {
		t.Fatal(err)
	}
	const many = 2000
	for i := range many {
		to := filepath.Join(dir, fmt.Sprintf("00-%05d", i)) // they come first
		if i == 0 {
			err = os.WriteFile(to, large, 0o600)
		} else {
			err = os.Link(filepath.Join(dir, "00-00000"), to)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s, most := w.looks()
	if len(s.Relaunched) != 2 {
		t.Errorf("it put back %v, want %s and %s", s.Relaunched, dead[0].ID, dead[1].ID)
	}
	if s.Later == 0 {
		t.Error("the story is wrong: one look read everything")
	}
	if s.Rows["unreadable"] < 2 || s.Rows["unreadable"] > 200 || s.Deliveries > 300 {
		t.Errorf("the rows are %v, of %d deliveries", s.Rows, s.Deliveries)
	}
	if over := most - usual; over > 400<<20 {
		t.Errorf("it took %d MB more than usual", over>>20)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 10000+many {
		t.Errorf("%d doorbells are left, %v", len(left), err)
	}
	t.Logf("%d MB, usually %d MB; %d notes waited for the next look; %v", most>>20, usual>>20, s.Later, s.Rows)
}

// BenchmarkTenThousandDoorbells is a pass over ten thousand doorbells that stay: half of them no notes, half of unknown
// runs.
func BenchmarkTenThousandDoorbells(b *testing.B) {
	dir := filepath.Join(b.TempDir(), "mulligan")
	p, err := wire(b.Context(), dir, options{notifiers: []notify.Notifier{&notifytest.Recorder{}}})
	if err != nil {
		b.Fatal(err)
	}
	defer p.close()
	drop(b, filepath.Join(dir, "doorbell"), 10000, time.Now())
	b.ReportAllocs()
	for b.Loop() {
		if res, err := p.healer.Pass(b.Context(), everything); err != nil || len(res.Outcomes) != 10000 {
			b.Fatal(len(res.Outcomes), err)
		}
	}
}
