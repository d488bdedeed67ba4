package sessionlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// encode makes the record of a batch: the session, the number of events, and the events, each with its length before it.
// One batch is one record, so that it is there as a whole or not at all.
func encode(b []byte, name string, events []session.Event) ([]byte, error) {
	b = appendBytes(b, []byte(name))
	b = binary.AppendUvarint(b, uint64(len(events)))
	for _, e := range events {
		raw, err := session.Encode(e)
		if err != nil {
			return nil, err
		}
		b = appendBytes(b, raw)
	}
	return b, nil
}

func appendBytes(b, raw []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(raw)))
	return append(b, raw...)
}

var errRecord = errors.New("it is no record of a session log")

// decode reads a record. The events share no memory with it.
func decode(rec []byte) (name string, events []session.Event, err error) {
	return decodeSome(rec, 0, math.MaxInt)
}

// decodeSome reads a record and leaves out some events at its beginning, and those above a number.
func decodeSome(rec []byte, skip, most int) (name string, events []session.Event, err error) {
	raw, rec, err := cutBytes(rec)
	if err != nil {
		return "", nil, err
	}
	name = string(raw)
	n, used := binary.Uvarint(rec)
	if used <= 0 || n == 0 || n > uint64(len(rec)) {
		return "", nil, errRecord
	}
	rec = rec[used:]
	for i := range int(n) {
		if raw, rec, err = cutBytes(rec); err != nil {
			return "", nil, err
		}
		if i < skip || len(events) >= most {
			continue
		}
		e, err := session.Decode(raw)
		if err != nil {
			return "", nil, fmt.Errorf("session %s: %w", name, err)
		}
		events = append(events, e)
	}
	if len(rec) != 0 {
		return "", nil, errRecord
	}
	return name, events, nil
}

func cutBytes(b []byte) (raw, rest []byte, err error) {
	n, used := binary.Uvarint(b)
	if used <= 0 || n > uint64(len(b)-used) {
		return nil, nil, errRecord
	}
	b = b[used:]
	return b[:n], b[n:], nil
}
