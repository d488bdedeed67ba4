package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/mulligan-dev/mulligan/ledger"
)

// What is kept as a record is one JSON object with the body's SHA-256 before the body:
//
//	{"schema":1,"sha256":"…","body":{…}}
//
// The sum is taken over the bytes of the body as they lie there.
const (
	envelopeSchema = 1
	sealHead       = `{"schema":1,"sha256":"`
	sealMiddle     = `","body":`
	sealTail       = '}'
	bodyAt         = len(sealHead) + 2*sha256.Size + len(sealMiddle)
)

// seal puts a body into its envelope.
func seal(body []byte) []byte {
	sum := sha256.Sum256(body)
	b := make([]byte, 0, bodyAt+len(body)+2)
	b = append(b, sealHead...)
	b = hex.AppendEncode(b, sum[:])
	b = append(b, sealMiddle...)
	b = append(b, body...)
	return append(b, sealTail)
}

// sealed is seal for a value.
func sealed(v any) (envelope, body []byte, err error) {
	body, err = json.Marshal(v)
	if err != nil {
		return nil, nil, err
	}
	return seal(body), body, nil
}

// unseal takes a body out of its envelope and checks it. What is wrong is a DamageError without key and path.
func unseal(b []byte) ([]byte, *ledger.DamageError) {
	b = bytes.TrimRight(b, " \n") // files are filled up to whole blocks
	if len(b) > bodyAt && bytes.HasPrefix(b, []byte(sealHead)) && bytes.HasSuffix(b[:bodyAt], []byte(sealMiddle)) && b[len(b)-1] == sealTail {
		body := b[bodyAt : len(b)-1]
		sum := sha256.Sum256(body)
		var text [2 * sha256.Size]byte
		hex.Encode(text[:], sum[:])
		if bytes.Equal(text[:], b[len(sealHead):len(sealHead)+len(text)]) {
			return body, nil
		}
		return nil, &ledger.DamageError{Why: "its content does not fit its checksum", Torn: true}
	}
	var e struct {
		Schema int `json:"schema"`
	}
	switch err := json.Unmarshal(b, &e); {
	case err == nil && e.Schema > envelopeSchema:
		return nil, newer(e.Schema, envelopeSchema)
	case len(b) == 0:
		return nil, &ledger.DamageError{Why: "it is empty", Torn: true}
	}
	return nil, &ledger.DamageError{Why: "it has no checksum that could be read", Torn: true}
}

func newer(got, known int) *ledger.DamageError {
	return &ledger.DamageError{Why: fmt.Sprintf("schema %d, and this one reads up to %d", got, known), Newer: true}
}

// sound reports whether a body is whole.
func sound(b []byte) bool {
	_, bad := unseal(b)
	return bad == nil
}

// open unseals and decodes a body into v, whose schema, read by the function, must be known.
func open(b []byte, v any, schema func() int, known int) *ledger.DamageError {
	body, bad := unseal(b)
	if bad != nil {
		return bad
	}
	return decode(body, v, schema, known)
}

func decode(body []byte, v any, schema func() int, known int) *ledger.DamageError {
	err := json.Unmarshal(body, v)
	switch {
	case schema() > known:
		return newer(schema(), known)
	case err != nil:
		return &ledger.DamageError{Why: "its checksum is right and its content is not: " + err.Error()}
	case schema() < 1:
		return &ledger.DamageError{Why: "it has no schema version"}
	}
	return nil
}
