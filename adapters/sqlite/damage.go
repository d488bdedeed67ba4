package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// damaged tells the errors by which SQLite says that a page, or the file, is not what was once written.
func damaged(err error) bool {
	code := sqliteCode(err)
	return code == sqlite3.SQLITE_CORRUPT || code == sqlite3.SQLITE_NOTADB
}

// advise adds to an error about damage what can be done. What is on other pages is good, and a backup is whole.
func (db *DB) advise(err error) error {
	if !damaged(err) {
		return err
	}
	return fmt.Errorf("%w: %s is damaged. Stop what uses it and put a backup in its place, or salvage the rest: "+
		"sqlite3 '%[2]s' .recover | sqlite3 '%[2]s.recovered'", err, db.c.Path)
}

// unreadable is the error about one session whose head cannot be had.
func (db *DB) unreadable(name string, err error) *session.UnreadableError {
	return &session.UnreadableError{Session: name, Place: db.c.Path + ", table sessions", Err: db.advise(err)}
}

// pick is List of a database with a damaged page: one head after the other. Their names are in an index of their own, and
// in the table too, should that be damaged.
func (s *Sessions) pick(ctx context.Context, after string, limit int) ([]session.Head, error) {
	names, err := s.names(ctx, "sessions", after, limit)
	if damaged(err) {
		names, err = s.names(ctx, "sessions NOT INDEXED", after, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", s.db.advise(err))
	}
	var out []session.Head
	var unreadable []*session.UnreadableError
	for _, n := range names {
		h, err := s.head(ctx, n.name, "SELECT head FROM sessions WHERE id = ?", n.id)
		var bad *session.UnreadableError
		switch {
		case errors.As(err, &bad):
			unreadable = append(unreadable, bad)
		case err != nil:
			return nil, fmt.Errorf("list sessions: %w", err)
		case h.Last == 0:
			unreadable = append(unreadable, s.db.unreadable(n.name, errors.New("its row is missing")))
		default:
			out = append(out, h)
		}
	}
	return session.Page(out, unreadable)
}

type numbered struct {
	id   int64
	name string
}

func (s *Sessions) names(ctx context.Context, table, after string, limit int) (out []numbered, err error) {
	rows, err := s.db.read.QueryContext(ctx, "SELECT id, name FROM "+table+" WHERE name > ? ORDER BY name LIMIT ?", after, pageSize(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n numbered
		if err := rows.Scan(&n.id, &n.name); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, rows.Err()
}
