package bootnotice

import (
	"slices"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Session is what the decision needs to know of a session, as it was at the stop.
type Session struct {
	Name string
	// MidTurn is set when a turn was under way that the stop cut off.
	MidTurn bool
	// Active is when it last did something.
	Active stamp.Time
}

// Sessions are the sessions at the stop: those of the store as status shows them, together with the activity that the
// marker tells of, for hosts that keep no store. A turn of another living process's is none of ours, and an interruption
// from before the instance that stopped was told then.
func Sessions(last *Marker, stored []session.Status) []Session {
	byName := map[string]*Session{}
	var out []*Session
	get := func(name string) *Session {
		if byName[name] == nil {
			byName[name] = &Session{Name: name}
			out = append(out, byName[name])
		}
		return byName[name]
	}
	for _, st := range stored {
		s := get(st.Head.Session)
		// The takeover of a session by this boot is nothing that the session did.
		s.Active = lastActive(st.Head)
		if i := st.Interruption; i != nil {
			s.MidTurn = cutOff(last, st, *i)
		}
		// A store of several machines cannot prove at once that the instance before is dead. We took its place, so it is.
		if st.Head.Turn != nil && last != nil && st.Head.Owner.Same(last.Instance) {
			s.MidTurn = true
		}
	}
	if last != nil {
		for _, a := range last.Active {
			s := get(a.Session)
			s.MidTurn, s.Active = true, later(s.Active, a.At)
		}
		if last.Last.Session != "" {
			s := get(last.Last.Session)
			s.Active = later(s.Active, last.Last.At)
		}
	}
	flat := make([]Session, len(out))
	for i, s := range out {
		flat[i] = *s
	}
	return flat
}

// lastActive is when the session's owner last wrote; what others appended to it (an answer, an abort) was not its work.
func lastActive(h session.Head) stamp.Time {
	at := h.Proof
	if h.Turn != nil {
		at = later(at, h.Turn.Seen)
	}
	if at.IsZero() {
		return h.At
	}
	return at
}

func cutOff(last *Marker, st session.Status, i session.Interruption) bool {
	if last == nil || last.Corrupt {
		return true // nobody knows whose turn it was: better told than forgotten
	}
	if st.Head.Turn != nil && st.Head.Owner.ID != "" && !st.Head.Owner.Same(last.Instance) {
		return false
	}
	return !i.Since.Before(last.Started)
}

// Input is all that the decision is made from.
type Input struct {
	Boot     Boot
	Requests []Request
	// Sessions are those at the stop; see [Sessions].
	Sessions []Session
	// Startup are the sessions of the root agents that this boot starts, in their order: the target is among them.
	Startup []string
	// Present are the sessions that are there by now. Over says that nobody waits for more of them.
	Present []string
	Over    bool
	// Config has its defaults filled in.
	Config Config
}

// Decision is who is told.
type Decision struct {
	// Notices are all, also those of sessions that are not there yet: they are written down before anything else happens,
	// because this process may die while it waits.
	Notices []Notice
	// Passed are the notices whose sessions did not appear in time, so that the target is told in their place.
	Passed []string
}

// Decide names the notices for a boot. Called again, with more sessions present or with the wait over, it gives the same
// notices, and at the end those of the target where nobody else was there to be told.
func Decide(in Input) Decision {
	var d Decision
	if !in.Boot.Kind.Restart() || in.Config.Disabled {
		return d
	}
	// What was asked for so long ago was never done: this is another restart.
	in.Requests = slices.DeleteFunc(slices.Clone(in.Requests), func(r Request) bool { return in.Boot.At.Sub(r.At) > Expiry })
	if len(in.Requests) > 0 {
		d.Notices = requested(in)
	} else {
		d.Notices = unplanned(in)
	}
	// A session that asked is told, and nobody in its place, however late it comes; so is one that this boot starts.
	certain := func(n Notice) bool {
		return slices.Contains(in.Present, n.Session) || slices.Contains(in.Startup, n.Session)
	}
	if len(in.Requests) > 0 || slices.ContainsFunc(d.Notices, certain) || len(d.Notices) > 0 && !in.Over {
		return in.named(d)
	}
	for _, n := range d.Notices {
		d.Passed = append(d.Passed, n.ID)
	}
	for _, s := range in.targets() {
		d.Notices = append(d.Notices, in.notice(s, Target))
	}
	return in.named(d)
}

// requested are the notices of the sessions that asked, one for each.
func requested(in Input) (out []Notice) {
	for _, r := range in.Requests {
		n := in.notice(r.Session, Requested)
		n.Reason, n.Made = r.Reason, r.At
		i := slices.IndexFunc(out, func(o Notice) bool { return o.Session == r.Session })
		if i < 0 {
			out = append(out, n)
		} else if r.Reason != "" && out[i].Reason != r.Reason {
			out[i].Reason += "; " + r.Reason
		}
	}
	return out
}

func unplanned(in Input) (out []Notice) {
	var recent *Session
	for _, s := range in.Sessions {
		if in.Config.ignores(s.Name) {
			continue
		}
		if s.MidTurn {
			out = append(out, in.notice(s.Name, Unplanned))
		}
		// Measured at the stop: how long the machine was off afterwards says nothing about the session.
		if !in.Boot.Stopped.IsZero() && !s.Active.IsZero() && in.Boot.Stopped.Sub(s.Active) <= in.Config.Grace &&
			in.Config.Grace > 0 && (recent == nil || s.Active.After(recent.Active)) {
			recent = &s
		}
	}
	if recent != nil && !recent.MidTurn {
		out = append(out, in.notice(recent.Name, Unplanned))
	}
	return out
}

// targets are the sessions of the target rule: only such that this boot starts.
func (in Input) targets() []string {
	switch in.Config.Target {
	case Primary:
		return in.Startup[:min(1, len(in.Startup))]
	case All:
		return in.Startup
	}
	if slices.Contains(in.Startup, in.Config.Target) {
		return []string{in.Config.Target}
	}
	return nil
}

func (in Input) notice(name string, why Why) Notice {
	n := Notice{ID: NoticeID(in.Boot.ID, name), Session: name, Why: why, Boot: in.Boot, Made: in.Boot.At, State: Pending}
	for _, s := range in.Sessions {
		n.MidTurn = n.MidTurn || s.Name == name && s.MidTurn
	}
	return n
}

// named puts the sessions that were cut off and are told nothing into the notices of the others.
func (in Input) named(d Decision) Decision {
	told := func(name string) bool {
		return slices.ContainsFunc(d.Notices, func(n Notice) bool {
			return n.Session == name && !slices.Contains(d.Passed, n.ID)
		})
	}
	var others []string
	for _, s := range in.Sessions {
		if s.MidTurn && !told(s.Name) && !in.Config.ignores(s.Name) {
			others = append(others, s.Name)
		}
	}
	for i := range d.Notices {
		d.Notices[i].Others = others
	}
	return d
}

// Fate is what the boot coordinator decided about a session before notices are delivered.
type Fate string

// The fates.
const (
	Free    Fate = ""        // auto-resume has nothing to do with it
	Resumed Fate = "resumed" // the notice travels inside the turn that resumes it
	Held    Fate = "held"    // skipped, quarantined or paused: told without being woken
	Aborted Fate = "aborted" // told nothing
	// Attended means that its host runs a turn of it: told without being woken, and there is nothing to explain.
	Attended Fate = "attended"
)

// Ruling is a fate with its words.
type Ruling struct {
	Fate Fate `json:"fate"`
	// Reason is why a session is held, and Way what leads out of it, a command or a sentence.
	Reason string `json:"reason,omitempty"`
	Way    string `json:"way,omitempty"`
}

// RulingOf is the ruling that follows from a session's state alone, for hosts without auto-resume.
func RulingOf(st session.Status) Ruling {
	switch {
	case st.Headline == session.Aborted:
		return Ruling{Fate: Aborted}
	case st.Headline == session.Paused:
		return Ruling{Fate: Held, Reason: "the session is paused on a question",
			Way: "answer the question: mulligan sessions show " + st.Head.Session}
	case st.Quarantined:
		return Ruling{Fate: Held, Reason: "the session is quarantined after attempts that did not complete a turn",
			Way: "release it: mulligan sessions release " + st.Head.Session}
	case st.Ambiguous && st.Interruption != nil && st.Liveness != ledger.Alive:
		return Ruling{Fate: Held, Reason: "it is not known whether an earlier action of it took effect",
			Way: "resolve or acknowledge the open calls: mulligan sessions show " + st.Head.Session}
	}
	return Ruling{}
}
