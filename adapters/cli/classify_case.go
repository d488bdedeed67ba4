package cli

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"unicode"

	"github.com/mulligan-dev/mulligan/classify"
)

// caseFunc takes a case. skipped is how much of the text's beginning was not read.
type caseFunc func(id string, in classify.Input, skipped int64) error

// readEnd reads the end of plain text, as much as the classifier looks at. Of a file nothing else is read, a stream is read
// through in bounded memory.
func readEnd(b *bufio.Reader, r io.Reader) (text []byte, skipped int64, err error) {
	if s, ok := r.(io.Seeker); ok {
		if size, err := s.Seek(0, io.SeekEnd); err == nil {
			// Files of no size, as in /proc, hold something all the same; they are read as streams, from their beginning.
			skipped = max(0, size-classify.TailLimit)
			if _, err := s.Seek(skipped, io.SeekStart); err != nil {
				return nil, 0, err
			}
			b.Reset(r)
			if size > 0 {
				text, err = io.ReadAll(io.LimitReader(b, classify.TailLimit))
				return text, skipped, err
			}
		}
	}
	for {
		start := len(text)
		text = slices.Grow(text, 32<<10)
		n, err := io.ReadFull(b, text[start:start+32<<10])
		text = text[:start+n]
		if cut := len(text) - classify.TailLimit; cut > classify.TailLimit {
			text, skipped = append(text[:0], text[cut:]...), skipped+int64(cut)
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			cut := max(0, len(text)-classify.TailLimit)
			return text[cut:], skipped + int64(cut), nil
		case err != nil:
			return nil, 0, err
		}
	}
}

// failureCase is one case as a file holds it. Fields that say what is expected, or where a case comes from, are not
// read.
type failureCase struct {
	ID         *string  `json:"id"`
	Text       *string  `json:"text"`
	TextBase64 *[]byte  `json:"text_base64"`
	Workspaces []string `json:"workspace_roots"`
	Managed    struct {
		Modules    []string `json:"modules"`
		Roots      []string `json:"roots"`
		Bindings   []string `json:"bindings"`
		ThirdParty bool     `json:"third_party"`
	} `json:"managed"`
	Exit  classify.Exit   `json:"exit"`
	Cause classify.Reason `json:"cause"`
}

func (c failureCase) input() classify.Input {
	in := classify.Input{Exit: c.Exit, Cause: c.Cause, Workspaces: c.Workspaces}
	switch {
	case c.Text != nil:
		in.Text = []byte(*c.Text)
	case c.TextBase64 != nil:
		in.Text = *c.TextBase64
	}
	if m := c.Managed; len(m.Modules)+len(m.Roots)+len(m.Bindings) > 0 {
		in.Roots = []classify.Root{{Name: "managed", Dirs: m.Roots, Modules: m.Modules, Bindings: m.Bindings, ThirdParty: m.ThirdParty}}
	}
	return in
}

// readCases reads a stream of JSON cases, or plain text: what begins with a brace is JSON, unless
// the caller knows better (a log may consist of JSON).
func readCases(r io.Reader, file, id string, asText bool, plain classify.Input, each caseFunc) error {
	b := bufio.NewReader(r)
	if asText || !beginsObject(b) {
		text, skipped, err := readEnd(b, r)
		switch {
		case err != nil:
			return &caseError{File: file, Err: plainError(err)}
		case len(bytes.TrimSpace(text)) == 0:
			return &caseError{File: file, Err: "it is empty"}
		}
		plain.Text = text
		return each(id, plain, skipped)
	}
	dec := json.NewDecoder(b)
	for {
		var c failureCase
		err := dec.Decode(&c)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return badJSON(file, c, err)
		case c.ID == nil || *c.ID == "":
			return &caseError{File: file, Field: "id", Err: "missing, want the name of the case"}
		case c.Text == nil && c.TextBase64 == nil:
			return &caseError{File: file, ID: *c.ID, Field: "text", Err: "missing, want the failure text (or text_base64)"}
		}
		if err := each(*c.ID, c.input(), 0); err != nil {
			return err
		}
	}
}

// beginsObject looks for a brace behind white space, and puts nothing aside.
func beginsObject(b *bufio.Reader) bool {
	for {
		r, _, err := b.ReadRune()
		if err != nil {
			return false
		}
		if !unicode.IsSpace(r) && r != '\ufeff' {
			_ = b.UnreadRune() // a rune was read just now, so this cannot fail
			return r == '{'
		}
	}
}

func badJSON(file string, c failureCase, err error) error {
	bad := &caseError{File: file, Err: "not JSON: " + err.Error()}
	if c.ID != nil {
		bad.ID = *c.ID
	}
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		bad.Field, bad.Err = kind.Field, fmt.Sprintf("%s, want %s", kind.Value, jsonType(kind.Type))
	case errors.As(err, new(base64.CorruptInputError)):
		bad.Field, bad.Err = "text_base64", "not base64"
	case errors.Is(err, io.ErrUnexpectedEOF):
		bad.Err = "the JSON ends in the middle"
	}
	return bad
}

// jsonType is a Go type in the words of JSON.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list of strings"
	case reflect.Struct:
		return "an object"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a string"
}
