package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// seamFS asks a function before every operation that changes something; the function may refuse it, or end the process.
type seamFS struct{ before func(op string) error }

func (s seamFS) Open(path string) (durable.Dir, error) {
	d, err := durable.System{}.Open(path)
	if err != nil {
		return nil, err
	}
	return seamDir{d, s.before}, nil
}

type seamDir struct {
	durable.Dir
	before func(op string) error
}

func (d seamDir) do(op string, f func() error) error {
	if err := d.before(op); err != nil {
		return err
	}
	return f()
}

func (d seamDir) file(op string, open func() (durable.File, error)) (durable.File, error) {
	if err := d.before(op); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	return seamFile{f, d.before}, nil
}

func (d seamDir) Sub(n string) (durable.Dir, error) {
	sub, err := d.Dir.Sub(n)
	if err != nil {
		return nil, err
	}
	return seamDir{sub, d.before}, nil
}

func (d seamDir) Create(n string) (durable.File, error) {
	return d.file("create "+n, func() (durable.File, error) { return d.Dir.Create(n) })
}

func (d seamDir) Overwrite(n string) (durable.File, error) {
	return d.file("overwrite "+n, func() (durable.File, error) { return d.Dir.Overwrite(n) })
}

func (d seamDir) Append(n string) (durable.File, error) {
	return d.file("append "+n, func() (durable.File, error) { return d.Dir.Append(n) })
}
func (d seamDir) Unnamed() (durable.File, error) { return d.file("unnamed", d.Dir.Unnamed) }
func (d seamDir) Publish(f durable.File, n string) error {
	return d.do("publish "+n, func() error { return d.Dir.Publish(f.(seamFile).File, n) })
}
func (d seamDir) Link(a, b string) error {
	return d.do("link "+b, func() error { return d.Dir.Link(a, b) })
}
func (d seamDir) Rename(a, b string) error {
	return d.do("rename "+b, func() error { return d.Dir.Rename(a, b) })
}
func (d seamDir) Exchange(a, b string) error {
	return d.do("exchange "+b, func() error { return d.Dir.Exchange(a, b) })
}
func (d seamDir) Remove(n string) error {
	return d.do("remove "+n, func() error { return d.Dir.Remove(n) })
}
func (d seamDir) Sync() error { return d.do("sync folder", d.Dir.Sync) }

type seamFile struct {
	durable.File
	before func(op string) error
}

func (f seamFile) Write(b []byte) (int, error) {
	if err := f.before("write"); err != nil {
		return 0, err
	}
	return f.File.Write(b)
}

func (f seamFile) Sync() error {
	if err := f.before("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f seamFile) Datasync() error {
	if err := f.before("datasync"); err != nil {
		return err
	}
	return f.File.Datasync()
}

// TestConformanceOnAPlainFileSystem takes away what not every file system has: unnamed files and the exchange of names.
func TestConformanceOnAPlainFileSystem(t *testing.T) {
	t.Parallel()
	plain := seamFS{func(op string) error {
		if op == "unnamed" || strings.HasPrefix(op, "exchange") {
			return errors.ErrUnsupported
		}
		return nil
	}}
	open := func(t *testing.T) *files.Home {
		h, err := files.Open(files.Config{Dir: filepath.Join(t.TempDir(), "home"), FS: plain})
		must(t, err)
		t.Cleanup(func() { must(t, h.Close()) })
		return h
	}
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return open(t).Ledger() })
	ledgertest.RunRuns(t, func(t *testing.T) run.Store { return open(t).Runs() })
	ledgertest.RunBreaker(t, func(t *testing.T) storm.Store { return open(t).Breaker() })
	ledgertest.RunDoorbell(t, func(t *testing.T) doorbell.Box { return open(t).Doorbell() })
}

// story is one lineage from its death to its end; each step says when it was acknowledged. Told again in one home, only
// what then goes another way is told: records are written over their spare files.
func story(h *files.Home, lineage string, done func(step string)) error {
	ctx, k, self := context.Background(), ledger.Key{Project: "p", Lineage: lineage}, h.Instances().Self()
	change := func(c ledger.Change) error {
		_, err := h.Ledger().Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			c.Now = now
			if c.Event != ledger.Bind {
				c.Actor = self
			}
			return ledger.Apply(cur, c)
		})
		return err
	}
	start := func(id string) error {
		return h.Runs().Start(ctx, run.Run{ID: id, Project: "p", Name: lineage, Lineage: lineage}, func(*run.Run) error { return nil })
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"start", func() error { return start(lineage + "-1") }},
		{"ring", func() error { return h.Doorbell().Ring(ctx, doorbell.Note{Run: lineage}) }},
		{"claim", func() error {
			r, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: self})
			if err != nil {
				return err
			}
			return h.Ledger().Create(ctx, r)
		}},
		{"slot", func() error {
			_, err := h.Breaker().UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
				next, _ := storm.Reserve(cur, storm.Slot{Launch: lineage, Episode: "e", Project: "p", Lineage: lineage}, storm.Limits{}, now)
				return next, nil
			})
			return err
		}},
		{"evidence", func() error {
			_, err := h.Evidence().Put(ctx, k, map[string][]byte{"a": []byte("1"), "b": []byte("2")})
			return err
		}},
		{"launching", func() error {
			return change(ledger.Change{Event: ledger.BeginLaunch, Launch: lineage, Episode: "e", Evidence: "evidence/x"})
		}},
		{"restart", func() error { return start(lineage + "-2") }},
		{"launched", func() error {
			return change(ledger.Change{Event: ledger.Bind, Launch: lineage, Run: lineage + "-2", Actor: ledger.Instance{ID: "runner"}})
		}},
		{"answer", func() error { return h.Answers().Append(ctx, ledger.Answer{Run: lineage}) }},
		{"row", func() error { return h.Updates().Append(ctx, journal.Row{ID: lineage, Status: journal.Begun}) }},
		{"report", func() error { return h.Reports().PutReport(ctx, "e", map[string][]byte{"report.md": []byte(lineage)}) }},
		{"settled_ok", func() error { return change(ledger.Change{Event: ledger.SettleOK}) }},
	} {
		if lineage == "l2" && !strings.Contains("claim slot launching launched settled_ok", s.name) {
			continue
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		done(s.name)
	}
	return nil
}

