package run

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// exact is a string of any bytes in JSON: a string where it is valid UTF-8, else {"base64": "..."}.
type exact string

type wrapped struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal(wrapped{[]byte(e)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *exact) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err == nil {
		*e = exact(s)
		return nil
	}
	var w wrapped
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("want a string or {\"base64\": ...}: %w", err)
	}
	*e = exact(w.Base64)
	return nil
}

// stored is a Recipe as it lies in a store.
type stored struct {
	Command []exact `json:"command"`
	Dir     exact   `json:"dir"`
	Env     []exact `json:"env"`
	Marking Marking `json:"marking,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (r Recipe) MarshalJSON() ([]byte, error) {
	return json.Marshal(stored{convert[exact](r.Command), exact(r.Dir), convert[exact](r.Env), r.Marking})
}

// UnmarshalJSON implements json.Unmarshaler.
func (r *Recipe) UnmarshalJSON(b []byte) error {
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("recipe: %w", err)
	}
	*r = Recipe{convert[string](s.Command), string(s.Dir), convert[string](s.Env), s.Marking}
	return nil
}

func convert[T, S ~string](in []S) []T {
	if in == nil {
		return nil
	}
	out := make([]T, len(in))
	for i, s := range in {
		out[i] = T(s)
	}
	return out
}
