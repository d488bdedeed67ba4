package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// Encode is an event as one line of JSON without a line end, for stores that keep events as bytes.
func Encode(e Event) ([]byte, error) {
	if len(e.Payload) == 0 || compacted(e.Payload) {
		if b, ok := appendEvent(make([]byte, 0, 256+len(e.Payload)), e); ok {
			return b, nil
		}
	}
	return encode(e)
}

// AppendEvent appends what Encode makes of the i-th event to b. It is for the one write that follows Step, which has
// read the payloads through already: they go in as they are.
func (p Plan) AppendEvent(b []byte, i int) ([]byte, error) {
	if out, ok := appendEvent(b, p.Events[i]); ok {
		return out, nil
	}
	raw, err := encode(p.Events[i])
	return append(b, raw...), err
}

// encode is the way for every event, and what the short one has to agree with byte for byte.
func encode(e Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the payload comes back byte for byte
	if err := enc.Encode(e); err != nil {
		return nil, fmt.Errorf("encode event %s: %w", e.ID, err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// appendEvent writes an event whose payload is compact and whose names need no escapes, as nearly all are, without
// reflection: a store does it while others wait. Not ok means that the long way has to be taken.
func appendEvent(b []byte, e Event) (_ []byte, ok bool) {
	if !plain(e.ID) || !plain(string(e.Kind)) || !plain(e.At.Boot) || !plain(e.Turn) {
		return b, false
	}
	was := b
	b = appendName(b, `{"id":"`, e.ID)
	if e.Seq != 0 {
		b = strconv.AppendUint(append(b, `,"seq":`...), e.Seq, 10)
	}
	b = appendName(b, `,"kind":"`, string(e.Kind))
	b, err := e.At.Wall.AppendText(append(b, `,"at":{"wall":"`...))
	if err != nil {
		return was, false
	}
	b = append(b, '"')
	if e.At.Boot != "" {
		b = appendName(b, `,"boot":"`, e.At.Boot)
	}
	if e.At.Uptime != 0 {
		b = strconv.AppendInt(append(b, `,"uptime":`...), int64(e.At.Uptime), 10)
	}
	if e.At.Grain != 0 {
		b = strconv.AppendInt(append(b, `,"grain":`...), int64(e.At.Grain), 10)
	}
	b = strconv.AppendInt(append(b, `},"schema":`...), int64(e.Schema), 10)
	if e.Fence != 0 {
		b = strconv.AppendUint(append(b, `,"fence":`...), e.Fence, 10)
	}
	if e.Turn != "" {
		b = appendName(b, `,"turn":"`, e.Turn)
	}
	if len(e.Payload) > 0 {
		b = append(append(b, `,"payload":`...), e.Payload...)
	}
	return append(b, '}'), true
}

func appendName(b []byte, before, name string) []byte {
	return append(append(append(b, before...), name...), '"')
}

// plain reports whether a string stands in JSON as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// Decode is the inverse of Encode. It takes events of newer versions, unknown kinds and fields too, and refuses what is no
// event at all.
func Decode(b []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(b, &e); err != nil {
		return Event{}, fmt.Errorf("decode an event: %w", err)
	}
	if e.ID == "" || e.Kind == "" || e.Seq == 0 {
		return Event{}, errors.New("decode an event: it has no id, kind or sequence")
	}
	return e, nil
}
