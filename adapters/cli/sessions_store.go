package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// EnvSessions is the environment variable that says where the logs of sessions are, in the form of --store.
const EnvSessions = "MULLIGAN_SESSIONS"

// ReadOnlyError refuses to append to a store that only its host writes. It comes with CodeReadOnly.
type ReadOnlyError struct {
	Store string
}

func (e *ReadOnlyError) Error() string {
	return fmt.Sprintf("%s is written by its host alone, and nothing was changed: do this inside the host, or keep the sessions in "+
		"a database (sqlite or postgres), which any process may write", e.Store)
}

// place says where the logs of sessions are.
type place struct {
	driver config.Driver
	dsn    string
}

func (p place) readOnly() bool { return p.driver == config.DriverLog }

// String is the place as it may be shown: without a password.
func (p place) String() string {
	if p.driver == config.DriverPostgres {
		return redacted(p.dsn)
	}
	return string(p.driver) + ":" + p.dsn
}

func redacted(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		return u.Redacted()
	}
	return dsn
}

// place finds the logs: the flag, else the environment, else the config, else a file in the state folder.
func (g *sessionsCommand) place(c config.Sessions, state string) (place, error) {
	text, from := g.store, "--store"
	if text == "" {
		text, from = g.env.get(EnvSessions), "$"+EnvSessions
	}
	if text == "" {
		p := place{driver: c.Driver, dsn: c.DSN}
		switch {
		case p.dsn != "":
		case p.driver == config.DriverLog:
			p.dsn = filepath.Join(state, "sessions.log")
		default:
			p.dsn = filepath.Join(state, "sessions.db")
		}
		return p, nil
	}
	driver, dsn, _ := strings.Cut(text, ":")
	switch config.Driver(driver) {
	case "postgresql", config.DriverPostgres:
		if strings.HasPrefix(dsn, "//") {
			return place{config.DriverPostgres, text}, nil
		}
	case config.DriverSQLite, config.DriverLog:
		if dsn != "" {
			path, err := g.env.path(dsn)
			return place{config.Driver(driver), path}, err
		}
	}
	return place{}, usage("%s: %q is no store, want sqlite:PATH, log:PATH or postgres://...", from, redacted(text))
}

// open opens the logs. A file that is not there is not made: these commands look at what a host has made.
func (p place) open(ctx context.Context) (session.Store, func() error, error) {
	if p.driver != config.DriverPostgres {
		if _, err := os.Stat(p.dsn); errors.Is(err, fs.ErrNotExist) {
			return nil, nil, fmt.Errorf("there is no session store at %s: a host makes it; --store, $%s or the config block %s name another",
				p, EnvSessions, config.SessionsBlock)
		}
	}
	switch p.driver {
	case config.DriverLog:
		store, err := sessionlog.Read(sessionlog.Config{Path: p.dsn})
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	case config.DriverPostgres:
		return openPostgres(ctx, p.dsn)
	}
	db, err := sqlite.Open(ctx, sqlite.Config{Path: p.dsn})
	if err != nil {
		return nil, nil, err
	}
	return db.Sessions(), db.Close, nil
}
