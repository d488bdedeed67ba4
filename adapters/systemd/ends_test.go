package systemd

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// A runner that is ended from outside leaves no word. Its manager has one.
func TestEndsUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		t.Run("Bus", func(t *testing.T) { endings(t) })
		t.Run("Programs", func(t *testing.T) { endings(t, byPrograms) })
	}
}

func TestEndsUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		endings(t)
	}
}

func endings(t *testing.T, env ...string) {
	t.Run("Killed", func(t *testing.T) {
		lostReplacement(t, "signal (SIGKILL)", "killed", func(unit string) {
			systemctl(t, "kill", "--signal=KILL", "--kill-who=main", unit)
		}, env...)
	})
	t.Run("StopTimeout", func(t *testing.T) {
		lostReplacement(t, "timeout (SIGKILL)", "timeout", func(unit string) { systemctl(t, "stop", unit) }, append(env, "STUBBORN=1")...)
	})
	t.Run("FirstRun", func(t *testing.T) { lostFirst(t, env...) })
}

// lostReplacement ends the runner of a replacement while no healer looks: its unit stays until the next one has read how
// it ended, and settled the record.
func lostReplacement(t *testing.T, says, cause string, end func(unit string), env ...string) {
	h := newHealed(t, false, env...)
	s, err := openHealing(h.home)
	if err != nil {
		t.Fatal(err)
	}
	defer s.home.Close()
	systemctl(t, "start", h.unit)
	defer systemctl(t, "stop", h.unit)
	unit := "mulligan-" + h.launched(t, s, h.putBack(t, s)) + ".service"
	systemctl(t, "stop", h.unit)
	end(unit)
	until(t, unit+" to have failed", func() bool {
		return systemctl(t, "show", "--value", "-p", "ActiveState", unit) == "failed"
	})
	systemctl(t, "start", h.unit)
	until(t, "the record to be settled", func() bool { return h.record(t, s).State.Final() })
	rec := h.record(t, s)
	if rec.Reason != "replacement_lost" || !strings.Contains(rec.Note, unit+": "+says+".") || rec.State != ledger.SettledFailed ||
		!slices.ContainsFunc(rec.History, func(e ledger.Entry) bool { return e.Event == ledger.SettleBad && e.Cause == cause }) {
		t.Errorf("the record is %s %s: %s\n%+v", rec.State, rec.Reason, rec.Note, rec.History)
	}
	until(t, unit+" to be gone", func() bool {
		return systemctl(t, "show", "--value", "-p", "LoadState", unit) == "not-found"
	})
	if n := len(h.lines("agents")); n != 2 {
		t.Errorf("%d agents were started", n)
	}
}

// manage is a service that is a managed run.
func manage() {
	h, err := openHealing(os.Getenv(dirVar))
	fatal(err)
	_, err = h.runs.Exec(context.Background(), managed.Spec{Project: "acme", Name: os.Getenv("NAME"),
		Recipe: run.Recipe{Command: []string{"/bin/sleep", "600"}, Dir: "/", Env: managed.CleanEnv(os.Environ()), Marking: run.Idempotent}}, managed.IO{})
	fatal(errors.Join(err, h.home.Close()))
}

// lostFirst kills services whose main process is the runner of a first run, one of which has merely inherited that it is in a
// service, and one whose service was started again since: the result of that is another run's.
func lostFirst(t *testing.T, env ...string) {
	h := newHealed(t, false, env...)
	s, err := openHealing(h.home)
	if err != nil {
		t.Fatal(err)
	}
	defer s.home.Close()
	names := []string{"main", "inherited", "again"}
	for _, name := range names {
		text := program(t, "managed", dirVar+"="+h.home, "NAME="+name, "PATH="+os.Getenv("PATH"))
		if name == "inherited" {
			text = strings.Replace(text, "ExecStart=", "ExecStart=/bin/sh -c '\"$0\" & wait $$!' ", 1)
		}
		install(t, "first-"+name+".service", "[Service]\n"+text+"\n")
		systemctl(t, "start", "first-"+name+".service")
	}
	runner := func(name string) (r run.Run) {
		t.Helper()
		until(t, name, func() bool {
			r, err = s.home.Runs().Holder(t.Context(), "acme", name)
			return err == nil && r.PIDStart != 0
		})
		return r
	}
	runs := map[string]run.Run{}
	for _, name := range names {
		runs[name] = runner(name)
		// Its program may not outlive it.
		if err := errors.Join(syscall.Kill(runs[name].Instance.PID, syscall.SIGKILL), kill(runs[name].PID)); err != nil {
			t.Fatal(err)
		}
		until(t, name+" to be gone", func() bool { return !alive(runs[name].Instance.PID) && !alive(runs[name].PID) })
	}
	until(t, "the service to have failed", func() bool {
		return systemctl(t, "show", "--value", "-p", "ActiveState", "first-again.service") == "failed"
	})
	install(t, "first-again.service", "[Service]\nExecStart=/bin/false\n")
	systemctl(t, "start", "first-again.service")
	systemctl(t, "start", h.unit)
	defer systemctl(t, "stop", h.unit)
	for name, want := range map[string]string{"main": "killed", "inherited": "runner_lost", "again": "runner_lost"} {
		var a ledger.Answer
		until(t, "the answer about "+name, func() bool {
			var ok bool
			a, ok, err = s.home.Answers().Answer(t.Context(), runs[name].ID)
			return err == nil && ok
		})
		if a.Reason != want || !a.Loud || strings.Contains(a.Text, "first-"+name+".service: signal (SIGKILL).") != (want == "killed") ||
			want != "killed" && strings.Contains(a.Text, ".service") {
			t.Errorf("the answer about %s is %s: %s", name, a.Reason, a.Text)
		}
	}
}

// kill ends a process that may have ended.
func kill(pid int) error {
	if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
