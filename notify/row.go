package notify

import (
	"context"
	"slices"
	"time"
)

// Tone is the colour a row is shown in.
type Tone string

// The tones.
const (
	Amber Tone = "amber" // recovery: put back, or being put back
	Red   Tone = "red"   // something a person has to look at
	Dim   Tone = "dim"   // for the record
)

// Row is one notice. Its key is stable: whoever shows it replaces the row that has the key, so that a person sees one
// row however often it is delivered.
type Row struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"`
	Glyph string    `json:"glyph,omitempty"`
	Tone  Tone      `json:"tone"`
	Title string    `json:"title"`
	Notes []Note    `json:"notes,omitempty"`
	At    time.Time `json:"at"`
	// Toast asks for one sound or popup. A sink that knows the key already shows none.
	Toast bool `json:"toast,omitempty"`
	// Loud marks an escalation.
	Loud bool `json:"loud,omitempty"`
	// Episode and Report point at the episode and its live report, where there is one.
	Episode string `json:"episode,omitempty"`
	Report  string `json:"report,omitempty"`
}

// Note is one line below a row's title. A note whose ID is there already is replaced.
type Note struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Shown is the note's text as a sink shows it, on one line and harmless. A path or a command that is there to be copied
// (the notes "workspace" and "next") keeps every space, see [Exact]; all other text is a [Line].
func (n Note) Shown() string { return n.fit(0) }

// fit is Shown, with free text cut at limit.
func (n Note) fit(limit int) string {
	if n.ID == "workspace" || n.ID == "next" {
		return Exact(n.Text)
	}
	return Line(n.Text, limit)
}

// Notifier shows rows to people. Delivery is at-least-once: a nil error acknowledges, anything else means that the row
// comes again. Notify may be called by several goroutines at once and returns when ctx ends; the package notifytest
// holds an implementation to this.
type Notifier interface {
	Notify(ctx context.Context, r Row) error
}

// Merge is the row that a sink holds after an arrival: what it held under the key, the zero Row for nothing, and what
// came. It is how every sink upserts:
//
//   - the toast sounds only when the key is new to the sink, so a repeated delivery is silent;
//   - no note is lost: a note that came replaces the one with its ID in place, others are added below;
//   - a row that is older than the one held (two healers, an answer that took the long way) adds the notes that were
//     missing and changes nothing else.
//
// Merge alters neither row. Rows of different keys are not combined: then the arrival is returned as it is.
func Merge(held, came Row) Row {
	if held.Key == "" || held.Key != came.Key {
		came.Notes = slices.Clone(came.Notes)
		return came
	}
	next, stale := came, came.At.Before(held.At)
	if stale {
		next = held
	}
	next.Toast = false
	next.Notes = slices.Clone(held.Notes)
	for _, n := range came.Notes {
		i := slices.IndexFunc(next.Notes, func(h Note) bool { return h.ID == n.ID })
		switch {
		case i < 0:
			next.Notes = append(next.Notes, n)
		case !stale:
			next.Notes[i] = n
		}
	}
	return next
}
