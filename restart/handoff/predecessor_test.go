// What a predecessor's self-restart left behind. The list of all such failures is at the top of
// restart/boot/predecessor_test.go; two of them are in handoff_test.go.
package handoff_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// service is what a host has open, over one folder.
type service struct {
	sessions *sessions.Service
	keeper   *boot.Keeper
	budget   *handoff.File
	close    func() error
}

func openService(dir string, d boot.Deliverer, admit func(string) (func(), error)) (*service, error) {
	home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
	if err != nil {
		return nil, err
	}
	store, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "sessions")})
	if err != nil {
		return nil, err
	}
	s, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances(), Admit: admit})
	if err != nil {
		return nil, err
	}
	keeper, err := boot.New(context.Background(), boot.Config{Dir: filepath.Join(dir, "boot"), Instance: home.Instances().Self(), Deliver: d,
		Sessions: s, Startup: []string{"s"}, Notice: bootnotice.Config{Wait: -1}})
	if err != nil {
		return nil, err
	}
	budget, err := handoff.OpenHistory(filepath.Join(dir, "handoff"))
	if err != nil {
		return nil, err
	}
	return &service{s, keeper, budget, func() error {
		return errors.Join(keeper.Close(), s.Close(), store.Close(), budget.Close(), home.Close())
	}}, nil
}

// messages is a host that keeps what it is told.
type messages []bootnotice.Delivery

func (m *messages) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	*m = append(*m, d)
	return false, nil
}
func (*messages) Undeliverable(context.Context, bootnotice.Notice) error { return nil }

// refusedRestart asks for a restart by a command that fails, says so, and lives on.
func refusedRestart() error {
	ctx := context.Background()
	failures := make(chan handoff.Failure, 1)
	var h *handoff.Handoff
	s, err := openService(os.Getenv("DIR"), &messages{}, func(name string) (func(), error) { return h.Admit(name) })
	if err != nil {
		return err
	}
	h, err = handoff.New(handoff.Config{History: s.budget, Notices: s.keeper.Outbox(), Delay: time.Millisecond,
		Restarter: handoff.Custom{Do: func(ctx context.Context) error {
			return exec.CommandContext(ctx, "/bin/sh", "-c", "echo no such unit >&2; exit 5").Run()
		}},
		Failed: func(f handoff.Failure) { failures <- f }})
	if err != nil {
		return err
	}
	h.Attach(s.sessions)
	handle, err := s.sessions.Open(ctx, "s")
	if err != nil {
		return err
	}
	turn, err := handle.Begin(ctx, sessions.Start{})
	if err != nil {
		return err
	}
	if res := h.Ask(ctx, handoff.Asker{Turn: turn}, handoff.Request{Reason: "a new build"}); !res.OK {
		return errors.New(res.Error)
	}
	f := <-failures
	fmt.Println("failed", f.Sessions, f.Unknown, f.Err)
	select {}
}

// TestPredecessorFailedRestartCommandLeavesNoNotice has a restart command that fails, and kills the process some time
// after: the next one was not asked for, and nobody is told that it was.
func TestPredecessorFailedRestartCommandLeavesNoNotice(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	dir := t.TempDir()
	cmd := exec.Command(self)
	cmd.Env, cmd.Stderr = append(os.Environ(), role+"=refused", "DIR="+dir), os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewScanner(out)
	if lines.Scan(); lines.Text() != "failed [s] false exit status 5" {
		t.Fatalf("it says %q", lines.Text())
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()

	var told messages
	s, err := openService(dir, &told, nil)
	must(t, err)
	if left, err := s.keeper.Outbox().Requests(t.Context()); len(left) != 0 || err != nil {
		t.Errorf("requests that nobody will fulfil: %+v, %v", left, err)
	}
	must(t, s.keeper.Run(t.Context()))
	if len(told) != 1 || told[0].Session != "s" || strings.Contains(told[0].Text, "asked for") ||
		!strings.Contains(told[0].Text, "Reason: it ended without a word (a crash, a kill or a power loss).") {
		t.Errorf("told %+v", told)
	}
	if e, err := s.budget.Entries(t.Context()); err != nil || len(e) != 1 || !e[0].Withdrawn {
		t.Errorf("the record of the restart: %+v, %v", e, err)
	}
	must(t, s.close())
}

// A stop that comes while a restart waits: the drain waits for the turn that waits for the other one, and all end with it.
func TestPredecessorADrainAndAWaiterDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	var d *drain.Drain // made in the bubble, whose time it takes
	draining := func(c *handoff.Config) {
		var err error
		d, err = drain.New(drain.Config{})
		must(t, err)
		c.Admit = d.Admit
	}
	bubble(t, draining, func(t *testing.T, w *world) {
		one, two := w.begin("one"), w.begin("two")
		answer := w.later(one, `{"wait":true}`)
		synctest.Wait()
		drained := make(chan drain.Result, 1)
		go func() {
			r, err := d.Drain(context.Background(), drain.Order{Sessions: w.s, Why: "deploy"})
			if err != nil {
				t.Error(err)
			}
			drained <- r
		}()
		time.Sleep(10 * time.Second)
		w.done(two)
		if res := <-answer; !res.OK || res.WaitedMs != 10000 {
			t.Errorf("%+v", res)
		}
		if r := <-drained; r.ExitCode() != drain.ExitClean || r.Cancelled != 0 || r.Took != 10*time.Second {
			t.Errorf("the drain: %+v", r)
		}
		w.restarted("one") // also without the mark that the drain had put on its turn
	})
}

// TestCloseReleasesTheHistory leaves no handle in its folder.
func TestCloseReleasesTheHistory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := handoff.OpenHistory(dir)
	must(t, err)
	must(t, f.Reserve(t.Context(), handoff.Entry{ID: "e", At: host.Now()}))
	must(t, f.Close())
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("handles are counted in /proc")
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name())); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s is still open", target)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
