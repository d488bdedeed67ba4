package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/cli"
	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/postgres"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// TestSessionsOnPostgres takes the commands to a server whose sessions belong to a host on another machine. Of that host
// nothing on this machine proves anything, so it must not be called dead.
func TestSessionsOnPostgres(t *testing.T) {
	t.Parallel()
	url := require.NewPostgres(t).URL("postgres")
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{DSN: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := stamp.Wall(time.Now(), 0)
	elsewhere := ledger.Instance{ID: "far", Boot: "another-kernel", PIDNS: "pid:[1]", PID: 1, Start: 1}
	receipt, err := db.Sessions().Append(ctx, "s", []session.Draft{
		session.Own(now, "own", elsewhere, 0),
		session.Begin(now, "begin/t", session.TurnBegun{}).As(1, "t"),
		session.NewCall(now, session.Call{Invocation: "t", Call: "1", Tool: "scale", Class: session.Mutating}).As(1, "t"),
		session.NewGate(now, session.Pause{Interrupt: "g", Question: json.RawMessage(`"go on?"`)}),
	})
	if err == nil {
		err = receipt.Err()
	}
	if err != nil {
		t.Fatal(err)
	}
	run := onPostgres(t, url, t.TempDir())
	if out := run(0, "show", "s", "-j"); !strings.Contains(out, `"liveness": "unknown"`) || !strings.Contains(out, "go on?") || strings.Contains(out, "interruption") {
		t.Errorf("a session of a host elsewhere is shown as\n%s", out)
	}
	run(0, "answer", "s", "g", "--text", "yes")
	if out := run(4, "ack", "s", "--through", "5", "-j"); !strings.Contains(out, "turn_open") {
		t.Errorf("an acknowledgement over a host that may live: %s", out)
	}
	// Its lease ends, and whoever watches long enough knows it.
	if err := db.Sessions().Renew(ctx, elsewhere, time.Second); err != nil {
		t.Fatal(err)
	}
	if out := run(0, "ack", "s", "--through", "5", "--wait", "60s"); !strings.Contains(out, "Acknowledged") {
		t.Error(out)
	}
}

// TestSessionsOnPostgresOfThisMachine has a host that died beside us: its lock in the state folder is free, which proves its
// death at once, whatever its lease says.
func TestSessionsOnPostgresOfThisMachine(t *testing.T) {
	t.Parallel()
	url := require.NewPostgres(t).URL("postgres")
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{DSN: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	state := t.TempDir()
	home, err := files.Open(files.Config{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	now, owner := stamp.Wall(time.Now(), 0), home.Instances().Self()
	receipt, err := db.Sessions().Append(ctx, "s", []session.Draft{
		session.Own(now, "own", owner, 0),
		session.Begin(now, "begin/t", session.TurnBegun{}).As(1, "t"),
		session.NewCall(now, session.Call{Invocation: "t", Call: "1", Tool: "scale", Class: session.Mutating}).As(1, "t"),
	})
	if err := errors.Join(err, receipt.Err(), db.Sessions().Renew(ctx, owner, time.Hour)); err != nil {
		t.Fatal(err)
	}
	run := onPostgres(t, url, state)
	if out := run(0, "show", "s"); !strings.HasPrefix(out, "s: running") {
		t.Errorf("while its host lives it is shown as\n%s", out)
	}
	if err := home.Close(); err != nil {
		t.Fatal(err)
	}
	if out := run(0, "show", "s"); !strings.HasPrefix(out, "s: interrupted") || !strings.Contains(out, "proven dead") {
		t.Errorf("after its host died it is shown as\n%s", out)
	}
	if out := run(0, "resolve", "s", "3", "happened"); !strings.Contains(out, "Resolved") {
		t.Error(out)
	}
}

// onPostgres runs a command about the sessions of a server, with a state folder, and returns what it printed.
func onPostgres(t *testing.T, url, state string) func(want int, args ...string) string {
	printed := filepath.Join(t.TempDir(), "out")
	return func(want int, args ...string) string {
		t.Helper()
		out, err := os.Create(printed)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		c := cli.New(cli.Env{Stdout: out, Stderr: out, Dir: state, Environ: []string{"MULLIGAN_HOME=" + state, cli.EnvSessions + "=" + url}})
		c.SetArgs(append([]string{"sessions"}, args...))
		code := cli.ExitCode(c.ExecuteContext(t.Context()))
		b, err := os.ReadFile(printed)
		if err != nil || code != want {
			t.Fatalf("sessions %v: exit code %d, want %d: %s%v", args, code, want, b, err)
		}
		return string(b)
	}
}
