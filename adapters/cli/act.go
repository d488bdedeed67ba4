package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// The commands of this file are what people do about runs. Each writes down first what was wanted, and acts then: what a
// person wants wins over everything that the healer would do, also when this process ends in between.

// actView is what a command did to a run, as JSON.
type actView struct {
	Run     string `json:"run"`
	Name    string `json:"name"`
	Project string `json:"project"`
	Intent  string `json:"intent"`
}

// targetRun is the run that a person means: of a lineage that was put back, the replacement, which has the name now.
func (s *shared) targetRun(ctx context.Context, healer *restart.Healer, target string) (run.Run, error) {
	x, err := healer.Explain(ctx, target)
	switch {
	case errors.Is(err, restart.ErrNoTarget) || err == nil && x.Run == nil:
		return run.Run{}, noTarget(s.program(), target)
	case err != nil:
		return run.Run{}, err
	case x.Replacement != nil && x.Run.ID != target:
		return *x.Replacement, nil
	}
	return *x.Run, nil
}

func noTarget(program, target string) error {
	return fmt.Errorf("nothing goes by %s: `%s list -a` shows the runs", notify.Shell(target), program)
}

// intend records what a person wants of a run. It is written before anything is done about it, so that the healer never
// acts between the two.
func (s *shared) intend(ctx context.Context, h *host, r run.Run, kind run.IntentKind) error {
	by := cmp.Or(s.env.get("USER"), s.env.get("LOGNAME"), "somebody")
	_, err := h.cfg.Stores.Runs.Update(ctx, r.ID, func(cur run.Run) (run.Run, error) {
		cur.Intent = &run.Intent{Kind: kind, At: stamp.Wall(time.Now(), 0), By: by}
		return cur, nil
	})
	if err != nil {
		return fmt.Errorf("record that run %s is %s: nothing was done: %w", r.ID, kind, err)
	}
	return nil
}

func newDismiss(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "dismiss TARGET [-j]",
		Short: "Leave a run as it is, for good",
		Long: "Leave a run that ended as it is: what waits for a decision about it is closed, and it is never put back.\n" +
			"TARGET is as for show.",
		Args: s.args(exactly("TARGET")),
	}
	c.RunE = s.run(func(c *cobra.Command, args []string) error {
		return s.ask(c.Context(), slog.LevelWarn, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
			r, err := s.targetRun(ctx, healer, args[0])
			if err != nil {
				return err
			}
			if restart.MayLive(h.cfg.Stores.Instances, r) {
				return fmt.Errorf("%s runs, so there is nothing to dismiss: `%s stop %s` ends it", notify.Line(r.Name, 0), s.program(), notify.Shell(r.Name))
			}
			if err := s.intend(ctx, h, r, run.Dismissed); err != nil {
				return err
			}
			return s.acted(r, run.Dismissed, json, "Dismissed: %s stays as it is.\n")
		})
	})
	jsonFlag(c, &json)
	return c
}

func newStop(s *shared) *cobra.Command {
	var json bool
	var grace string
	c := &cobra.Command{
		Use:   "stop NAME [--grace DUR] [-j]",
		Short: "End a run, and keep it ended",
		Long: "End a run: SIGTERM to its program's process group, and SIGKILL to what is left after the grace. That a person\n" +
			"wanted it is recorded first, so it is never put back.",
		Args: s.args(exactly("NAME")),
	}
	c.RunE = s.run(func(c *cobra.Command, args []string) error {
		wait, err := parseAge(grace)
		if err != nil {
			return err
		}
		return s.ask(c.Context(), slog.LevelWarn, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
			r, err := s.targetRun(ctx, healer, args[0])
			if err != nil {
				return err
			}
			if err := s.stop(ctx, h, r, wait); err != nil {
				return err
			}
			return s.acted(r, run.Killed, json, "Stopped: %s has ended and is not put back.\n")
		})
	})
	c.Flags().StringVar(&grace, "grace", process.DefaultGrace.String(), "how long the program has to end by itself, a `DUR`")
	jsonFlag(c, &json)
	return c
}

