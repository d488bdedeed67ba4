package drain

import (
	"cmp"
	"context"
	"fmt"
	"runtime/pprof"
	"slices"
	"time"

	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Result is how a drain went.
type Result struct {
	// Found is how many were at work when it began.
	Found int
	// Cancelled is how many turns did not end by themselves.
	Cancelled int
	// Survivors did not end at all, the oldest first. They run until the process ends.
	Survivors []Survivor
	// Unmarked are turns that stayed open and whose mark could not be written: when they fail, nobody resumes them.
	Unmarked []Unmarked
	// Hurried is set when the wait was cut short by the context.
	Hurried bool
	// Overran is set when the teardown did not return in time. It still runs.
	Overran bool
	// Teardown is its error, nil when it overran.
	Teardown error
	// Took is the time from the beginning to the end.
	Took time.Duration
}

// Survivor is work that did not end within the grace.
type Survivor struct {
	Session string
	Turn    string // empty for what is no turn
	// Age is how long ago it was admitted.
	Age time.Duration
}

// Unmarked is a turn without a mark.
type Unmarked struct {
	Session string
	Turn    string
	Err     error
}

// The exit codes that a Result maps to.
const (
	ExitClean     = 0
	ExitSurvivors = 3
	ExitOverran   = 4
)

// ExitCode is the code with which the host may exit: 0 clean, 3 with survivors, 4 when the teardown overran, whoever
// survived. An error of a teardown that returned is the host's to judge.
func (r Result) ExitCode() int {
	switch {
	case r.Overran:
		return ExitOverran
	case len(r.Survivors) > 0:
		return ExitSurvivors
	}
	return ExitClean
}

func (d *Drain) run(ctx context.Context, o Order) (r Result) {
	m := newMarks(d, o)
	r.Found = len(d.inside())
	r.Hurried = d.wait(ctx, o, m)

	// From here no call begins, so what is cancelled is not in the middle of something that it just started. The marks
	// come first: a turn that ends as failed because it was cancelled must have its own by then.
	d.enter(Frozen)
	m.again(turns(o))
	m.wait()
	r.Cancelled = d.cancel(o, m)
	r.Survivors = d.survivors(o)
	m.wait()
	r.Unmarked = m.failed()

	d.enter(Leaving)
	r.Overran, r.Teardown = d.teardown(o)
	r.Took = time.Since(d.since)
	return r
}

// poll is how often the drain looks for turns of those who were admitted and whose turn had not begun by then.
const poll = 50 * time.Millisecond

// until looks, and looks again whenever somebody left and every poll, until nobody is inside or the time that look gives
// has come. It reports whether the context ended first.
func (d *Drain) until(ctx context.Context, o Order, look func(in []admission, open []*sessions.Turn) time.Time) (cut bool) {
	for {
		open := turns(o) // before inside: a turn leaves the one after the other
		in := d.inside()
		end := look(in, open)
		rest := time.Until(end)
		if len(in) == 0 || rest <= 0 {
			return false
		}
		timer := time.NewTimer(min(rest, poll))
		select {
		case <-ctx.Done():
			timer.Stop()
			return true
		case <-d.left:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// wait is until everybody has left, or the budgets of those who have not are used up.
func (d *Drain) wait(ctx context.Context, o Order, m *marks) (cut bool) {
	return d.until(ctx, o, func(in []admission, open []*sessions.Turn) time.Time {
		m.ask(open)
		bySession := map[string]*sessions.Turn{}
		for _, t := range open {
			bySession[t.Session()] = t
		}
		var longest time.Duration
		for _, a := range in {
			longest = max(longest, d.budget(bySession[a.name]))
		}
		return d.since.Add(longest)
	})
}

func (d *Drain) budget(t *sessions.Turn) time.Duration {
	if t == nil || d.c.Budget == nil {
		return d.c.Wait
	}
	if b := d.c.Budget(t); b > 0 {
		return min(b, d.c.MaxWait)
	}
	return d.c.Wait
}

// cancel cancels the turns that are left and gives them the grace. A turn that begins only now is marked and cancelled
// as well.
func (d *Drain) cancel(o Order, m *marks) int {
	d.mu.Lock()
	why := d.refusal()
	d.mu.Unlock()
	cancelled := map[*sessions.Turn]bool{}
	end := time.Now().Add(d.c.Grace)
	d.until(context.Background(), o, func(_ []admission, open []*sessions.Turn) time.Time {
		m.ask(open)
		for _, t := range open {
			if !cancelled[t] {
				cancelled[t] = true
				t.Cancel(why)
			}
		}
		return end
	})
	return len(cancelled)
}

func turns(o Order) []*sessions.Turn {
	if o.Sessions == nil {
		return nil
	}
	return o.Sessions.Turns()
}

// inside are those who were admitted and have not left, the oldest first.
func (d *Drain) inside() (out []admission) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for a := range d.admitted {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b admission) int {
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(a.name, b.name))
	})
	return out
}

func (d *Drain) survivors(o Order) (out []Survivor) {
	bySession := map[string]string{}
	for _, t := range turns(o) {
		bySession[t.Session()] = t.ID()
	}
	for _, a := range d.inside() {
		s := Survivor{Session: a.name, Turn: bySession[a.name], Age: time.Since(a.since)}
		d.c.Log.Warn("a turn survived the drain", "session", s.Session, "turn", s.Turn, "age", s.Age)
		out = append(out, s)
	}
	return out
}

// teardown runs the host's, and writes all stacks when it does not come back.
func (d *Drain) teardown(o Order) (overran bool, err error) {
	if o.Teardown == nil {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), d.c.Teardown*4/5)
	done := make(chan error, 1)
	go func() {
		defer cancel()
		done <- o.Teardown(ctx)
	}()
	watchdog := time.NewTimer(d.c.Teardown)
	defer watchdog.Stop()
	select {
	case err := <-done:
		if err != nil {
			err = fmt.Errorf("tear down: %w", err)
		}
		return false, err
	case <-watchdog.C:
		d.dump()
		return true, nil
	}
}

func (d *Drain) dump() {
	done := make(chan error, 1)
	go func() {
		_, err := fmt.Fprintf(d.c.Dump, "the teardown did not return within %v; these goroutines are there:\n", d.c.Teardown)
		if err == nil {
			err = pprof.Lookup("goroutine").WriteTo(d.c.Dump, 2)
		}
		done <- err
	}()
	timer := time.NewTimer(dumpTime)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			d.c.Log.Error("the stacks could not be written", "error", err)
		}
	case <-timer.C:
		d.c.Log.Error("the stacks could not be written in time", "bound", dumpTime)
	}
}
