package update_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// trees are what roots hold, by name; an empty revision cannot be read.
type trees map[string]string

func (s trees) Identify(_ context.Context, r witness.Root) (witness.Identity, error) {
	if s[r.Name] == "" {
		return witness.Identity{Unknown: "it is away"}, nil
	}
	return witness.Identity{Revision: s[r.Name]}, nil
}

func (s trees) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, nil
}

func root(name string) witness.Root {
	return witness.Root{Root: classify.Root{Name: name, Dirs: []string{"/srv/" + name}, Modules: []string{name}}, Kind: "git"}
}

// command is a held command that a test plays.
type command struct {
	log  []string // what was done with it, in order
	do   func() classify.Exit
	bad  error // of Release
	home *memory.Home
	open bool // its row was in the journal when it was released
}

func (c *command) Hold(update.Command) (update.Process, error) {
	c.log = append(c.log, "hold")
	return c, nil
}
func (c *command) PID() int      { return 4711 }
func (c *command) Start() uint64 { return 42 }
func (c *command) Abandon() error {
	c.log = append(c.log, "abandon")
	return nil
}

func (c *command) Release() error {
	c.log = append(c.log, "release")
	for r, err := range c.home.Updates().Rows(context.Background()) {
		c.open = err == nil && r.Open() && r.PID == 4711 && r.Start == 42 && r.Boot == host.BootID()
	}
	return c.bad
}

func (c *command) Wait(context.Context) (classify.Exit, []byte, []byte) {
	c.log = append(c.log, "wait")
	return c.do(), []byte("out"), append(make([]byte, 8<<10), "the end \xff"...)
}

func newUpdater(t testing.TB, home *memory.Home, s trees, c update.Commands, j journal.Store) *update.Updater {
	t.Helper()
	if j == nil {
		j = home.Updates()
	}
	u, err := update.New(update.Config{Journal: j, Lock: home.Writer(), Instances: home.Instances(), Sources: map[string]witness.Source{"git": s}, Commands: c})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func rows(t *testing.T, home *memory.Home) (out []journal.Row) {
	t.Helper()
	for r, err := range home.Updates().Rows(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		code    int
		changes bool
		want    journal.Status
	}{
		{"succeeded and changed", 0, true, journal.Updated}, {"failed and changed", 3, true, journal.Partial},
		{"failed, nothing changed", 3, false, journal.Failed}, {"succeeded, nothing changed", 0, false, journal.Skipped},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			home, s := memory.New(memory.Config{}), trees{"acme": "v1", "tools": "t1"}
			cmd := &command{home: home, do: func() classify.Exit {
				if c.changes {
					s["acme"] = "v2"
				}
				return classify.Exit{Code: c.code}
			}}
			row, err := newUpdater(t, home, s, cmd, nil).Run(t.Context(), []witness.Root{root("acme"), root("tools"), root("away")},
				update.Command{Args: []string{"pull"}}, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if row.Status != c.want || row.Exit != c.code || row.Closed.IsZero() || row.Open() {
				t.Errorf("the row is %s with exit %d, want %s", row.Status, row.Exit, c.want)
			}
			if row.Roots[0].Changed() != c.changes || row.Roots[1].Changed() || row.Roots[2].Changed() {
				t.Errorf("the roots changed: %v %v %v", row.Roots[0].Changed(), row.Roots[1].Changed(), row.Roots[2].Changed())
			}
			if !cmd.open || strings.Join(cmd.log, " ") != "hold release wait" {
				t.Errorf("the command went through %v, with its row in the journal: %v; want the row before the release", cmd.log, cmd.open)
			}
			if got := rows(t, home); len(got) != 1 || got[0].Status != c.want {
				t.Errorf("the journal holds %+v", got)
			}
			if len(row.Stderr) > 5<<10 || !strings.HasSuffix(row.Stderr, "the end \uFFFD") {
				t.Errorf("the kept end of stderr has %d bytes and ends in %q", len(row.Stderr), row.Stderr[len(row.Stderr)-10:])
			}
			if _, held, err := home.Writer().Holder(t.Context()); held || err != nil {
				t.Errorf("the lock is still held: %v, %v", held, err)
			}
		})
	}
}

func TestFunctions(t *testing.T) {
	t.Parallel()
	home, s := memory.New(memory.Config{}), trees{"acme": "v1"}
	u := newUpdater(t, home, s, nil, nil)
	broke := errors.New("half way")
	row, err := u.Do(t.Context(), []witness.Root{root("acme")}, "install", time.Second, func(context.Context) error {
		who, held, err := home.Writer().Holder(t.Context())
		if !held || err != nil || !strings.Contains(who, "install") {
			t.Errorf("while it works the lock is held by %q, %v, %v", who, held, err)
		}
		s["acme"] = "v2"
		return broke
	})
	if !errors.Is(err, broke) || row.Status != journal.Partial || row.Stderr != "half way" {
		t.Errorf("the row is %s (%q) with %v, want partial and the function's error", row.Status, row.Stderr, err)
	}
	if _, err := u.Run(t.Context(), nil, update.Command{Args: []string{"x"}}, 0); err == nil {
		t.Error("an updater without commands ran one")
	}
}

