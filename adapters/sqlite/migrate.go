package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

//go:embed schema/*.sql
var schema embed.FS

// SchemaError refuses a database that a newer version of Mulligan has changed.
type SchemaError struct {
	Path string
	// Has is the database's schema, Knows the newest that this version can use.
	Has, Knows int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s has schema %d, and this version knows %d: update this program", e.Path, e.Has, e.Knows)
}

// migrate applies the numbered files that the database has not seen, all in one transaction. The transaction takes the
// writer's lock at its beginning, so of several processes that start at once one does the work and the others find it done.
func (db *DB) migrate(ctx context.Context) error {
	// Changing over to a write-ahead log does not wait for other processes by itself.
	deadline := time.Now().Add(db.c.Busy)
	for {
		err := db.migrateOnce(ctx)
		if !busy(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (db *DB) migrateOnce(ctx context.Context) error {
	tx, err := db.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after a commit there is nothing to roll back
	var has int
	if err := tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&has); err != nil {
		return err
	}
	files, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return err
	}
	if has > len(files) {
		return &SchemaError{Path: db.c.Path, Has: has, Knows: len(files)}
	}
	if has == len(files) {
		return nil
	}
	for _, name := range files[has:] {
		number, _, _ := strings.Cut(strings.TrimPrefix(name, "schema/"), "_")
		text, err := schema.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("bring the schema to %s: %w", number, err)
		}
	}
	if _, err := tx.ExecContext(ctx, "PRAGMA user_version = "+strconv.Itoa(len(files))); err != nil {
		return err
	}
	return tx.Commit()
}

// busy tells whether another process holds a lock.
func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
