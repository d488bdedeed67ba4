// Package doorbell is the note that a dying run leaves for the healer: what is known of one death, durable before the
// process is gone. Its content counts, not its name; a program in any language can drop one.
//
// [Box] is where notes lie. A note is removed only after a record that owns the death was synced by the remover, or
// the death was answered.
package doorbell

import (
	"context"
	"encoding/base64"
	"encoding/json"
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
	Schema int        `json:"schema"`
	Run    string     `json:"run"`
	At     stamp.Time `json:"at"`
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
	switch {
	case n.Schema > Schema:
		return fmt.Errorf("schema: %d is newer than %d: update mulligan", n.Schema, Schema)
	case n.Schema < 1:
		return fmt.Errorf("schema: %d, want 1 to %d", n.Schema, Schema)
	case n.Run == "":
		return fmt.Errorf("run: empty, want the run's id")
	case len(n.Text) > TextLimit:
		return fmt.Errorf("text: %d bytes, want at most %d", len(n.Text), TextLimit)
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
	// Err says why the note cannot be used; Note is then empty, and the item stays until a person removes it.
	Err error
}

// Box holds notes until they are decided.
type Box interface {
	// Ring leaves a note; it is durable when Ring returns.
	Ring(ctx context.Context, n Note) error
	// Pending are the notes that lie there, in no particular order.
	Pending(ctx context.Context) ([]Item, error)
	// Remove takes a note away for good. One that is gone already is no error.
	Remove(ctx context.Context, id string) error
	// Watch sends on the channel after a note may have arrived, until ctx ends. Missed sends are allowed when the
	// channel is full: a receiver looks at Pending, not at the count.
	Watch(ctx context.Context, wake chan<- struct{}) error
}
