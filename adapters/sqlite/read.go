package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

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
	err := rows(ctx, s.db.read, func(raw []byte) error {
		e, err := session.Decode(raw)
		out = append(out, e)
		return err
	}, `SELECT event FROM events WHERE session = (SELECT id FROM sessions WHERE name = ?) AND seq > ? ORDER BY seq LIMIT ?`,
		name, int64(after), pageSize(limit))
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", name, err)
	}
	return out, nil
}

// rows calls take for the one column of each row.
func rows(ctx context.Context, db *sql.DB, take func([]byte) error, text string, args ...any) (err error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var raw sql.RawBytes
		if err := rows.Scan(&raw); err != nil {
			return err
		}
		if err := take(raw); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Find implements session.Log.
func (s *Sessions) Find(ctx context.Context, name, id string) (session.Event, bool, error) {
	if err := ready(ctx, name); err != nil {
		return session.Event{}, false, err
	}
	e, ok, err := scanEvent(s.db.read.QueryRowContext(ctx,
		"SELECT event FROM events WHERE session = (SELECT id FROM sessions WHERE name = ?) AND id = ?", name, id))
	if err != nil {
		return e, false, fmt.Errorf("find event %s of session %s: %w", id, name, err)
	}
	return e, ok, nil
}

// Head implements session.Log.
func (s *Sessions) Head(ctx context.Context, name string) (session.Head, error) {
	if err := ready(ctx, name); err != nil {
		return session.Head{}, err
	}
	h := session.Head{Session: name}
	var raw []byte
	err := s.db.read.QueryRowContext(ctx, "SELECT head FROM sessions WHERE name = ?", name).Scan(&raw)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return h, nil
	case err == nil:
		err = json.Unmarshal(raw, &h)
	}
	if err != nil {
		return session.Head{}, fmt.Errorf("read the head of session %s: %w", name, err)
	}
	return h, nil
}

// List implements session.Lister.
func (s *Sessions) List(ctx context.Context, after string, limit int) ([]session.Head, error) {
	var out []session.Head
	err := rows(ctx, s.db.read, func(raw []byte) error {
		var h session.Head
		err := json.Unmarshal(raw, &h)
		out = append(out, h)
		return err
	}, "SELECT head FROM sessions WHERE name > ? ORDER BY name LIMIT ?", after, pageSize(limit))
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return out, nil
}
