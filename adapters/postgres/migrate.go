package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

//go:embed schema/*.sql
var schema embed.FS

// SchemaError refuses a schema that a newer version of Mulligan has changed.
type SchemaError struct {
	Schema string
	// Has is the number of the schema's last migration, Knows the newest that this version can use.
	Has, Knows int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("schema %s is at migration %d, and this version knows %d: update this program", e.Schema, e.Has, e.Knows)
}

// migrate applies the numbered files that the schema has not seen, all in one transaction. It looks first, so that a schema
// that is up to date costs no lock and needs no right to change it.
func (db *DB) migrate(ctx context.Context) error {
	files, err := fs.Glob(schema, "schema/*.sql")
	if err != nil {
		return err
	}
	has, err := db.applied(ctx, db.pool)
	if err != nil || has == len(files) {
		return err
	}
	if inside.Inert() {
		return fmt.Errorf("the schema is at %d of %d: %w", has, len(files), inside.ErrOutside)
	}
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		// Of several processes that start at once one does the work, and the others wait here and find it done. The lock
		// ends with the transaction: one of the session would outlive us behind a pooler.
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))`, "mulligan migrations of "+db.c.Schema); err != nil {
			return err
		}
		has, err := db.applied(ctx, tx)
		if err != nil || has == len(files) {
			return err
		}
		if has == 0 {
			if _, err := tx.Exec(ctx, db.q.in(`CREATE SCHEMA IF NOT EXISTS {schema}`)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, db.q.in(`CREATE TABLE {schema}.migrations (number int PRIMARY KEY, name text NOT NULL, applied timestamptz NOT NULL DEFAULT now())`)); err != nil {
				return err
			}
		}
		for i, name := range files[has:] {
			text, err := schema.ReadFile(name)
			if err != nil {
				return err
			}
			// The simple protocol takes several statements at once.
			if _, err := tx.Conn().PgConn().Exec(ctx, db.q.in(string(text))).ReadAll(); err != nil {
				return fmt.Errorf("apply migration %s: %w", name, err)
			}
			if _, err := tx.Exec(ctx, db.q.in(`INSERT INTO {schema}.migrations (number, name) VALUES ($1::int, $2::text)`), has+i+1, strings.TrimPrefix(name, "schema/")); err != nil {
				return err
			}
		}
		return nil
	})
}

// applied is the number of the schema's last migration, 0 when there is none.
func (db *DB) applied(ctx context.Context, in querier) (int, error) {
	var there bool
	err := in.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_catalog.pg_tables WHERE schemaname = $1::text AND tablename = 'migrations')`, db.c.Schema).Scan(&there)
	if err != nil || !there {
		return 0, err
	}
	var has int
	if err := in.QueryRow(ctx, db.q.in(`SELECT coalesce(max(number), 0) FROM {schema}.migrations`)).Scan(&has); err != nil {
		return 0, err
	}
	files, err := fs.Glob(schema, "schema/*.sql")
	if err == nil && has > len(files) {
		err = &SchemaError{Schema: db.c.Schema, Has: has, Knows: len(files)}
	}
	return has, err
}

// querier is a pool, or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// errClosed is returned by a database that was closed.
var errClosed = errors.New("the database was closed: nothing was written")
