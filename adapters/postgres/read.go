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
		err = json.Unmarshal(raw, &h)
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
	err := s.rows(ctx, func(raw []byte) error {
		var h session.Head
		err := json.Unmarshal(raw, &h)
		out = append(out, h)
		return err
	}, s.db.q.list, after, pageSize(limit))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return out, nil
}
