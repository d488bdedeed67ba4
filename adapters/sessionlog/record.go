package sessionlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// scratch is memory in which a record is put together.
type scratch struct{ record, event []byte }

// encode makes the record of what was planned: the session, the number of events, and the events, each with its length
// before it. One batch is one record, so that it is there as a whole or not at all. It is valid until the next one.
func (b *scratch) encode(name string, plan session.Plan) (_ []byte, err error) {
	b.record = binary.AppendUvarint(b.record[:0], uint64(len(name)))
	b.record = append(b.record, name...)
	b.record = binary.AppendUvarint(b.record, uint64(len(plan.Events)))
	for i := range plan.Events {
		if b.event, err = plan.AppendEvent(b.event[:0], i); err != nil {
			return nil, err
		}
		b.record = binary.AppendUvarint(b.record, uint64(len(b.event)))
		b.record = append(b.record, b.event...)
	}
	return b.record, nil
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
