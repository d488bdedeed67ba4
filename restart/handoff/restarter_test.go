package handoff_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// role makes the test binary a program that restarts itself by exec.
const role = "HANDOFF_TEST_ROLE"

func TestMain(m *testing.M) {
	programs := map[string]func() error{"exec": execSelf, "die": dieAt, "refused": refusedRestart}
	program, ok := programs[os.Getenv(role)]
	if !ok {
		os.Exit(m.Run())
	}
	if err := program(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// life is what each of the program's lives writes about itself.
type life struct {
	PID      int    `json:"pid"`
	Start    uint64 `json:"start"`
	Instance string `json:"instance"`
	Before   string `json:"before"` // what is known of the life before
	Entries  int    `json:"entries"`
}

func execSelf() error {
	dir := os.Getenv("DIR")
	home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
	if err != nil {
		return err
	}
	self := home.Instances().Self()
	budget, err := handoff.OpenHistory(filepath.Join(dir, "home", "handoff"))
	if err != nil {
		return err
	}
	entries, err := budget.Entries(context.Background())
	if err != nil {
		return err
	}
	l := life{PID: os.Getpid(), Start: host.Self().Start, Instance: self.ID, Entries: len(entries)}
	file := filepath.Join(dir, "first")
	if b, err := os.ReadFile(file); err == nil {
		var first life
		if err := json.Unmarshal(b, &first); err != nil {
			return err
		}
		// The lock of the life before has to be free, although the process is the same.
		l.Before = string(home.Instances().Liveness(ledger.Instance{ID: first.Instance, Boot: self.Boot, PIDNS: self.PIDNS, PID: self.PID, Start: self.Start}))
		file = filepath.Join(dir, "second")
	}
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(file+".new", b, 0o600), os.Rename(file+".new", file)); err != nil {
		return err
	}
	if l.Before != "" {
		return nil
	}
	failed := make(chan handoff.Failure, 1)
	h, err := handoff.New(handoff.Config{Restarter: handoff.ExecSelf{}, History: budget, Delay: time.Millisecond,
		Failed: func(f handoff.Failure) { failed <- f }})
	if err != nil {
		return err
	}
	if res := h.Ask(context.Background(), handoff.Asker{}, handoff.Request{Reason: "a new build"}); !res.OK {
		return errors.New(res.Error)
	}
	return (<-failed).Err
}

func TestAProcessReplacesItsOwnImage(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("process identities are read on Linux")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), role+"=exec", "DIR="+dir)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	var first, second life
	for name, to := range map[string]*life{"first": &first, "second": &second} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, to); err != nil {
			t.Fatal(err)
		}
	}
	if first.PID != second.PID || first.Start != second.Start || first.Instance == second.Instance {
		t.Errorf("it is another process, or the same instance: %+v, %+v", first, second)
	}
	if second.Before != string(ledger.Dead) {
		t.Errorf("the instance before the exec is %s: its lock was inherited", second.Before)
	}
	if first.Entries != 0 || second.Entries != 1 {
		t.Errorf("the record of the restart is not there: %+v, %+v", first, second)
	}
}

func TestWhatExecSelfRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("neither a program nor a script"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"relative", filepath.Join(dir, "absent"), plain, dir} {
		if err := (handoff.ExecSelf{Path: path}).Check(t.Context(), ""); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := (handoff.ExecSelf{}).Check(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if err := (handoff.ExecSelf{Path: garbage}).Restart(t.Context(), ""); err == nil || errors.Is(err, handoff.ErrUnknown) {
		t.Errorf("what cannot be executed: %v", err)
	}
	// A host that is not ready, also because its own time was up, refuses: nothing was lost on the way.
	before := func(context.Context) error { return context.DeadlineExceeded }
	if err := (handoff.ExecSelf{Before: before}).Restart(t.Context(), ""); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a host that is not ready: %v", err)
	}
}

// TestExecSelfCutsNoDrain: what a host has to end first may take longer than a manager may take for its answer.
func TestExecSelfCutsNoDrain(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	refuses := errors.New("not drained")
	var cut error
	before := func(ctx context.Context) error { cut = ctx.Err(); return refuses }
	if err := (handoff.ExecSelf{Before: before}).Restart(ctx, ""); !errors.Is(err, refuses) || cut != nil {
		t.Errorf("%v; the host's own end was cut: %v", err, cut)
	}
}

type policy func() error

func (p policy) RestartsOnExit(context.Context, string, int) error { return p() }

func TestExitStatusAsksWhetherTheUnitComesBack(t *testing.T) {
	t.Parallel()
	var exited []int
	dead := errors.New("Restart=no")
	answer := dead
	e := handoff.ExitStatus{Code: 75, Policy: policy(func() error { return answer }), Exit: func(c int) { exited = append(exited, c) }}
	if !e.NeedsUnit() {
		t.Error("it needs a unit")
	}
	if err := e.Check(t.Context(), "a.service"); !errors.Is(err, dead) {
		t.Error(err)
	}
	if err := e.Restart(t.Context(), "a.service"); !errors.Is(err, dead) || len(exited) != 0 {
		t.Errorf("%v, exited %v", err, exited)
	}
	answer = context.DeadlineExceeded
	if err := e.Restart(t.Context(), "a.service"); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("nothing was asked of anybody, so nothing is unknown: %v", err)
	}
	answer = nil
	if err := e.Restart(t.Context(), "a.service"); err != nil || len(exited) != 1 || exited[0] != 75 {
		t.Errorf("%v, exited %v", err, exited)
	}
	for _, bad := range []handoff.ExitStatus{{}, {Code: 256, Policy: e.Policy, Exit: e.Exit}} {
		if err := bad.Check(t.Context(), "a.service"); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestCustom(t *testing.T) {
	t.Parallel()
	no := errors.New("not now")
	if err := (handoff.Custom{}).Check(t.Context(), ""); err == nil {
		t.Error("it restarts nothing")
	}
	c := handoff.Custom{Allowed: func(context.Context) error { return no }, Do: func(context.Context) error { return handoff.ErrUnknown }}
	if err := c.Check(t.Context(), ""); !errors.Is(err, no) {
		t.Error(err)
	}
	if err := c.Restart(t.Context(), ""); !errors.Is(err, handoff.ErrUnknown) {
		t.Error(err)
	}
}
