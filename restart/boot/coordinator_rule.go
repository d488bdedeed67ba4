package boot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

// later leaves the notice where it is: the next pass of auto-resume takes the session up and the notice along, or else the
// next boot tells it.
var later = bootnotice.Ruling{Fate: bootnotice.Resumed}

// rule is what auto-resume says of a session right before its notice is delivered. It is asked anew each time, and not
// taken from the pass: an operator may have answered meanwhile.
func (c *Coordinator) rule(ctx context.Context, name string) bootnotice.Ruling {
	item, st := c.runner.Look(ctx, name)
	if bad := (*session.UnreadableError)(nil); errors.As(item.Err, &bad) {
		return later // no attempt is used up on a log that takes nothing
	}
	if (item.Outcome == resume.Owned || item.Outcome == resume.Woken) && c.runner.Running(name) {
		return later // the turn that has just begun takes the notice along; what is being given back is seen after the pass
	}
	if owed := c.owed.Load(); owed > 0 && (item.Outcome == resume.Woken || item.Outcome == resume.Capped) && int64(c.runner.Left()) <= owed {
		return later // the places are for those that are resumed; what they leave is seen after the pass
	}
	return rulingOf(item.Decision, st, name, st.Head.Owner.Same(c.c.Sessions.Instances.Self()))
}

// rulingOf turns a decision about a session into how it is told. The way out is a command that a person can type.
func rulingOf(d resume.Decision, st session.Status, name string, ours bool) bootnotice.Ruling {
	switch d.Outcome {
	case resume.Woken:
		return bootnotice.Ruling{}
	case resume.Resumed, resume.Cleared, resume.Draining, resume.NotAdmitted:
		return later
	case resume.Aborted:
		return bootnotice.Ruling{Fate: bootnotice.Aborted}
	case resume.Owned:
		switch {
		case ours && st.Headline == session.Running:
			return bootnotice.Ruling{Fate: bootnotice.Attended}
		case ours:
			return later // it was just taken, to be resumed or cleared
		case st.Liveness != ledger.Alive:
			return later // a store of several machines takes a while to prove it
		}
	case resume.Paused:
		return heldBy(d, answer(st.Head, name))
	case resume.SkippedAmbiguous:
		return heldBy(d, resolve(st.Head, name))
	case resume.SkippedLoopbreak:
		return heldBy(d, command("release", name))
	case resume.SkippedStale, resume.Capped, resume.Tried:
		return heldBy(d, command("resume", name))
	}
	return heldBy(d, show(name))
}

func heldBy(d resume.Decision, way string) bootnotice.Ruling {
	return bootnotice.Ruling{Fate: bootnotice.Held, Reason: d.Text, Way: way}
}

func show(name string) string { return command("show", name) }

// answer names the question that stands first.
func answer(h session.Head, name string) string {
	for _, list := range [][]session.Open{h.Gates, h.Parks} {
		if len(list) > 0 {
			return command("answer", name, list[0].Interrupt, "--text") + " TEXT"
		}
	}
	return show(name)
}

// resolve names the oldest call of which nobody knows whether it happened.
func resolve(h session.Head, name string) string {
	for _, c := range h.Calls {
		if c.Class != session.Spawning {
			return command("resolve", name, fmt.Sprint(c.Seq)) + " (happened | did-not-happen | compensated), or " +
				command("ack", name, "--through", fmt.Sprint(h.Last))
		}
	}
	return show(name)
}

// command is one about sessions, as it is typed into a shell.
func command(verb string, args ...string) string {
	var b strings.Builder
	b.WriteString("mulligan sessions " + verb)
	for _, a := range args {
		if a == "" || strings.ContainsFunc(a, special) {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		b.WriteString(" " + a)
	}
	return b.String()
}

func special(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_-.:/@+,=", r):
		return false
	}
	return true
}
