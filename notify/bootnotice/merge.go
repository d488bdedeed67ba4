package bootnotice

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
)

// Way is how a message gets into a session.
type Way string

// The ways.
const (
	ByWake   Way = "wake"   // a turn begins with it
	ByInject Way = "inject" // it waits for the next turn
	InTurn   Way = "turn"   // it is part of the turn that resumes the session
)

// Delivery is one message to one session: all that it has to be told in this boot.
type Delivery struct {
	// ID is that of the newest notice, and stands in the text. Acknowledging it acknowledges all of them.
	ID      string
	Session string
	Way     Way
	Text    string
	// Notices are the ids of all that are merged in it, the newest first.
	Notices []string
}

// Merge makes one delivery of the pending notices of a session, for an instance that has not tried any of them yet. ok is
// false when there is nothing to deliver, or the session is not to be told. The newest notice speaks; what older ones
// asked for is added to it.
func Merge(all []Notice, name, instance string, r Ruling, c Config) (d Delivery, ok bool) {
	var own []Notice
	for _, n := range all {
		if n.Session != name || n.State != Pending {
			continue
		}
		if n.Tried(instance) {
			return Delivery{}, false // one message for each session and boot
		}
		own = append(own, n)
	}
	if len(own) == 0 || r.Fate == Aborted || c.Disabled {
		return Delivery{}, false
	}
	slices.SortStableFunc(own, func(a, b Notice) int {
		switch {
		case a.Boot.At.After(b.Boot.At):
			return -1
		case b.Boot.At.After(a.Boot.At):
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	d = Delivery{ID: own[0].ID, Session: name, Way: Way(c.Mode)}
	switch r.Fate {
	case Resumed:
		d.Way = InTurn
	case Held, Attended:
		d.Way = ByInject
	}
	for _, n := range own {
		d.Notices = append(d.Notices, n.ID)
	}
	d.Text = Text(own, r, c)
	return d, true
}

// reasonLimit bounds what an agent gave as its reason, so that it does not look like more than that.
const reasonLimit = 300

// Header is the first line of every notice. It says whose it is, so that nobody takes it for a person's words.
func Header(id string) string { return "[Mulligan restart notice " + id + "]" }

// Text is the message for notices of one session, the newest first.
func Text(own []Notice, r Ruling, c Config) string {
	n := own[0]
	if c.Text != "" {
		return Header(n.ID) + "\n" + c.Text + held(r)
	}
	var b strings.Builder
	b.WriteString(Header(n.ID) + "\n")
	fmt.Fprintf(&b, "%s at %s.", happened(n.Boot.Kind), minute(n.Boot.At))
	if !n.Boot.Previous.IsZero() {
		fmt.Fprintf(&b, " The previous boot was at %s.", minute(n.Boot.Previous))
	}
	if n.Boot.Known {
		fmt.Fprintf(&b, " Downtime: ~%s.", stamp.Short(n.Boot.Downtime))
	}
	if earlier := len(own) - 1; earlier > 0 {
		fmt.Fprintf(&b, " You were not told of %d earlier restart%s.", earlier, plural(earlier))
	}
	b.WriteString("\nReason: " + reason(own) + ".\n")
	if len(n.Others) > 0 {
		fmt.Fprintf(&b, "Also interrupted: %s.\n", some(n.Others))
	}
	b.WriteString(closing(own, n.ID))
	return b.String() + held(r)
}

// some names the first sessions of a list and counts the rest.
func some(names []string) string {
	const most = 10
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func happened(k Kind) string {
	switch k {
	case HostReboot:
		return "The host was rebooted, and this process came back"
	case ExecInPlace:
		return "This process was replaced in place"
	}
	return "This process was restarted"
}

// reason says why it restarted, what a session asked for first.
func reason(own []Notice) string {
	var asked []string
	for _, n := range own {
		if n.Why == Requested {
			text := "you asked for it"
			if why := notify.Line(n.Reason, reasonLimit); why != "" {
				text += " (" + why + ")"
			}
			asked = append(asked, text)
		}
	}
	switch {
	case len(asked) > 0:
		return strings.Join(asked, "; ")
	case own[0].Boot.Clean:
		return "it was stopped, and no session had asked for that"
	case own[0].Boot.Stopped.IsZero():
		return "not known; what the last run left could not be read"
	}
	return "it ended without a word (a crash, a kill or a power loss)"
}

func closing(own []Notice, id string) string {
	mid := slices.ContainsFunc(own, func(n Notice) bool { return n.MidTurn })
	ack := "acknowledge " + id
	if mid {
		return "You were in the middle of a turn. Resume what you were doing, or " + ack + " if there is nothing left to do."
	}
	return "Resume what is still open, or " + ack + " if there is nothing to do."
}

func held(r Ruling) string {
	if r.Fate != Held {
		return ""
	}
	text := "\nThe session was not continued by itself: " + r.Reason + "."
	if r.Way != "" {
		text += " To go on: " + r.Way + "."
	}
	return text
}

func minute(t stamp.Time) string { return t.Wall.UTC().Format("2006-01-02 15:04:05 UTC") }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}
