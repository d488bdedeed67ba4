package durable

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
)

// Sealed is a small file that is replaced whole and is no use in part: one JSON object with a checksum over the bytes of
// its content as they lie there,
//
//	{"schema":1,"sum":"…","body":…}
//
// Whoever writes it excludes other writers.
type Sealed struct {
	// Name is the file's. Limit is the most that is read of it, in bytes.
	Name  string
	Limit int64
	// Schema is the newest that is read, and the one that is written.
	Schema int
	// Body is the name of the content in the object; empty is "body".
	Body string
}

// DamageError is a file that is there and cannot be used: it is no such object, its checksum does not fit, or it is of a
// newer schema.
type DamageError struct {
	Path string
	Text string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s cannot be used: %s; move it away to begin anew", e.Path, e.Text)
}

// Absent reports whether an error says that a file is not there.
func Absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func (s Sealed) body() string {
	if s.Body == "" {
		return "body"
	}
	return s.Body
}

// Encode is the whole file for a content.
func (s Sealed) Encode(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "{\"schema\":%d,\"sum\":%q,%q:%s}\n", s.Schema, sum(body), s.body(), body), nil
}

func sum(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:16])
}

// Load reads the file into v. One that is absent is [Absent], one that is no use a [*DamageError].
func (s Sealed) Load(d Dir, v any) error {
	b, _, err := ReadFile(d, s.Name, s.Limit)
	if err != nil {
		return err
	}
	if text := s.decode(b, v); text != "" {
		return &DamageError{Path: d.Path() + "/" + s.Name, Text: text}
	}
	return nil
}

// decode says what is wrong with a file; empty when nothing is.
func (s Sealed) decode(b []byte, v any) (wrong string) {
	var e struct {
		Schema int    `json:"schema"`
		Sum    string `json:"sum"`
	}
	var parts map[string]json.RawMessage
	err := json.Unmarshal(b, &e)
	if err == nil {
		err = json.Unmarshal(b, &parts)
	}
	if err != nil {
		return "it is no JSON: " + err.Error()
	}
	body := parts[s.body()]
	switch {
	case e.Schema > s.Schema:
		return fmt.Sprintf("it is of schema %d, and this version reads %d", e.Schema, s.Schema)
	case e.Schema < 1 || sum(body) != e.Sum:
		return "its checksum does not fit"
	}
	if err := json.Unmarshal(body, v); err != nil {
		return err.Error()
	}
	return ""
}

// Save replaces the file durably.
func (s Sealed) Save(d Dir, v any) error {
	b, err := s.Encode(v)
	if err != nil {
		return err
	}
	return Replace(d, s.temp(), s.Name, b, nil)
}

// Leave is Save without a flush; see the function of that name.
func (s Sealed) Leave(d Dir, v any) error {
	b, err := s.Encode(v)
	if err != nil {
		return err
	}
	return Leave(d, s.temp(), s.Name, b)
}

func (s Sealed) temp() string { return ".new-" + s.Name }
