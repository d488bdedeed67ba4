package handoff_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// The places where a process is killed.
const (
	atNotice  = "right after the notice was written"
	atBatch   = "right after the batch was written"
	atRestart = "when the restart is asked for"
)

func die(where string) {
	if os.Getenv("AT") == where {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		panic(err)
	}
}

// fileNotice is an outbox of one file.
type fileNotice string

func (f fileNotice) Request(_ context.Context, n bootnotice.Request) error {
	b, err := json.Marshal(n)
	err = errors.Join(err, os.WriteFile(string(f), b, 0o600))
	die(atNotice)
	return err
}
func (f fileNotice) Withdraw(context.Context, string) error { return os.Remove(string(f)) }

// dying is a log that is killed right after it has written the end of a turn.
type dying struct{ *sessionlog.Store }

func (d dying) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	r, err := d.Store.Append(ctx, name, batch)
	if r.Head.Ended == session.EndRestarting {
		die(atBatch)
	}
	return r, err
}

func dieAt() error {
	ctx, dir := context.Background(), os.Getenv("DIR")
	home, err := files.Open(files.Config{Dir: dir + "/home"})
	if err != nil {
		return err
	}
	store, err := sessionlog.Open(sessionlog.Config{Path: dir + "/sessions"})
	if err != nil {
		return err
	}
	budget, err := handoff.OpenHistory(dir + "/home/handoff")
	if err != nil {
		return err
	}
	h, err := handoff.New(handoff.Config{History: budget, Notices: fileNotice(dir + "/notice"), Delay: time.Millisecond,
		Restarter: handoff.Custom{Do: func(context.Context) error { die(atRestart); return nil }}})
	if err != nil {
		return err
	}
	s, err := sessions.New(sessions.Config{Store: dying{store}, Instances: home.Instances(), Admit: h.Admit})
	if err != nil {
		return err
	}
	h.Attach(s)
	handle, err := s.Open(ctx, "s")
	if err != nil {
		return err
	}
	turn, err := handle.Begin(ctx, sessions.Start{})
	if err != nil {
		return err
	}
	g, err := effect.New(effect.Config{Turn: turn, Now: s.Now})
	if err != nil {
		return err
	}
	_, err = g.Do(ctx, effect.Call{ID: "1", Tool: "self_restart"}, func(ctx context.Context) (effect.Result, error) {
		return effect.Result{Value: h.Tool().Call(ctx, handoff.Asker{Turn: turn, Call: "1"}, nil)}, nil
	})
	if err != nil {
		return err
	}
	time.Sleep(time.Minute)
	return errors.New("it was not killed")
}

// A process that is killed on the way leaves the session in order from the batch on, and the notice in every case.
func TestKilledOnTheWay(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]session.Headline{atNotice: session.Interrupted, atBatch: session.Idle, atRestart: session.Idle} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, self)
			cmd.Env = append(os.Environ(), role+"=die", "DIR="+dir, "AT="+at)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			var exit *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &exit) || exit.Exited() {
				t.Fatalf("it was not killed: %v, %s", err, &out)
			}
			store, err := sessionlog.Read(sessionlog.Config{Path: filepath.Join(dir, "sessions")})
			if err != nil {
				t.Fatal(err)
			}
			head, err := store.Head(t.Context(), "s")
			if err != nil {
				t.Fatal(err)
			}
			st := head.Status(ledger.Dead)
			if st.Headline != want || st.Ambiguous != (want == session.Interrupted) || (st.Interruption != nil) != (want == session.Interrupted) {
				t.Errorf("the session is %+v", st)
			}
			if _, err := os.Stat(filepath.Join(dir, "notice")); err != nil {
				t.Error("the notice is lost:", err)
			}
			budget, err := handoff.OpenHistory(filepath.Join(dir, "home", "handoff"))
			if err != nil {
				t.Fatal(err)
			}
			defer budget.Close()
			if e, err := budget.Entries(t.Context()); err != nil || len(e) != 1 || e[0].Withdrawn {
				t.Errorf("the record of the restart: %+v, %v", e, err)
			}
		})
	}
}
