package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config says which database.
type Config struct {
	// DSN is the database: a URL or a list of key=value, with pgx's own settings among them (pool_max_conns,
	// default_query_exec_mode). Required.
	DSN string
	// Schema is where the tables are; empty is "mulligan". Processes that share sessions name the same one.
	Schema string
	// Listen is the DSN on which notifications are heard. It has to lead to the server itself: a transaction pooler hands
	// none on. Empty is DSN, and no listening at all when that chooses an execution mode which is there for poolers.
	Listen string
	// Timeout bounds one write, from waiting for a connection to the commit, to an eighth of itself; 0 is 30 s. After that
	// its outcome is unknown.
	Timeout time.Duration
}

// SettingError refuses a server whose setting takes away what a store promises.
type SettingError struct {
	// Name and Value are the server's: synchronous_commit, fsync or server_encoding.
	Name, Value string
}

func (e *SettingError) Error() string {
	if e.Name == "server_encoding" {
		return fmt.Sprintf("the database's encoding is %s: names of sessions need UTF8", e.Value)
	}
	return fmt.Sprintf("%s is %s: an append would be acknowledged before it is durable; turn it on for this role and database", e.Name, e.Value)
}

// DB is an open database. It is safe for concurrent use.
type DB struct {
	c        Config
	pool     *pgxpool.Pool
	q        queries
	sessions *Sessions
}

// Open opens a database and brings its schema up to date. A canary reads it and writes nothing: what would be written, the
// schema included, fails with inside.ErrOutside.
func Open(ctx context.Context, c Config) (*DB, error) {
	var errs []error
	if c.Schema == "" {
		c.Schema = "mulligan"
	}
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	if len(c.Schema) > 63 || strings.ContainsRune(c.Schema, 0) {
		errs = append(errs, fmt.Errorf("Schema: %q is no name that Postgres keeps: 63 bytes at most, none of them zero", c.Schema))
	}
	if c.Timeout < 0 {
		errs = append(errs, fmt.Errorf("Timeout: %v is negative", c.Timeout))
	}
	var pool *pgxpool.Config
	var listen *pgx.ConnConfig
	if c.DSN == "" {
		errs = append(errs, errors.New("DSN is missing: the database"))
	} else if p, err := pgxpool.ParseConfig(c.DSN); err != nil {
		errs = append(errs, fmt.Errorf("DSN: %w", err)) // pgx leaves the password out
	} else {
		pool = p
		if !forPooler(p.ConnConfig.DefaultQueryExecMode) {
			listen = p.ConnConfig.Copy()
		}
	}
	if c.Listen != "" {
		l, err := pgx.ParseConfig(c.Listen)
		if err != nil {
			errs = append(errs, fmt.Errorf("Listen: %w", err))
		}
		listen = l
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("open database: %w", errors.Join(errs...))
	}
	db, err := open(ctx, c, pool, listen)
	if err != nil {
		return nil, fmt.Errorf("open database %s on %s: %w", pool.ConnConfig.Database, pool.ConnConfig.Host, err)
	}
	return db, nil
}

// forPooler tells the execution modes that do without prepared statements, which nobody chooses without a pooler.
func forPooler(mode pgx.QueryExecMode) bool {
	return mode == pgx.QueryExecModeExec || mode == pgx.QueryExecModeSimpleProtocol
}

func open(ctx context.Context, c Config, pool *pgxpool.Config, listen *pgx.ConnConfig) (*DB, error) {
	db := &DB{c: c, q: newQueries(c.Schema)}
	s := newSessions(db, listen)
	pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		// Another connection may be to another server, after a failover that lost what we remember.
		s.forgetAll()
		return checkSettings(ctx, conn)
	}
	var err error
	if db.pool, err = pgxpool.NewWithConfig(ctx, pool); err != nil {
		return nil, err
	}
	s.slots = make(chan struct{}, max(1, pool.MaxConns/2))
	if err := db.migrate(ctx); err != nil {
		db.pool.Close()
		return nil, err
	}
	db.sessions = s
	s.grounds.Go(s.ground)
	return db, nil
}

// checkSettings refuses a connection on which a commit is not durable.
func checkSettings(ctx context.Context, conn *pgx.Conn) error {
	var sync, fsync, encoding string
	err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_commit'), current_setting('fsync'), current_setting('server_encoding')`).
		Scan(&sync, &fsync, &encoding)
	switch {
	case err != nil:
		return err
	case sync == "off":
		return &SettingError{Name: "synchronous_commit", Value: sync}
	case fsync == "off":
		return &SettingError{Name: "fsync", Value: fsync}
	case encoding != "UTF8":
		return &SettingError{Name: "server_encoding", Value: encoding}
	}
	return nil
}

// Sessions is the store of sessions.
func (db *DB) Sessions() *Sessions { return db.sessions }

// Close ends the database. Appends under way are finished first; those that wait are told that nothing was written.
func (db *DB) Close() error {
	db.sessions.close()
	db.pool.Close()
	return nil
}