// stop ends the program of a living run. Whatever makes it doubtful that the pid is the program's makes it an error
// instead: a signal cannot be taken back.
func (s *shared) stop(ctx context.Context, h *host, r run.Run, grace time.Duration) error {
	in := h.cfg.Stores.Instances
	switch {
	case r.Ended != nil || in.Liveness(r.Instance) == ledger.Dead:
		return fmt.Errorf("%s has ended already: `%s show %s` tells how", notify.Line(r.Name, 0), s.program(), notify.Shell(r.Name))
	case r.PID == 0:
		return fmt.Errorf("%s runs inside its host (pid %d), which has to end it", notify.Line(r.Name, 0), r.Instance.PID)
	case in.Liveness(r.Instance) != ledger.Alive:
		return fmt.Errorf("whether %s runs cannot be told from here: nothing was signalled", notify.Line(r.Name, 0))
	}
	// While its runner lives and has not recorded the end, the pid is still the program's: the runner reaps it.
	start, err := startTicks(r.PID)
	if err != nil {
		return fmt.Errorf("stop %s: %w", notify.Line(r.Name, 0), err)
	}
	if err := s.intend(ctx, h, r, run.Killed); err != nil {
		return err
	}
	return process.Terminate(ctx, r.PID, start, grace)
}

// acted says what was done.
func (s *shared) acted(r run.Run, kind run.IntentKind, json bool, text string) error {
	if json {
		return printJSON(s.env.Stdout, actView{Run: r.ID, Name: r.Name, Project: r.Project, Intent: string(kind)})
	}
	return printText(s.env.Stdout, fmt.Sprintf(text, notify.Line(r.Name, 0)))
}

func newRetry(s *shared) *cobra.Command {
	e := &execCommand{shared: s}
	c := &cobra.Command{
		Use:   "retry TARGET",
		Short: "Start a run again by hand",
		Long: "Start the program of a run that ended again, under its name, in its folder and with its environment. It begins a\n" +
			"new lineage, with a do-over of its own. The workspace that the old run left behind is named first. TARGET is as\n" +
			"for show. The program runs in the foreground, as under exec.\n\n" +
			"Exit code: that of the program, 128+N when signal N ended it; 125 to 127 for retry's own errors.",
		Args:        s.args(exactly("TARGET")),
		Annotations: map[string]string{programAnnotation: ""},
	}
	c.RunE = s.run(func(c *cobra.Command, args []string) error {
		cfg, err := s.loadConfig()
		if err != nil {
			return ownFailure(err)
		}
		h, err := s.open(cfg, slog.LevelWarn)
		if err != nil {
			return ownFailure(err)
		}
		defer h.close()
		healer, err := h.healer()
		if err != nil {
			return ownFailure(err)
		}
		r, err := s.targetRun(c.Context(), healer, args[0])
		if err != nil {
			return ownFailure(err)
		}
		// Half-done work may lie there, and the program is about to work in it again; whoever did not mean that can still
		// press Ctrl-C.
		for _, w := range r.Workspaces {
			e.warn("the run that ended may have left work in %s", notify.Line(w, 0))
		}
		m, err := h.managed()
		if err != nil {
			return ownFailure(err)
		}
		res, err := m.Exec(c.Context(), again(r), managed.IO{Stdin: s.env.Stdin, Stdout: s.env.Stdout, Stderr: s.env.Stderr})
		return e.ended(res, err)
	})
	return c
}

// again describes the run that does what r did. Its interpreter is looked up anew: a person may have changed it.
func again(r run.Run) managed.Spec {
	rt, err := process.Runtime(r.Recipe)
	if err != nil {
		rt = r.Runtime // the start, which looks for the same program, says what is wrong with it
	}
	return managed.Spec{Project: r.Project, Name: r.Name, Recipe: r.Recipe, Runtime: rt, Roots: r.Roots, Workspaces: r.Workspaces,
		WaitsFor: r.WaitsFor, Supervised: r.Supervised}
}

// startTicks is when a process started, in clock ticks since boot: field 22 of its stat line, counted behind the
// program's name, which may itself hold blanks and parentheses.
func startTicks(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(fields) < 20 {
		return 0, fmt.Errorf("the stat line of process %d is cut off", pid)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
