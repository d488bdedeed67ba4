package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// runCommand is the healer: one pass, or the loop.
type runCommand struct {
	*shared
	dir                        string
	pending, follow, dry, json bool
}

func newRun(s *shared) *cobra.Command {
	r := &runCommand{shared: s}
	c := &cobra.Command{
		Use:   "run (NAME | -a DIR | -p) [--follow] [-n] [-j]",
		Short: "Decide what is pending, and put back what an update broke",
		Long: "Decide the deaths that are pending: of one run (NAME), of the runs whose folder or workspace is in DIR (-a), or\n" +
			"all of them (-p). With --follow it goes on: it waits for doorbells until it is interrupted, and logs what it\n" +
			"does. With -n it takes the same path with every write off; the probe runs, without writing bytecode.\n\n" +
			"Exit code 1: a run could not be dealt with. 3: the healer is disabled or paused, so nothing was decided.",
		Args: s.args(cobra.MaximumNArgs(1)),
		RunE: s.run(r.run),
	}
	c.Flags().StringVarP(&r.dir, "all-in", "a", "", "the runs whose folder or workspace is in `DIR`")
	c.Flags().BoolVarP(&r.pending, "pending", "p", false, "all that is pending")
	c.Flags().BoolVar(&r.follow, "follow", false, "go on until interrupted (all that is pending)")
	c.Flags().BoolVarP(&r.dry, "dry-run", "n", false, "decide, but write and start nothing")
	jsonFlag(c, &r.json)
	return c
}

// passView is a pass as JSON.
type passView struct {
	DryRun bool `json:"dry_run,omitempty"`
	restart.Result
}

func (r *runCommand) run(c *cobra.Command, args []string) error {
	if err := r.check(c, args); err != nil {
		return err
	}
	level := slog.LevelWarn
	if r.follow {
		level = slog.LevelInfo
	}
	return r.ask(c.Context(), level, func(ctx context.Context, h *host, cfg config.Config, healer *restart.Healer) error {
		// An interrupt ends a pass between two deaths, never inside a launch; only while this command runs is it ours.
		ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
		defer stop()
		scope, err := r.scope(ctx, healer, args)
		if err != nil {
			return err
		}
		// Switched off, a loop could only wait for a config that it never reads again. It settles what was begun, shows what
		// is pending, and leaves with the code that says why.
		if r.follow && cfg.Enabled {
			return healer.Run(ctx)
		}
		return r.pass(ctx, healer, scope)
	})
}

// check finds arguments that contradict one another.
func (r *runCommand) check(c *cobra.Command, args []string) error {
	chosen := len(args)
	for _, on := range []bool{c.Flags().Changed("all-in"), r.pending} {
		if on {
			chosen++
		}
	}
	switch {
	case r.follow && r.dry:
		return usage("--follow and -n exclude one another: -n shows one pass")
	case r.follow && r.json:
		return usage("--follow has no result to print as JSON: it logs what it does, and `%s list -j` shows where things stand", r.called())
	case r.follow && (len(args) > 0 || r.dir != ""):
		return usage("--follow watches everything: leave NAME and -a out")
	case chosen == 0 && !r.follow:
		return usage("nothing is chosen: give a run's NAME, -a DIR or -p for all that is pending")
	case chosen > 1:
		return usage("NAME, -a and -p exclude one another: give one of them")
	case len(args) == 1 && args[0] == "":
		return usage("NAME is empty: %s", c.UseLine())
	}
	return nil
}

// scope is what the arguments choose. A target names a run; what is decided is the name, so that a replacement of it
// counts too.
func (r *runCommand) scope(ctx context.Context, healer *restart.Healer, args []string) (restart.Scope, error) {
	switch {
	case r.dir != "":
		dir, err := r.env.path(r.dir)
		if err != nil {
			return restart.Scope{}, err
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		return restart.Scope{Dir: dir}, nil
	case len(args) == 1:
		x, err := healer.Explain(ctx, args[0])
		if errors.Is(err, restart.ErrNoTarget) || err == nil && x.Run == nil {
			return restart.Scope{}, noTarget(r.called(), args[0])
		}
		if err != nil {
			return restart.Scope{}, err
		}
		return restart.Scope{Project: x.Run.Project, Name: x.Run.Name}, nil
	}
	return restart.Scope{}, nil
}

// pass makes one pass and shows it. That a run could not be dealt with outweighs that the healer is held: the first needs
// a person.
func (r *runCommand) pass(ctx context.Context, healer *restart.Healer, scope restart.Scope) error {
	if r.dry {
		healer = healer.DryRun()
	}
	res, err := healer.Pass(ctx, scope)
	if err != nil {
		return err
	}
	// A launcher of the host's own may hold its programs; with ours nobody waits here.
	healer.Wait()
	if res.Outcomes == nil {
		res.Outcomes = []restart.Outcome{} // an empty list, not null
	}
	for i, o := range res.Outcomes {
		o.Name, o.Text, o.Error = notify.Redact(o.Name), notify.Redact(o.Text), notify.Redact(o.Error)
		res.Outcomes[i] = o
	}
	if r.json {
		err = printJSON(r.env.Stdout, passView{DryRun: r.dry, Result: res})
	} else {
		err = printText(r.env.Stdout, r.text(res))
	}
	switch {
	case err != nil:
		return err
	case res.Failed():
		return silent(CodeFailed)
	case res.Held != "":
		return silent(CodeDisabled)
	}
	return nil
}

func (r *runCommand) text(res restart.Result) string {
	text := ""
	rows := [][]string{}
	for _, o := range res.Outcomes {
		name := cmp.Or(o.Name, o.Lineage, o.Run, "?")
		if o.Error != "" {
			rows = append(rows, []string{notify.Line(name, 40), "error", notify.Line(o.Error, 0)})
			continue
		}
		rows = append(rows, []string{notify.Line(name, 40), cmp.Or(o.Code, string(o.Verdict)), notify.Line(o.Text, 0)})
	}
	text += table(rows)
	switch res.Held {
	case policy.Disabled:
		text += "The healer is switched off (enabled: false): nothing was decided.\n"
	case "":
		if len(rows) == 0 {
			text += "Nothing is pending.\n"
		}
	default:
		text += "The healer is paused: nothing was decided. To go on: " + r.called() + " resume\n"
	}
	if r.dry {
		text += "Dry run: nothing was written or started, nobody was told; probes ran without writing bytecode.\n"
	}
	return text
}

func newResume(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "resume [-j]",
		Short: "End a pause, whoever or whatever made it",
		Long: "End a pause. Deaths that were held and are not too old are decided by the next pass; older ones are answered\n" +
			"held_too_long. It is no error when nothing is paused.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error {
		return s.ask(c.Context(), slog.LevelWarn, func(ctx context.Context, _ *host, cfg config.Config, healer *restart.Healer) error {
			was, err := healer.Resume(ctx, cmp.Or(s.env.get("USER"), s.env.get("LOGNAME"), "somebody"))
			if err != nil {
				return err
			}
			if json {
				return printJSON(s.env.Stdout, map[string]any{"resumed": was, "enabled": cfg.Enabled})
			}
			text := "Nothing was paused.\n"
			if was {
				text = "Resumed. To decide what is pending now: " + s.called() + " run -p\n"
			}
			if !cfg.Enabled {
				text += "The healer is switched off by its config (enabled: false), which resume does not change.\n"
			}
			return printText(s.env.Stdout, text)
		})
	})
	jsonFlag(c, &json)
	return c
}
