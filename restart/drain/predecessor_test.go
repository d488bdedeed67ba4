//go:build unix

// What a predecessor's stop did to the hosts that it ran in. The list of all such failures is at the top of
// restart/boot/predecessor_test.go.
package drain_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// flushLines is what the host writes when it stops.
const flushLines = 1000

// serviceChild is a host that drains at the first signal, writes what it has, and exits with the drain's code. It has
// handlers of its own, registered before ours and after.
//
//	service            nothing is under way
//	service waits      a turn is, which ends only when it is cancelled
//	service flushes    it is in the middle of its flush when the second signal comes
func serviceChild(mode string) int {
	again, drained, heard := make(chan struct{}), make(chan int, 1), make(chan struct{}, 16)
	handler := func(name string) {
		c := make(chan os.Signal, 16)
		signal.Notify(c, syscall.SIGTERM)
		go func() {
			for s := range c {
				fmt.Println(name, s)
				heard <- struct{}{}
			}
		}()
	}
	fail := func(err error) int {
		fmt.Println(err)
		return 99
	}
	d, err := drain.New(drain.Config{Wait: time.Minute, Teardown: time.Minute})
	if err != nil {
		return fail(err)
	}
	service, err := sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}), Instances: memory.New(memory.Config{}).Instances(), Admit: d.Admit})
	if err != nil {
		return fail(err)
	}
	if mode == "service waits" {
		h, err := service.Open(context.Background(), "s")
		if err != nil {
			return fail(err)
		}
		turn, err := h.Begin(context.Background(), sessions.Start{})
		if err != nil {
			return fail(err)
		}
		go func() {
			<-turn.Context().Done()
			if err := turn.End(context.Background(), session.TurnEnded{End: session.EndFailed}); err != nil {
				fmt.Println(err)
			}
		}()
	}
	teardown := func(ctx context.Context) error {
		for i := range flushLines {
			if i == flushLines/2 && mode == "service flushes" {
				fmt.Println("half")
				<-again
			}
			if err := errors.Join(ctx.Err(), flush(i)); err != nil {
				return err
			}
		}
		return service.Close()
	}
	handler("before")
	hurry, cancel := context.WithCancel(context.Background())
	defer cancel()
	l, err := drain.Listen(drain.Signals{
		First: func(s os.Signal) {
			fmt.Println("first", s)
			r, err := d.Drain(hurry, drain.Order{Sessions: service, Why: s.String(), Teardown: teardown})
			if err != nil {
				fmt.Println(err)
			}
			drained <- r.ExitCode()
		},
		Again: func(s os.Signal) {
			fmt.Println("again", s)
			cancel()
			close(again)
		},
	})
	if err != nil {
		return fail(err)
	}
	handler("after")
	fmt.Println("ready")
	code := <-drained
	signals := 2 // for each handler
	if mode == "service" {
		signals = 1
	}
	for range 2 * signals {
		<-heard // or it would end before they had said so
	}
	if err := l.Close(); err != nil {
		return fail(err)
	}
	return code
}

// flush appends one line, as a host does that has many small things to save.
func flush(i int) (err error) {
	f, err := os.OpenFile(os.Getenv("FLUSH"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = fmt.Fprintln(f, i)
	return err
}

// stopping starts such a host. ends waits for it, and wants a clean end with all that it had to save.
func stopping(t *testing.T, mode string) (h *host, ends func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "flushed")
	h = start(t, mode, "/usr/bin/env", "FLUSH="+file)
	return h, func() {
		t.Helper()
		h.wantsEnd()
		err := h.cmd.Wait()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || !exit.Exited() || exit.ExitCode() != drain.ExitClean) {
			t.Errorf("it ended with %v, and not by itself", err)
		}
		b, err := os.ReadFile(file)
		if got := strings.Count(string(b), "\n"); err != nil || got != flushLines {
			t.Errorf("%d lines of %d were saved, %v", got, flushLines, err)
		}
	}
}

// TestPredecessorSignalIsNotEaten stops a host that has handlers of its own, before ours and after: each gets the signal
// once, ours begins the drain, and the process really ends.
func TestPredecessorSignalIsNotEaten(t *testing.T) {
	t.Parallel()
	h, ends := stopping(t, "service")
	h.send(syscall.SIGTERM)
	h.wants("first terminated", "before terminated", "after terminated")
	ends()
}

// TestPredecessorSecondSignalCutsNoFlush sends a second signal to a host that is stopping: while it waits, which ends the
// wait, and in the middle of its flush, which goes on to its end. Nobody is told of a signal twice.
func TestPredecessorSecondSignalCutsNoFlush(t *testing.T) {
	t.Parallel()
	for mode, seen := range map[string][]string{"service waits": nil, "service flushes": {"half"}} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h, ends := stopping(t, mode)
			h.send(syscall.SIGTERM)
			h.wants(append(seen, "first terminated", "before terminated", "after terminated")...)
			h.send(syscall.SIGTERM)
			h.wants("again terminated", "before terminated", "after terminated")
			ends()
		})
	}
}
