package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func TestMain(m *testing.M) {
	if dsn := os.Getenv("POSTGRES_TEST_APPEND"); dsn != "" {
		appendForEver(dsn, os.Getenv("POSTGRES_TEST_SCHEMA"), os.Getenv("POSTGRES_TEST_NAME"))
	}
	if dsn := os.Getenv("POSTGRES_TEST_DAEMON"); dsn != "" {
		fmt.Fprintln(os.Stderr, daemon(dsn, os.Getenv("POSTGRES_TEST_SCHEMA"), os.Getenv("POSTGRES_TEST_NAME")))
		os.Exit(1)
	}
	code := m.Run()
	if err := require.StopPostgres(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var schemas atomic.Int64

// fresh is a schema of the shared server that nobody else uses.
func fresh(t testing.TB) Config {
	t.Helper()
	return Config{DSN: require.SharedPostgres(t).URL("postgres") + "&pool_max_conns=4", Schema: fmt.Sprint("test ", schemas.Add(1))}
}

func mustOpen(t testing.TB, c Config) *DB {
	t.Helper()
	db, err := Open(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func clock() stamp.Time { return stamp.Time{Wall: time.Now()} }

func say(id string) session.Draft { return session.Say(clock(), id, json.RawMessage(`"`+id+`"`)) }

func TestConformance(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "&default_query_exec_mode=exec", "&default_query_exec_mode=simple_protocol", "&default_transaction_isolation=serializable"} {
		t.Run(more, func(t *testing.T) {
			t.Parallel()
			again := func(t *testing.T, s session.Store) session.Store { return mustOpen(t, s.(*Sessions).db.c).Sessions() }
			sessiontest.Run(t, func(t *testing.T) session.Store {
				c := fresh(t)
				c.DSN += more
				return mustOpen(t, c).Sessions()
			}, sessiontest.Sheet{Watches: true, Leases: true, Another: again, Damage: damage, Reopen: func(t *testing.T, s session.Store) session.Store {
				if err := s.(*Sessions).db.Close(); err != nil {
					t.Fatal(err)
				}
				return again(t, s)
			}})
		})
	}
}

// damage spoils the head of a session.
func damage(t *testing.T, s session.Store, name string) (mend func()) {
	db := s.(*Sessions).db
	var head []byte
	if err := db.pool.QueryRow(t.Context(), db.q.in("SELECT head FROM {schema}.sessions WHERE name = $1"), name).Scan(&head); err != nil {
		t.Fatal(err)
	}
	set := func(head []byte) {
		if _, err := db.pool.Exec(t.Context(), db.q.in("UPDATE {schema}.sessions SET head = $1 WHERE name = $2"), head, name); err != nil {
			t.Error(err)
		}
	}
	set(head[:len(head)-1])
	return func() { set(head) }
}

// Eight processes' worth of openers begin one schema at the same moment; one makes it and all can use it.
func TestOpenersAtOnce(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			db, err := Open(t.Context(), c)
			if err != nil {
				t.Errorf("opener %d: %v", i, err)
				return
			}
			if _, err := db.Sessions().Append(t.Context(), "s", []session.Draft{say(fmt.Sprint(i))}); err != nil {
				t.Errorf("opener %d: %v", i, err)
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	db := mustOpen(t, c)
	var applied int
	if err := db.pool.QueryRow(t.Context(), db.q.in("SELECT count(*) FROM {schema}.migrations")).Scan(&applied); err != nil || applied != 1 {
		t.Errorf("%d migrations were applied, %v", applied, err)
	}
	if h, err := db.Sessions().Head(t.Context(), "s"); err != nil || h.Last != 8 {
		t.Errorf("8 events became %d, %v", h.Last, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Schema: strings.Repeat("x", 64), Timeout: -1, Listen: "port=x"})
	for _, problem := range []string{"DSN", "Schema", "Timeout", "Listen"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s is not named: %v", problem, err)
		}
	}
	c := fresh(t)
	db := mustOpen(t, c)
	if _, err := db.pool.Exec(t.Context(), db.q.in("INSERT INTO {schema}.migrations (number, name) VALUES (99, 'later')")); err != nil {
		t.Fatal(err)
	}
	var newer *SchemaError
	if _, err := Open(t.Context(), c); !errors.As(err, &newer) || newer.Has != 99 || newer.Schema != c.Schema {
		t.Errorf("a newer schema: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sessions().Append(t.Context(), "s", []session.Draft{say("b")}); !errors.Is(err, errClosed) {
		t.Errorf("a closed database: %v", err)
	}
	if _, err := db.Sessions().List(t.Context(), "\xff", 0); !errors.Is(err, session.ErrMalformed) {
		t.Errorf("a list above what is no name: %v", err)
	}
}

// admin runs statements on the server as its superuser.
func admin(t testing.TB, p *require.Postgres, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), p.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, text := range statements {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

func refusedSetting(t testing.TB, what string, err error, name string) {
	t.Helper()
	var setting *SettingError
	if !errors.As(err, &setting) || setting.Name != name || errors.Is(err, session.ErrOutcomeUnknown) {
		t.Errorf("%s: %v, want a refusal of %s", what, err, name)
	}
}

func TestSettingsAreRefused(t *testing.T) {
	t.Parallel()
	p := require.SharedPostgres(t)
	// Names of this run: the server is shared.
	sloppy, other := fmt.Sprint("sloppy", schemas.Add(1)), fmt.Sprint("other", schemas.Add(1))
	admin(t, p, `CREATE DATABASE `+sloppy, `ALTER DATABASE `+sloppy+` SET synchronous_commit = off`,
		`CREATE DATABASE `+other+` ENCODING 'LATIN1' TEMPLATE template0`,
		`CREATE ROLE `+sloppy+` SUPERUSER LOGIN PASSWORD 'x'`, `ALTER ROLE `+sloppy+` SET synchronous_commit = off`)
	for _, c := range []struct{ what, dsn, name string }{
		{"by the connection", p.URL("postgres") + "&synchronous_commit=off", "synchronous_commit"},
		{"by an option of the connection", p.URL("postgres") + "&options=-c%20synchronous_commit%3Doff", "synchronous_commit"},
		{"by the role", p.UserURL(sloppy, "x", "postgres"), "synchronous_commit"},
		{"by the database", p.URL(sloppy), "synchronous_commit"},
		{"an encoding", p.URL(other), "server_encoding"},
	} {
		_, err := Open(t.Context(), Config{DSN: c.dsn})
		refusedSetting(t, c.what, err, c.name)
	}
	// What flushes here and waits for others less, or more, is durable.
	c := fresh(t)
	c.DSN += "&synchronous_commit=local"
	mustOpen(t, c)
}

// The server's own file, before the opening and under an open database.
func TestSettingIsTurnedOff(t *testing.T) {
	t.Parallel()
	p := require.NewPostgres(t)
	// One connection: what it was told holds for the next append too.
	db := mustOpen(t, Config{DSN: p.URL("postgres") + "&pool_max_conns=1"})
	s := db.Sessions()
	if _, err := s.Append(t.Context(), "s", []session.Draft{say("a")}); err != nil {
		t.Fatal(err)
	}
	set := func(value string) {
		t.Helper()
		admin(t, p, `ALTER SYSTEM SET synchronous_commit = `+value, `SELECT pg_reload_conf()`)
		// Each connection takes the new value when it is next idle.
		for deadline := time.Now().Add(time.Minute); ; {
			var got string
			if err := db.pool.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&got); err == nil && got == value {
				return
			} else if err != nil && value == "on" || time.Now().After(deadline) {
				t.Fatalf("synchronous_commit is %s, %v", got, err)
			}
		}
	}
	set("off")
	for _, name := range []string{"s", "new"} {
		_, err := s.Append(t.Context(), name, []session.Draft{say("b")})
		refusedSetting(t, "an append to "+name, err, "synchronous_commit")
	}
	_, err := Open(t.Context(), Config{DSN: p.URL("postgres")})
	refusedSetting(t, "by the server's file", err, "synchronous_commit")
	set("on")
	if r, err := s.Append(t.Context(), "s", []session.Draft{say("c")}); err != nil || r.Outcomes[0].Seq != 2 {
		t.Errorf("when it is on again: %+v, %v", r, err)
	}
	admin(t, p, `ALTER SYSTEM SET fsync = off`, `SELECT pg_reload_conf()`)
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := Open(t.Context(), Config{DSN: p.URL("postgres")})
		if err != nil {
			refusedSetting(t, "fsync", err, "fsync")
			break
		}
		if err := conn.Close(); err != nil || time.Now().After(deadline) {
			t.Fatalf("fsync off was taken; %v", err)
		}
	}
}
