// Package doorbell is the note that a dying run leaves for the healer: what is known of one death, durable before the
// process is gone. Its content counts, not its name; a program in any language can drop one.
//
// Which call first: a host that is written in Go lets [Box.Ring] write the note. A program in another language writes
// one JSON object, as [JSONSchema] (note.schema.json beside this file) describes it, into a file of the doorbell folder:
// first under a name that begins with a dot, flushed, then renamed, and the folder flushed. examples/ringer does it in
// ten lines of Python. [Parse] is how such a file is read.
//
// What it refuses: a note that is no JSON object, lacks the run, has a value of the wrong kind or a field of an unknown
// name (a misspelt phase would be lost without a word), or is of a later version. The error names each field and what is
// allowed there. A note that cannot be read is never removed by the healer: a person is told once, with the reason code
// unreadable and the file's place.
//
// What is promised: a note is removed only after a record that owns the death was synced by the remover, or the death
// was answered. A note of a run whose program still lives waits until that has ended.
package doorbell

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Schema is the version of the note format that this package writes.
const Schema = 1

// TextLimit bounds the failure text of a note, in bytes; the end is kept.
const TextLimit = 64 << 10

// Note is one death. Run is required; what is missing otherwise is taken from the run's registration.
type Note struct {
	Schema int    `json:"schema"`
	Run    string `json:"run"`
	// At is when the run died; a box that can tell when a note was left takes that for one that does not say.
	At stamp.Time `json:"at"`
	// Phase is the high-water mark as the dying side knows it, empty when it does not.
	Phase run.Phase     `json:"phase,omitempty"`
	Exit  classify.Exit `json:"exit"`
	// Cause is a typed cause that the host knows for certain.
	Cause classify.Reason `json:"cause,omitempty"`
	// Text is the end of the failure text, at most TextLimit bytes, any encoding.
	Text Text `json:"text,omitempty"`
	// Identities are the roots' identities at the death; a root that is missing here was not read.
	Identities []witness.Identity `json:"identities,omitempty"`
	// Silenced says that the run's own failure notice was held back for the healer.
	Silenced bool `json:"silenced,omitempty"`
}

// Validate reports what is wrong with a note, naming the field.
func (n Note) Validate() error {
	if err := n.version(); err != nil {
		return err
	}
	switch {
	case n.Run == "":
		return errors.New("run: empty, want the run's id")
	case !utf8.ValidString(n.Run):
		return fmt.Errorf("run: %q is no valid UTF-8, and cannot be told in JSON", n.Run)
	case len(n.Text) > TextLimit:
		return fmt.Errorf("text: %d bytes, want at most %d", len(n.Text), TextLimit)
	case n.Phase == "", n.Phase == run.UnknownPhase:
		return nil
	}
	_, err := run.ParsePhase(string(n.Phase))
	return err
}

func (n Note) version() error {
	switch {
	case n.Schema > Schema:
		return fmt.Errorf("schema: %d is newer than %d: update mulligan", n.Schema, Schema)
	case n.Schema < 1:
		return fmt.Errorf("schema: %d, want 1 to %d", n.Schema, Schema)
	}
	return nil
}

// Text is failure text of any encoding: a JSON string where it is valid UTF-8, else an object with the bytes in
// base64.
type Text []byte

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.Valid(t) {
		return json.Marshal(string(t))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(t)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*t = Text(s)
		return nil
	}
	var o struct {
		Base64 []byte `json:"base64"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return fmt.Errorf("text: want a string or {\"base64\": ...}: %w", err)
	}
	*t = o.Base64
	return nil
}

// Item is one note in a box.
type Item struct {
	// ID names the note within its box, for Remove.
	ID   string
	Note Note
	// Err says why the note cannot be used; Note is then empty, and the item stays until a person removes it. ErrLater
	// says that it was not looked at yet.
	Err error
	// Place is where the note lies, for the person who has to see to it; empty where it lies in no file.
	Place string
}

// ErrLater is the Err of a note that lies there and was not read, because so much lies there that one look would fill the
// memory. It is among the first that the next look reads.
var ErrLater = errors.New("not read in this look: so much lies there")

// Box holds notes until they are decided.
type Box interface {
	// Ring leaves a note; it is durable when Ring returns.
	Ring(ctx context.Context, n Note) error
	// Pending are the notes that lie there, in no particular order. What one call holds in memory is bounded; see
	// ErrLater.
	Pending(ctx context.Context) ([]Item, error)
	// Remove takes a note away for good. One that is gone already is no error.
	Remove(ctx context.Context, id string) error
	// Watch sends on the channel after a note may have arrived, until ctx ends, and once when the watch stands and something
	// lies there: who calls it beside other work cannot tell when that is. Missed sends are allowed when the channel is
	// full: a receiver looks at Pending, not at the count.
	Watch(ctx context.Context, wake chan<- struct{}) error
}
