package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Config says which database.
type Config struct {
	// Path is the database's file, made with mode 0600 when it is absent; its folder must be there. SQLite keeps two files
	// beside it.
	Path string
	// Busy is how long an append waits for other processes; 0 is 10 s.
	Busy time.Duration
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	c Config
	// write has one connection: SQLite has one writer. read has a few, which write nothing.
	write, read *sql.DB
	sessions    *Sessions
}

// Open opens a database, makes it when it is absent, and brings its schema up to date. A canary may open one in its own
// folder only (inside.ErrOutside).
func Open(ctx context.Context, c Config) (*DB, error) {
	var errs []error
	if c.Path == "" {
		errs = append(errs, errors.New("Path is missing: the database's file"))
	}
	if c.Busy < 0 {
		errs = append(errs, fmt.Errorf("Busy: %v is negative", c.Busy))
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("open database: %w", errors.Join(errs...))
	}
	if err := inside.Refuse(c.Path); err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	if c.Busy == 0 {
		c.Busy = 10 * time.Second
	}
	db, err := open(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", c.Path, err)
	}
	return db, nil
}

func open(ctx context.Context, c Config) (_ *DB, err error) {
	if c.Path, err = filepath.Abs(c.Path); err != nil {
		return nil, err
	}
	if err := refuseNetwork(filepath.Dir(c.Path)); err != nil {
		return nil, err
	}
	// Made by us, so that its mode, which SQLite gives to the files beside it, is not left to the umask.
	f, err := os.OpenFile(c.Path, os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = f.Close()
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: make its folder first", err)
	}
	if err != nil {
		return nil, err
	}
	db := &DB{c: c}
	if db.write, err = sql.Open("sqlite", dsn(c, "_txlock=immediate")); err != nil {
		return nil, err
	}
	db.write.SetMaxOpenConns(1)
	db.write.SetConnMaxIdleTime(0)
	if db.read, err = sql.Open("sqlite", dsn(c, "_pragma=query_only(1)")); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	db.read.SetMaxOpenConns(4)
	if err = db.migrate(ctx); err == nil {
		db.sessions, err = newSessions(ctx, db)
	}
	if err != nil {
		return nil, errors.Join(db.advise(err), db.Close())
	}
	return db, nil
}

// dsn names the database with the settings that durability rests on. A write-ahead log lets readers go on beside the
// writer, and FULL flushes it at every commit.
func dsn(c Config, more string) string {
	path := (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: c.Path}).EscapedPath()}).String()
	return fmt.Sprintf("%s?_pragma=busy_timeout(%d)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=foreign_keys(1)&%s",
		path, c.Busy.Milliseconds(), more)
}

// Sessions is the store of sessions.
func (db *DB) Sessions() *Sessions { return db.sessions }

// Close ends the database. Appends under way are finished first.
func (db *DB) Close() error {
	var err error
	if db.sessions != nil {
		err = db.sessions.close()
	}
	if db.read != nil {
		err = errors.Join(err, db.read.Close())
	}
	return errors.Join(err, db.write.Close())
}
