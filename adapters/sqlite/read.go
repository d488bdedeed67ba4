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
		return nil, fmt.Errorf("read session %s: %w", name, s.db.advise(err))
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
		return e, false, fmt.Errorf("find event %s of session %s: %w", id, name, s.db.advise(err))
	}
	return e, ok, nil
}

// Head implements session.Log.
func (s *Sessions) Head(ctx context.Context, name string) (session.Head, error) {
	if err := ready(ctx, name); err != nil {
		return session.Head{}, err
	}
	h, err := s.head(ctx, name, "SELECT head FROM sessions WHERE name = ?", name)
	if err != nil {
		return session.Head{}, fmt.Errorf("read the head of session %s: %w", name, err)
	}
	return h, nil
}

// head is the head of a session that a query finds. One that cannot be read is a *session.UnreadableError.
func (s *Sessions) head(ctx context.Context, name, query string, arg any) (session.Head, error) {
	h := session.Head{Session: name}
	var raw []byte
	err := s.db.read.QueryRowContext(ctx, query, arg).Scan(&raw)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return h, nil
	case damaged(err):
		return h, s.db.unreadable(name, err)
	case err != nil:
		return h, err
	}
	return h, s.db.decode(name, raw, &h)
}

// decode reads a head into h. One that is no head of this session is a *session.UnreadableError.
func (db *DB) decode(name string, raw []byte, h *session.Head) error {
	err := json.Unmarshal(raw, h)
	if err == nil && h.Session != name {
		err = fmt.Errorf("it is the head of session %q", h.Session)
	}
	if err != nil {
		return db.unreadable(name, err)
	}
	return nil
}

// List implements session.Lister.
func (s *Sessions) List(ctx context.Context, after string, limit int) ([]session.Head, error) {
	heads, unreadable, err := s.list(ctx, after, limit)
	if damaged(err) {
		return s.pick(ctx, after, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return session.Page(heads, unreadable)
}

func (s *Sessions) list(ctx context.Context, after string, limit int) (out []session.Head, unreadable []*session.UnreadableError, err error) {
	rows, err := s.db.read.QueryContext(ctx, "SELECT name, head FROM sessions WHERE name > ? ORDER BY name LIMIT ?", after, pageSize(limit))
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var raw sql.RawBytes
		if err := rows.Scan(&name, &raw); err != nil {
			return nil, nil, err
		}
		var h session.Head
		var bad *session.UnreadableError
		if err := s.db.decode(name, raw, &h); errors.As(err, &bad) {
			unreadable = append(unreadable, bad)
			continue
		}
		out = append(out, h)
	}
	return out, unreadable, rows.Err()
}
