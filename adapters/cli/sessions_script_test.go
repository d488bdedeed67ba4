package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/cli"
	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// agent is a host whose clock and ids are the same each time: agent STORE SESSION DEED. The store is sqlite:PATH or
// log:PATH. Deeds: done, park, crash (in the middle of a call, by kill -9), open (a turn that stays open until it
// is aborted), try (an attempt of auto-resume that is killed), newer (an event of a kind that only a later version knows),
// spoil (no deed of an agent: the session cannot be read any more, or again).
func agent() {
	if err := agentDeed(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

func agentDeed(ctx context.Context, at, name, deed string) error {
	// It stands still: how often it is asked is not the command line's affair.
	now := func() stamp.Time { return stamp.Wall(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0) }
	if deed == "spoil" {
		return spoil(ctx, at, name)
	}
	home, err := files.Open(files.Config{})
	if err != nil {
		return err
	}
	defer home.Close()
	store, closeStore, err := agentStore(ctx, at)
	if err != nil {
		return err
	}
	defer closeStore()
	service, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances(), Now: now, Random: zeros{}})
	if err != nil {
		return err
	}
	defer service.Close()
	if deed == "newer" {
		e := session.New("telemetry", now(), "newer", map[string]int{"spans": 3})
		_, err := service.Append(ctx, name, e)
		return err
	}
	h, err := service.Open(ctx, name)
	if err != nil {
		return err
	}
	start := sessions.Start{ID: "turn-" + deed, Invocation: "request-7"}
	if deed == "try" {
		start.Attempt = &session.Attempt{Limit: 1}
	}
	turn, err := h.Begin(ctx, start)
	if err != nil {
		return err
	}
	return errors.Join(agentTurn(service, turn, deed), h.Close(ctx))
}

func agentTurn(service *sessions.Service, turn *sessions.Turn, deed string) error {
	ctx := turn.Context()
	if _, err := turn.Append(ctx, session.Reply(service.Now(), "reply/"+turn.ID(), session.ModelTurn{Content: json.RawMessage(`"web is slow, six replicas would do"`)})); err != nil {
		return err
	}
	switch deed {
	case "park":
		pause, _, err := service.NewPause(turn.Session(), "approve", json.RawMessage(`"Scale web from 2 to 6?"`))
		if err != nil {
			return err
		}
		return turn.Park(ctx, pause)
	case "crash":
		guard, err := effect.New(effect.Config{Turn: turn, Now: service.Now})
		if err != nil {
			return err
		}
		_, err = guard.Do(ctx, effect.Call{ID: "1", Tool: "scale", Args: json.RawMessage(`{"to":6}`)}, func(context.Context) (effect.Result, error) {
			return effect.Result{}, unix.Kill(os.Getpid(), unix.SIGKILL)
		})
		return err
	case "try":
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	case "open":
		if _, err := os.Create("open"); err != nil {
			return err
		}
		select {
		case <-ctx.Done(): // somebody aborted it
		case <-time.After(2 * patience): // a script that failed leaves nobody behind
			return errors.New("no abort came")
		}
	}
	return turn.End(context.WithoutCancel(ctx), session.TurnEnded{End: session.EndDone})
}

func agentStore(ctx context.Context, at string) (session.Store, func() error, error) {
	driver, path, _ := strings.Cut(at, ":")
	if driver == "log" {
		store, err := sessionlog.Open(sessionlog.Config{Path: path})
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	}
	db, err := sqlite.Open(ctx, sqlite.Config{Path: path})
	if err != nil {
		return nil, nil, err
	}
	return db.Sessions(), db.Close, nil
}

// spoil damages the head of a session in a database file, as a bad sector would; again mends it.
func spoil(ctx context.Context, at, name string) error {
	_, path, _ := strings.Cut(at, ":")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "UPDATE sessions SET head = CAST(CASE substr(head, 1, 1) WHEN x'7b' THEN x'7c' ELSE x'7b' END || substr(head, 2) AS BLOB) WHERE name = ?", name)
	return errors.Join(err, db.Close())
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// agentHost is the command line as a host mounts it that can run turns. Its model says one thing, and in a session whose
// name begins with "broken" it fails.
func agentHost() {
	c := cli.New(cli.Env{RunTurn: func(ctx context.Context, t *sessions.Turn) error {
		if strings.HasPrefix(t.Session(), "broken") {
			return errors.New("the model is away")
		}
		said := fmt.Sprintf(`"on with %s"`, t.Invocation())
		if _, err := t.Append(ctx, session.Reply(stamp.Wall(time.Now(), 0), sessions.NewID(), session.ModelTurn{Content: json.RawMessage(said)})); err != nil {
			return err
		}
		return t.End(ctx, session.TurnEnded{End: session.EndDone})
	}})
	os.Exit(cli.ExitCode(c.Execute()))
}

// What differs from run to run. The agent's own times are fixed, and stay.
var (
	tokens  = regexp.MustCompile(`mlgn1\.[A-Za-z0-9_.-]+`)
	times   = regexp.MustCompile(`20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
	pids    = regexp.MustCompile(`pid \d+`)
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aheadOf = "0000-00-00T00:00:00Z"
)

// golden runs a command that must end with an exit code, and leaves its standard output in the file "out", without what
// differs from run to run: golden N CMD [ARG...].
func golden(ts *testscript.TestScript, neg bool, args []string) {
	code(ts, neg, args)
	out := tokens.ReplaceAllString(strings.ReplaceAll(ts.ReadFile("stdout"), ts.Getenv("WORK"), "$WORK"), "TOKEN")
	out = times.ReplaceAllStringFunc(out, func(s string) string {
		if strings.HasPrefix(s, "2026-03-0") {
			return s
		}
		return aheadOf
	})
	out = uuids.ReplaceAllString(pids.ReplaceAllString(out, "pid N"), "ID")
	ts.Check(os.WriteFile(ts.MkAbs("out"), []byte(out), 0o600))
}

// secret keeps the token that the last command showed in a file: secret FILE.
func secret(ts *testscript.TestScript, _ bool, args []string) {
	token := tokens.FindString(ts.ReadFile("stdout"))
	if token == "" {
		ts.Fatalf("no token was shown")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(token+"\n"), 0o600))
}
