package classify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Case is one death in the format of classification vectors: what the host declared, how the process ended and the tail
// of its log. Fields of the format that carry labels or provenance are not read.
type Case struct {
	// ID names the case in the answer.
	ID string
	// Phase is the host's phase at the death. It never changes a verdict.
	Phase string
	Input Input
}

// ErrCase is matched by every error of [DecodeCase].
var ErrCase = errors.New("not a classification case")

// CaseError says what is wrong with a case, field by field.
type CaseError struct {
	// ID is the id of the case, empty if that could not be read.
	ID string
	// Problems name a field each, in the order of the format.
	Problems []string
}

// Error is "decode case ID: FIELD: what is wrong; FIELD: ...", so that one run tells all there is to repair.
func (e *CaseError) Error() string {
	name := ""
	if e.ID != "" {
		name = " " + e.ID
	}
	return "decode case" + name + ": " + strings.Join(e.Problems, "; ")
}

// Is reports whether target is [ErrCase].
func (e *CaseError) Is(target error) bool { return target == ErrCase }

// wireCase is the case as it is written.
type wireCase struct {
	ID      json.RawMessage `json:"id"`
	Managed json.RawMessage `json:"managed"`
	Roots   json.RawMessage `json:"workspace_roots"`
	Phase   json.RawMessage `json:"phase"`
	Exit    json.RawMessage `json:"exit"`
	Text    json.RawMessage `json:"text"`
	Base64  json.RawMessage `json:"text_base64"`
}

type wireManaged struct {
	Modules  []string `json:"modules"`
	Roots    []string `json:"roots"`
	Bindings []string `json:"bindings"`
}

// DecodeCase reads one case. All managed folders, modules and bindings of a case are one root, "managed". Its errors are
// [*CaseError] and name every field that is wrong.
func DecodeCase(data []byte) (Case, error) {
	var w wireCase
	// Every field is kept raw at first. A field of a wrong type must not hide what is wrong with the next one.
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&w); err != nil {
		return Case{}, &CaseError{Problems: []string{"not a JSON object: " + plain(err)}}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Case{}, &CaseError{Problems: []string{"more than one JSON value"}}
	}
	var c Case
	e := &CaseError{}
	e.field("id", w.ID, &c.ID)
	if len(e.Problems) == 0 && c.ID == "" {
		e.Problems = append(e.Problems, "id: missing or empty")
	}
	e.ID = c.ID
	var m wireManaged
	e.field("managed", w.Managed, &m)
	e.field("workspace_roots", w.Roots, &c.Input.Workspaces)
	e.field("phase", w.Phase, &c.Phase)
	e.field("exit", w.Exit, &c.Input.Exit)
	// Text that is not valid UTF-8 cannot stand in JSON; such a case carries the bytes in base64 instead. Both at once
	// would leave open which of them is meant.
	switch {
	case present(w.Text) && present(w.Base64):
		e.Problems = append(e.Problems, "text, text_base64: both are given")
	case present(w.Text):
		var s string
		e.field("text", w.Text, &s)
		c.Input.Text = []byte(s)
	case present(w.Base64):
		var s string
		e.field("text_base64", w.Base64, &s)
		b, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			e.Problems = append(e.Problems, "text_base64: "+err.Error())
		}
		c.Input.Text = b
	default:
		e.Problems = append(e.Problems, "text: missing, and no text_base64 either")
	}
	if len(e.Problems) > 0 {
		return Case{}, e
	}
	c.Input.Roots = []Root{{Name: "managed", Dirs: m.Roots, Modules: m.Modules, Bindings: m.Bindings}}
	return c, nil
}

// present reports a field that is there and not null.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// field decodes one field, and keeps what is wrong with it.
func (e *CaseError) field(name string, raw json.RawMessage, into any) {
	if !present(raw) {
		return
	}
	if err := json.Unmarshal(raw, into); err != nil {
		e.Problems = append(e.Problems, name+": "+plain(err))
	}
}

// plain words a JSON error without the decoder's own names.
func plain(err error) string {
	var t *json.UnmarshalTypeError
	if errors.As(err, &t) {
		at := ""
		if t.Field != "" {
			at = t.Field + ": "
		}
		return fmt.Sprintf("%s%s where %s is wanted", at, t.Value, kindName(t.Type.Kind().String()))
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// kindName words a Go kind for people who write JSON.
func kindName(k string) string {
	switch k {
	case "slice":
		return "a list"
	case "struct", "map":
		return "an object"
	case "int":
		return "a whole number"
	}
	return "a " + k
}

// Answer is the verdict on a case, one line of JSON.
type Answer struct {
	ID             string      `json:"id"`
	Disposition    Disposition `json:"disposition"`
	Family         Family      `json:"family"`
	Reason         Reason      `json:"reason"`
	Exception      string      `json:"exception"`
	Module         string      `json:"module"`
	Symbol         string      `json:"symbol"`
	ManagedModules []string    `json:"managed_modules"`
}

// Answer pairs a verdict with the case it was given on.
func (c Case) Answer(v Verdict) Answer {
	// Readers in other languages index the list without a test for null.
	mods := v.ManagedModules
	if mods == nil {
		mods = []string{}
	}
	return Answer{c.ID, v.Disposition, v.Family, v.Reason, v.Exception, v.Module, v.Symbol, mods}
}
