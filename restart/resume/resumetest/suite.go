package resumetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

// patience is how long a process has to come to its end.
const patience = time.Minute

// Process is what one process opens.
type Process struct {
	Store session.Store
	// Instances must prove a killed process dead at once, as kernel locks do.
	Instances ledger.Instances
	// Close is called when the process ends without being killed.
	Close func() error
}

// Opener opens the store that lies in a folder, for the process that calls it. The folder is the same for all processes
// of one case, and empty for the first. One whose store is a server returns when the server is done with what a killed
// process had sent.
type Opener func(dir string) (Process, error)

// step is a place in a turn at which its process is killed.
type step struct {
	name string
	// found is the state in which the next process finds the session, marked whether a drain had said so.
	found  session.Headline
	marked bool
	// outcome is what auto-resume does about it; empty when it has nothing to do.
	outcome resume.Outcome
	// calls are those that have happened when all is over.
	calls int
}

var steps = []step{
	{"the session is taken", session.Idle, false, "", 0},
	{"the turn has begun", session.Interrupted, false, resume.Resumed, 2},
	{"the turn is marked", session.Interrupted, true, resume.Resumed, 2},
	{"the model has spoken", session.Interrupted, false, resume.Resumed, 2},
	{"read 1 is under way", session.Interrupted, false, resume.Resumed, 2},
	{"read 1 is done", session.Interrupted, false, resume.Resumed, 2},
	{"write 1 is intended", session.Interrupted, false, resume.SkippedAmbiguous, 2},
	{"write 1 has happened", session.Interrupted, false, resume.SkippedAmbiguous, 2},
	{"write 1 is completed", session.Interrupted, false, resume.Resumed, 2},
	{"read 2 is under way", session.Interrupted, false, resume.Resumed, 2},
	{"read 2 is done", session.Interrupted, false, resume.Resumed, 2},
	{"write 2 is intended", session.Interrupted, false, resume.SkippedAmbiguous, 2},
	{"write 2 has happened", session.Interrupted, false, resume.SkippedAmbiguous, 2},
	{"write 2 is completed", session.Interrupted, false, resume.Resumed, 2},
	{"the model has finished", session.Interrupted, false, resume.Cleared, 2},
	{"the turn has ended", session.Idle, false, "", 2},
}

// Run kills processes at every step of a turn, and some at any moment, and checks what the next ones find.
func Run(t *testing.T, open Opener) {
	t.Helper()
	if become(t, open) {
		return
	}
	for _, s := range steps {
		t.Run(strings.ReplaceAll(s.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			if err := (arena{name: t.Name(), dir: t.TempDir()}).killedAt(t.Context(), s); err != nil {
				t.Errorf("killed when %s: %v", s.name, err)
			}
		})
	}
	for _, after := range []int{1, 2, 3, 5, 8, 13, 21, 34} {
		t.Run(fmt.Sprintf("at_any_moment_after_%d_events", after), func(t *testing.T) {
			t.Parallel()
			if err := (arena{name: t.Name(), dir: t.TempDir()}).killedAfter(t.Context(), after); err != nil {
				t.Errorf("killed some time after %d events were acknowledged: %v", after, err)
			}
		})
	}
}

// arena is the folder of one case, and the test that its processes are started as.
type arena struct {
	name, dir string
}

// command is the test binary once more, in a role.
func (a arena) command(ctx context.Context, role, at string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+strings.ReplaceAll(regexp.QuoteMeta(a.name), "/", "$/^")+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), envRole+"="+role, envStep+"="+at, envDir+"="+a.dir)
	return cmd
}

// run is a process that is expected to end by itself, and its report.
func (a arena) run(ctx context.Context, role string) (r report, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := a.command(ctx, role, "").CombinedOutput()
	if err != nil {
		return r, fmt.Errorf("the process that should %s ended with %w:\n%s", role, err, out)
	}
	b, err := os.ReadFile(filepath.Join(a.dir, reportFile))
	if err != nil {
		return r, err
	}
	return r, json.Unmarshal(b, &r)
}

func (a arena) killedAt(ctx context.Context, s step) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := a.command(bounded, roleTurn, s.name).CombinedOutput()
	if !killed(err) {
		return fmt.Errorf("the process was not killed, it ended with %v:\n%s", err, out)
	}
	found, err := a.run(ctx, roleResume)
	if err != nil {
		return err
	}
	if err := found.whole(); err != nil {
		return err
	}
	st := found.Before[name(0)]
	wrong := func(what string, got, want any) error {
		return fmt.Errorf("broken promise: %s: it is %v, and should be %v", what, got, want)
	}
	switch {
	case st.Headline != s.found:
		return wrong("the state is derived from the log and the owner's life", st.Headline, s.found)
	case s.found == session.Interrupted && st.Interruption.Marked != s.marked:
		return wrong("a mark is what a drain said, and no kill needs one", st.Interruption.Marked, s.marked)
	case st.Ambiguous != (s.outcome == resume.SkippedAmbiguous):
		return wrong("an effect that is unknown is shown, and no other", st.Ambiguous, !st.Ambiguous)
	case found.Outcome[name(0)] != s.outcome:
		return wrong("auto-resume does what the state allows", found.Outcome[name(0)], s.outcome)
	}
	return a.over(ctx, found, s.calls)
}

// over lets a person resolve what is unknown, and wants everything to be done once in the end.
func (a arena) over(ctx context.Context, r report, calls int) error {
	if slices.Contains(outcomes(r), resume.SkippedAmbiguous) {
		if err := r.once(); err != nil {
			return fmt.Errorf("before anybody resolved anything: %w", err)
		}
		var err error
		if r, err = a.run(ctx, roleResolve); err != nil {
			return err
		}
	}
	if err := errors.Join(r.whole(), r.once()); err != nil {
		return err
	}
	for name, st := range r.After {
		// What there was nothing to do about is still its dead owner's.
		if st.Headline != session.Idle || st.Head.Owner.ID != "" && r.Outcome[name] != "" {
			return fmt.Errorf("when all is over session %s is %s, owned by %q, after %v", name, st, st.Head.Owner.ID, r.Outcome)
		}
	}
	if calls >= 0 && len(r.Effects) != calls {
		return fmt.Errorf("broken promise: every call happens in the end: %v happened, and %d should have", r.Effects, calls)
	}
	return nil
}

func outcomes(r report) (out []resume.Outcome) {
	for _, o := range r.Outcome {
		out = append(out, o)
	}
	return out
}

// killedAfter kills a busy process from outside, at a moment that nobody chose.
func (a arena) killedAfter(ctx context.Context, acknowledged int) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := a.command(bounded, roleBusy, "")
	if err := cmd.Start(); err != nil {
		return err
	}
	for len(lines(filepath.Join(a.dir, ackFile))) < acknowledged && bounded.Err() == nil {
		time.Sleep(time.Millisecond) // a look, until it has happened
	}
	late := bounded.Err()
	_ = cmd.Process.Kill()
	if err := cmd.Wait(); late != nil || !killed(err) {
		return fmt.Errorf("the process was not killed at work: %v, %v", err, late)
	}
	found, err := a.run(ctx, roleResume)
	if err != nil {
		return err
	}
	if err := found.whole(); err != nil {
		return err
	}
	for name, st := range found.Before {
		if st.Ambiguous != (found.Outcome[name] == resume.SkippedAmbiguous) {
			return fmt.Errorf("broken promise: what is unknown is not resumed: session %s is %s (ambiguous %v), and the outcome %q",
				name, st, st.Ambiguous, found.Outcome[name])
		}
	}
	return a.over(ctx, found, -1)
}
