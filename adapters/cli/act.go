package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// The commands of this file are what people do about runs. They are faces of the calls of package managed, which say what
// is promised; what they add is the target's name, and in a refusal the command that helps.

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
		return run.Run{}, noTarget(s.called(), target)
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

// person is who gives the command, as the system knows them.
func (s *shared) person(note string) managed.Person {
	return managed.Person{By: cmp.Or(s.env.get("USER"), s.env.get("LOGNAME")), Note: note}
}

// refused says a refusal in the words of the command line, with the command that helps.
func (s *shared) refused(r run.Run, err error) error {
	shown, named := notify.Line(r.Name, 0), notify.Shell(r.Name)
	var gone *managed.SucceededError
	switch {
	case errors.As(err, &gone):
		return fmt.Errorf("another run has its place: `%s show %s` tells which", s.called(), named)
	case errors.Is(err, managed.ErrAlive):
		return fmt.Errorf("%s runs, so there is nothing to dismiss: `%s stop %s` ends it", shown, s.called(), named)
	case errors.Is(err, managed.ErrEnded):
		return fmt.Errorf("%s has ended already: `%s show %s` tells how", shown, s.called(), named)
	case errors.Is(err, managed.ErrInHost):
		return fmt.Errorf("%s runs inside its host (pid %d), which has to end it", shown, r.Instance.PID)
	case errors.Is(err, managed.ErrUnproven):
		return fmt.Errorf("whether %s runs cannot be told from here: nothing was signalled", shown)
	}
	return err
}

// noteFlag is the flag for why a person does something.
func noteFlag(c *cobra.Command, to *string) {
	c.Flags().StringVarP(to, "message", "m", "", "why, a sentence of `TEXT` that is kept with it")
}

// act looks up the run that a person means, does something about it, and says so.
func (s *shared) act(ctx context.Context, target string, kind run.IntentKind, json bool, done string, do func(m *managed.Host, r run.Run) error) error {
	return s.ask(ctx, slog.LevelWarn, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
		r, err := s.targetRun(ctx, healer, target)
		if err != nil {
			return err
		}
		m, err := h.managed()
		if err != nil {
			return err
		}
		if err := do(m, r); err != nil {
			return s.refused(r, err)
		}
		if json {
			return printJSON(s.env.Stdout, actView{Run: r.ID, Name: r.Name, Project: r.Project, Intent: string(kind)})
		}
		return printText(s.env.Stdout, fmt.Sprintf(done, notify.Line(r.Name, 0)))
	})
}

func newDismiss(s *shared) *cobra.Command {
	var json bool
	var note string
	c := &cobra.Command{
		Use:   "dismiss TARGET [-m TEXT] [-j]",
		Short: "Leave a run as it is, for good",
		Long: "Leave a run that ended as it is: what waits for a decision about it is closed, and it is never put back.\n" +
			"TARGET is as for show.",
		Args: s.args(exactly("TARGET")),
	}
	c.RunE = s.run(func(c *cobra.Command, args []string) error {
		return s.act(c.Context(), args[0], run.Dismissed, json, "Dismissed: %s stays as it is.\n", func(m *managed.Host, r run.Run) error {
			return m.Dismiss(c.Context(), r.ID, s.person(note))
		})
	})
	noteFlag(c, &note)
	jsonFlag(c, &json)
	return c
}

func newStop(s *shared) *cobra.Command {
	var json bool
	var grace, note string
	c := &cobra.Command{
		Use:   "stop NAME [--grace DUR] [-m TEXT] [-j]",
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
		return s.act(c.Context(), args[0], run.Killed, json, "Stopped: %s has ended and is not put back.\n", func(m *managed.Host, r run.Run) error {
			return m.Stop(c.Context(), r.ID, wait, s.person(note))
		})
	})
	c.Flags().StringVar(&grace, "grace", process.DefaultGrace.String(), "how long the program has to end by itself, a `DUR`")
	noteFlag(c, &note)
	jsonFlag(c, &json)
	return c
}

func newRetry(s *shared) *cobra.Command {
	e := &execCommand{shared: s}
	var note string
	c := &cobra.Command{
		Use:   "retry TARGET [-m TEXT]",
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
		// A person may have changed the interpreter since. When it is not found, the start, which looks for the same program,
		// says what is wrong with it.
		if rt, err := process.Runtime(r.Recipe); err == nil {
			r.Runtime = rt
		}
		res, err := m.Retry(c.Context(), r, s.person(note), managed.IO{Stdin: s.env.Stdin, Stdout: s.env.Stdout, Stderr: s.env.Stderr})
		return e.ended(res, err)
	})
	noteFlag(c, &note)
	return c
}
