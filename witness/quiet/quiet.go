// Package quiet decides whether the managed trees are at rest, so that what is read of them now is what a replacement
// will run. An update under way, or one that ended a moment ago, may still change files.
//
// Call [Check] with what was seen; it holds no clock and reads nothing. A tree is not quiet while somebody holds the
// writer lock, while the command of an open journal row lives, when a root changed less than the quiescence ago, or
// when no change signal of a root can be read: not knowing is never taken for rest.
//
// The [Result] says why in one sentence and when to look again.
package quiet

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Input is everything the rule looks at.
type Input struct {
	Now stamp.Time
	// Quiescence is how long a root must have been at rest.
	Quiescence time.Duration
	// LockHeld is set when somebody holds the writer lock; Holder says who, in words.
	LockHeld bool
	Holder   string
	// Open are the journal rows that have not been closed.
	Open []Update
	// Roots are the roots that the death involves.
	Roots []Root
}

// Update is an open journal row.
type Update struct {
	Row journal.Row
	// Alive is set when the row's command lives, or when that cannot be told.
	Alive bool
}

// Root is what a source said of a root's last change.
type Root struct {
	Name       string
	LastChange stamp.Time
	// Err is why no change signal could be read, nil when LastChange holds.
	Err error
	// Since is when this very LastChange was first seen, for callers that remember; zero for none. A change stamped in
	// the future (the clock was set back) has no age; with Since it counts from there.
	Since stamp.Time
}

// Result is the answer.
type Result struct {
	Quiet bool `json:"quiet"`
	// Why is one plain sentence, empty when the trees are quiet.
	Why string `json:"why,omitempty"`
	// Until is when it is worth looking again; zero when the trees are quiet.
	Until stamp.Time `json:"until"`
}

// Check applies the rule. Where several reasons hold the first of this order is told: lock, command, root without a
// signal, latest change. Until is the latest of what each of them asks for.
func Check(in Input) Result {
	c := &check{now: in.Now, quiescence: max(in.Quiescence, 0)}
	if in.LockHeld {
		who := in.Holder
		if who == "" {
			who = "somebody"
		}
		c.unquiet(c.later(), "the writer lock is held by %s", who)
	}
	for _, u := range in.Open {
		if u.Alive {
			c.unquiet(c.later(), "update %s is under way (%s, since %s)", u.Row.ID, command(u.Row), u.Row.Begun)
		}
	}
	for _, r := range in.Roots {
		switch {
		case errors.Is(r.Err, witness.ErrChanging):
			c.unquiet(c.later(), "%v", r.Err)
		case r.Err != nil:
			c.unquiet(c.later(), "no change signal of root %s can be read: %v", r.Name, r.Err)
		case r.LastChange.IsZero():
			c.unquiet(c.later(), "no change signal of root %s can be read: its source named no moment", r.Name)
		}
	}
	c.changes(in.Roots)
	return c.result
}

// slack is how far ahead of the reader's clock a file's time may be without a word about a jump.
const slack = 2 * time.Second

type check struct {
	now        stamp.Time
	quiescence time.Duration
	result     Result
	told       bool
}

// unquiet keeps the first reason and the latest moment.
func (c *check) unquiet(until stamp.Time, format string, args ...any) {
	if !c.told {
		c.told = true
		c.result.Why = fmt.Sprintf(format, args...)
	}
	if c.result.Until.IsZero() || until.Sub(c.result.Until) > 0 {
		c.result.Until = until
	}
}

// later is the earliest moment at which a tree that may change right now can be at rest. Without a quiescence it is
// still a moment on, so that a caller does not spin.
func (c *check) later() stamp.Time { return c.now.Add(max(c.quiescence, time.Second)) }

// changes looks at the root that changed last: its rest is the shortest.
func (c *check) changes(roots []Root) {
	var newest *Root
	var rest time.Duration
	for i := range roots {
		r := &roots[i]
		if r.Err != nil || r.LastChange.IsZero() {
			continue
		}
		age := c.age(r)
		if age < c.quiescence && (newest == nil || age < rest) {
			newest, rest = r, age
		}
	}
	defer func() { c.result.Quiet = !c.told }()
	if newest == nil {
		return
	}
	until := c.now.Add(c.quiescence - rest)
	if ahead := newest.LastChange.Sub(c.now); ahead > slack {
		c.unquiet(until, "root %s carries a change time %s in the future; the clock was set back", newest.Name, stamp.Short(ahead))
		return
	}
	if rest < time.Second {
		c.unquiet(until, "root %s changed just now", newest.Name)
		return
	}
	c.unquiet(until, "root %s changed %s ago, less than %s", newest.Name, stamp.Short(rest), stamp.Short(c.quiescence))
}

// age is how long a root has certainly been at rest: a coarse stamp may mean its last moment. A change cannot come from
// the future, so one that is stamped there is at least as old as the first look that saw it.
func (c *check) age(r *Root) time.Duration {
	age := c.now.Sub(r.LastChange) - r.LastChange.Grain
	if c.now.Sub(r.LastChange) >= 0 {
		return max(age, 0)
	}
	if r.Since.IsZero() {
		return 0
	}
	return max(c.now.Sub(r.Since), 0)
}

func command(r journal.Row) string {
	if len(r.Command) == 0 {
		return "its command was not recorded"
	}
	line := []rune(strings.Join(r.Command, " "))
	const most = 60
	if len(line) > most {
		return string(line[:most-1]) + "…"
	}
	return string(line)
}