// storyUntil is the child's side: it is killed before a numbered operation.
func storyUntil(dir, arg string) error {
	n, err := strconv.ParseInt(arg, 10, 64)
	if err != nil {
		return err
	}
	var count atomic.Int64
	h, err := files.Open(files.Config{Dir: dir, FS: seamFS{func(string) error {
		if count.Add(1) == n {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}}})
	if err != nil {
		return err
	}
	for _, lineage := range []string{"l1", "l2"} {
		if err := story(h, lineage, func(step string) { fmt.Println(lineage, step) }); err != nil {
			return err
		}
	}
	fmt.Println("the end")
	return h.Close()
}

// slowed is set where not every operation can be tried in reasonable time.
var slowed bool

// TestKilledBeforeEachOperation kills the story before each operation that it makes, and looks at what is left: all that
// was acknowledged is there, nothing is damaged, and the story can be told again beside it.
func TestKilledBeforeEachOperation(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	step := 1
	if testing.Short() || slowed {
		step = 5
	}
	for n := 1; ; n += step {
		dir := filepath.Join(t.TempDir(), "home")
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), roleVar+"=story", dirVar+"="+dir, argVar+"="+fmt.Sprint(n))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		ended := strings.HasSuffix(string(out), "the end\n")
		if !ended && err == nil {
			t.Fatalf("before operation %d: %q", n, out)
		}
		h, err := files.Open(files.Config{Dir: dir})
		must(t, err)
		acknowledged(t, h, n, string(out))
		same(t, h)
		for _, p := range ledger.Check(h.Ledger().List(t.Context())) {
			t.Errorf("before operation %d: %s", n, p)
		}
		if err := story(h, "l3", func(string) {}); err != nil {
			t.Errorf("before operation %d, and then again: %v", n, err)
		}
		must(t, h.Close())
		if ended {
			if n < 60 {
				t.Errorf("only %d operations were tried", n)
			}
			return
		}
	}
}

// acknowledged looks for what the killed process said it had done.
func acknowledged(t *testing.T, h *files.Home, n int, out string) {
	t.Helper()
	ctx := t.Context()
	for _, line := range strings.Split(strings.TrimSuffix(out, "\n"), "\n") {
		l, step, _ := strings.Cut(line, " ")
		k := ledger.Key{Project: "p", Lineage: l}
		var err error
		switch step {
		case "start", "restart":
			_, err = h.Runs().Holder(ctx, "p", l)
		case "ring":
			var items []doorbell.Item
			if items, err = h.Doorbell().Pending(ctx); len(items) == 0 {
				err = errors.New("no note")
			}
		case "claim", "launching", "launched", "settled_ok":
			var r ledger.Record
			if r, err = h.Ledger().Get(ctx, k); err == nil && !reached(r, step) {
				err = fmt.Errorf("the record is %s", r.State)
			}
		case "slot":
			var st storm.State
			if st, err = h.Breaker().State(ctx); err == nil && len(st.Slots) == 0 {
				err = errors.New("no slot")
			}
		case "evidence":
			_, err = h.Evidence().Get(ctx, k)
		case "answer":
			var ok bool
			if _, ok, err = h.Answers().Answer(ctx, l); !ok {
				err = errors.New("no answer")
			}
		case "row":
			err = errors.New("no row")
			for r, bad := range h.Updates().Rows(ctx) {
				if r.ID == l {
					err = bad
				}
			}
		case "report":
			_, err = h.Reports().GetReport(ctx, "e")
		}
		if err != nil {
			t.Errorf("killed before operation %d, after %q was acknowledged: %v", n, line, err)
		}
	}
}

// reached reports whether a record passed through a state.
func reached(r ledger.Record, state string) bool {
	for _, e := range r.History {
		if string(e.State) == state || string(e.Event) == state {
			return true
		}
	}
	return false
}
