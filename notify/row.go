package notify

import (
	"context"

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

// Notifier shows rows to people. Delivery is at-least-once: a nil error acknowledges.
type Notifier interface {
	Notify(ctx context.Context, r Row) error
}
