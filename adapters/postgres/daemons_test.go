package postgres

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// machine is an instance on a machine of its own: it can prove nothing of any other.
type machine struct{ self ledger.Instance }

func (m machine) Self() ledger.Instance { return m.self }
func (m machine) Liveness(i ledger.Instance) ledger.Liveness {
	if i.Same(m.self) {
		return ledger.Alive
	}
	return ledger.LifeUnknown
}

// holder resumes a turn and never ends it.
type holder struct{ name string }

func (holder) Workload(session.Status) (workload, unsupported string) { return "agent", "" }

func (h holder) Resume(ctx context.Context, turn *sessions.Turn) error {
	fmt.Println(h.name, "resumes", turn.Invocation())
	<-ctx.Done()
	return context.Cause(ctx)
}

// daemon is a process on a machine of its own that begins a turn (its name is "starter") or resumes what was interrupted,
// until it is killed.
func daemon(dsn, schema, name string) error {
	ctx := context.Background()
	db, err := Open(ctx, Config{DSN: dsn, Schema: schema})
	if err != nil {
		return err
	}
	// Who is alive renews in time on a loaded machine; what a test waits out is the starter's.
	ttl := 12 * time.Second
	if name == "starter" {
		ttl = 4 * time.Second
	}
	service, err := sessions.New(sessions.Config{Store: db.Sessions(), TTL: ttl, Renew: 300 * time.Millisecond,
		Instances: machine{ledger.Instance{ID: fmt.Sprint(name, "-", os.Getpid()), Boot: "the kernel of " + name}}})
	if err != nil {
		return err
	}
	if name == "starter" {
		h, err := service.Open(ctx, "s")
		if err != nil {
			return err
		}
		turn, err := h.Begin(ctx, sessions.Start{Invocation: "request"})
		if err != nil {
			return err
		}
		fmt.Println(name, "begins", turn.Invocation())
		select {}
	}
	runner, err := resume.New(resume.Config{Sessions: service, Resumer: holder{name}, Rescan: 200 * time.Millisecond})
	if err != nil {
		return err
	}
	runner.Run(ctx)
	return ctx.Err()
}

// Two daemons on one server: a session is resumed by one of them, and by the other when that one dies.
func TestTwoDaemons(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	db := mustOpen(t, c)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 16)
	start := func(name string) *exec.Cmd {
		t.Helper()
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "POSTGRES_TEST_DAEMON="+c.DSN, "POSTGRES_TEST_SCHEMA="+c.Schema, "POSTGRES_TEST_NAME="+name)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			for lines := bufio.NewScanner(out); lines.Scan(); {
				said <- lines.Text()
			}
		}()
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	hear := func(what string) string {
		t.Helper()
		select {
		case line := <-said:
			return line
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain for %s", what)
			return ""
		}
	}
	begun := func() (turns int, fences []uint64) {
		t.Helper()
		for after := uint64(0); ; {
			page, err := db.Sessions().Read(t.Context(), "s", after, 0)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) == 0 {
				return turns, fences
			}
			for _, e := range page {
				if after = e.Seq; e.Kind == session.KindTurnBegun {
					turns, fences = turns+1, append(fences, e.Fence)
				}
			}
		}
	}

	starter := start("starter")
	if line := hear("the first turn"); line != "starter begins request" {
		t.Fatal(line)
	}
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	daemons := map[string]*exec.Cmd{"a resumes request": start("a"), "b resumes request": start("b")}
	winner := hear("one of the two")
	if daemons[winner] == nil {
		t.Fatal(winner)
	}
	// The loser has looked more than once by the time that the winner has renewed its lease over and over.
	first, err := db.Sessions().Head(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		life, err := db.Sessions().Life(t.Context(), first.Owner.ID)
		if err != nil {
			t.Fatal(err)
		}
		if life.Count > 12 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the winner does not renew its lease: %+v", life)
		}
	}
	if turns, _ := begun(); turns != 2 || len(said) != 0 {
		t.Errorf("%d turns have begun, and %d more words were said", turns, len(said))
	}
	if err := daemons[winner].Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if line := hear("the loser"); line == winner || daemons[line] == nil {
		t.Errorf("after the winner died: %s", line)
	}
	turns, fences := begun()
	if turns != 3 || fences[0] >= fences[1] || fences[1] >= fences[2] {
		t.Errorf("%d turns with the fences %v", turns, fences)
	}
}
