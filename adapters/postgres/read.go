package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

func pageSize(limit int) int {
	if limit <= 0 {
		return session.DefaultPage
	}
	return limit
}

// Read implements session.Log.
func (s *Sessions) Read(ctx context.Context, name string, after uint64, limit int) ([]session.Event, error) {
	if err := ready(ctx, name); err != nil {
		return nil, err
	}
	var out []session.Event
	err := s.rows(ctx, func(raw []byte) error {
		e, err := session.Decode(raw)
		out = append(out, e)
		return err
	}, s.db.q.read, name, int64(min(after, math.MaxInt64)), pageSize(limit))
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", name, err)
	}
	return out, nil
}

// rows calls take for the one column of each row, with bytes that hold until it returns.
func (s *Sessions) rows(ctx context.Context, take func([]byte) error, text string, args ...any) error {
	rows, err := s.db.pool.Query(ctx, text, args...)
	if err != nil {
		return err
	}
	var raw pgtype.DriverBytes
	_, err = pgx.ForEachRow(rows, []any{&raw}, func() error { return take(raw) })
	return err
}

// Find implements session.Log.
func (s *Sessions) Find(ctx context.Context, name, id string) (session.Event, bool, error) {
	if err := ready(ctx, name); err != nil {
		return session.Event{}, false, err
	}
	if session.CheckName(id) != nil {
		return session.Event{}, false, nil // it is in no log, and the server might not take it
	}
	var e session.Event
	var raw []byte
	err := s.db.pool.QueryRow(ctx, s.db.q.find, name, id).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, false, nil
	}
	if err == nil {
		e, err = session.Decode(raw)
	}
	if err != nil {
		return session.Event{}, false, fmt.Errorf("find event %s of session %s: %w", id, name, err)
	}
	return e, true, nil
}

// Head implements session.Log.
func (s *Sessions) Head(ctx context.Context, name string) (session.Head, error) {
	if err := ready(ctx, name); err != nil {
		return session.Head{}, err
	}
	h := session.Head{Session: name}
	var raw []byte
	err := s.db.pool.QueryRow(ctx, s.db.q.head, name).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return h, nil
	}
	if err == nil {
		if bad := s.db.decode(name, raw, &h); bad != nil {
			err = bad
		}
	}
	if err != nil {
		return session.Head{}, fmt.Errorf("read the head of session %s: %w", name, err)
	}
	return h, nil
}

// List implements session.Lister. It refuses an after that no session could have as its name.
func (s *Sessions) List(ctx context.Context, after string, limit int) ([]session.Head, error) {
	if after != "" {
		if err := session.CheckSession(after); err != nil {
			return nil, fmt.Errorf("list sessions: %w", err)
		}
	}
	var out []session.Head
	var unreadable []*session.UnreadableError
	rows, err := s.db.pool.Query(ctx, s.db.q.list, after, pageSize(limit))
	if err == nil {
		var name string
		var raw pgtype.DriverBytes
		_, err = pgx.ForEachRow(rows, []any{&name, &raw}, func() error {
			var h session.Head
			if bad := s.db.decode(name, raw, &h); bad != nil {
				unreadable = append(unreadable, bad)
			} else {
				out = append(out, h)
			}
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return session.Page(out, unreadable)
}

// decode reads a head into h, and says what is wrong with one that is no head of this session.
func (db *DB) decode(name string, raw []byte, h *session.Head) *session.UnreadableError {
	err := json.Unmarshal(raw, h)
	if err == nil && h.Session != name {
		err = fmt.Errorf("it is the head of session %q", h.Session)
	}
	if err != nil {
		return &session.UnreadableError{Session: name, Place: "table " + db.q.schema + ".sessions", Err: err}
	}
	return nil
}