// TestClosedWhenTheCallerLeft: the row is closed though the caller's context ended meanwhile.
func TestClosedWhenTheCallerLeft(t *testing.T) {
	t.Parallel()
	home, s := memory.New(memory.Config{}), trees{"acme": "v1"}
	ctx, leave := context.WithCancel(t.Context())
	row, err := newUpdater(t, home, s, nil, nil).Do(ctx, []witness.Root{root("acme")}, "install", time.Second, func(context.Context) error {
		s["acme"] = "v2"
		leave()
		return nil
	})
	if err != nil || row.Status != journal.Updated || rows(t, home)[0].Open() {
		t.Errorf("the row is %s (%v)", row.Status, err)
	}
}

func TestLockHeld(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	release, err := home.Writer().Exclusive(t.Context(), "git pull")
	if err != nil {
		t.Fatal(err)
	}
	cmd := &command{home: home}
	_, err = newUpdater(t, home, trees{}, cmd, nil).Run(t.Context(), nil, update.Command{Args: []string{"pip", "install"}}, time.Millisecond)
	var held *journal.HeldError
	if !errors.As(err, &held) || !strings.Contains(held.Holder, "git pull") {
		t.Errorf("the error is %v, want the holder", err)
	}
	if len(cmd.log) != 0 || len(rows(t, home)) != 0 {
		t.Errorf("without the lock: %v, %d rows", cmd.log, len(rows(t, home)))
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
}

// TestCalledOff: an update whose caller has left before it began changes nothing, also when nobody holds the lock.
func TestCalledOff(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newUpdater(t, home, trees{}, nil, nil).Do(ctx, nil, "copy", 0, func(context.Context) error {
		t.Error("the update was made")
		return nil
	})
	if !errors.Is(err, context.Canceled) || len(rows(t, home)) != 0 {
		t.Errorf("called off: %v, %d rows", err, len(rows(t, home)))
	}
}

// fullJournal takes no rows.
type fullJournal struct{ journal.Store }

func (fullJournal) Append(context.Context, journal.Row) error { return errors.New("no space left") }

// TestNoRowNoUpdate: a command whose row cannot be written is abandoned before it does anything.
func TestNoRowNoUpdate(t *testing.T) {
	t.Parallel()
	home := memory.New(memory.Config{})
	cmd := &command{home: home}
	_, err := newUpdater(t, home, trees{"acme": "v1"}, cmd, fullJournal{home.Updates()}).
		Run(t.Context(), []witness.Root{root("acme")}, update.Command{Args: []string{"pull"}}, time.Second)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || strings.Join(cmd.log, " ") != "hold abandon" {
		t.Errorf("the error is %v and the command went through %v, want it held and abandoned", err, cmd.log)
	}
}

// TestOrphans: rows whose process is gone are closed with what the roots are now, by the next update or healer; those
// whose process lives are left alone.
func TestOrphans(t *testing.T) {
	t.Parallel()
	home, s := memory.New(memory.Config{}), trees{"acme": "v2"}
	self := host.Self()
	begun := func(id string, change func(*journal.Row)) {
		r := journal.Row{Schema: 1, ID: id, Status: journal.Begun, Begun: host.Now(), Boot: self.Boot, PIDNS: self.PIDNS, PID: self.PID, Start: self.Start,
			Roots: []journal.Root{{Name: "acme", Kind: "git", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}, From: "v1", FromRevision: "v1"}}}
		change(&r)
		if err := home.Updates().Append(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	parent, err := host.Process(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	begun("alive", func(r *journal.Row) { r.PID, r.Start, r.Command = parent.PID, parent.Start, []string{"pull"} })
	begun("its own, not closed", func(*journal.Row) {})
	begun("another start", func(r *journal.Row) { r.Start++ })
	begun("another boot", func(r *journal.Row) { r.Boot = "before" })
	begun("no process", func(r *journal.Row) { r.PID = 0 })
	begun("another namespace", func(r *journal.Row) { r.PIDNS = "pid:[1]" })
	begun("unchanged", func(r *journal.Row) { r.PID, r.Roots[0].From = 0, "v2" })
	// What still lives is waited for, as a holder of the lock is, and found also when the wait is over by then.
	for _, wait := range []time.Duration{1, 10 * time.Millisecond} {
		_, err = newUpdater(t, home, s, nil, nil).Do(t.Context(), nil, "nothing", wait, func(context.Context) error { return nil })
		var held *journal.HeldError
		if !errors.As(err, &held) || !strings.Contains(held.Holder, "pull") {
			t.Errorf("beside an update that lives, after %v: %v, want that it is shown as the holder", wait, err)
		}
	}
	want := map[string]journal.Status{"alive": journal.Begun, "its own, not closed": journal.Partial, "another start": journal.Partial, "another boot": journal.Partial,
		"no process": journal.Partial, "another namespace": journal.Begun, "unchanged": journal.Failed}
	for _, r := range rows(t, home) {
		w, ok := want[r.ID]
		if !ok {
			continue
		}
		if r.Status != w {
			t.Errorf("%s: the row is %s, want %s", r.ID, r.Status, w)
		}
		if w != journal.Begun && (r.Exit != -1 || r.ClosedBy == "" || r.Closed.IsZero() || r.Roots[0].To != "v2") {
			t.Errorf("%s: closed as %+v", r.ID, r)
		}
		delete(want, r.ID)
	}
	if len(want) != 0 {
		t.Errorf("the rows of %v are gone", want)
	}
}

func TestNewReportsEverything(t *testing.T) {
	t.Parallel()
	_, err := update.New(update.Config{})
	for _, f := range []string{"Journal", "Lock", "Instances", "Sources"} {
		if err == nil || !strings.Contains(err.Error(), f) {
			t.Errorf("the error does not name %s: %v", f, err)
		}
	}
}
