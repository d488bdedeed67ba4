package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// execCommand is a managed run, in both of its forms: the one that a person or a host starts, and the runner of a
// replacement, which the healer starts.
type execCommand struct {
	*shared
	phases, idempotent           bool
	runName, project, supervised string
	roots, workspaces, waits     []string
	launch, lineage              string
	silenced                     bool
}

func newExec(s *shared) *cobra.Command {
	e := &execCommand{shared: s}
	c := &cobra.Command{
		Use:   "exec [--phases | --idempotent] [flags] -- CMD [ARG...]",
		Short: "Run a program as a managed run",
		Long: "Run a program as a managed run: it is registered under its name with what its code is now, and when it ends badly\n" +
			"the healer is told. Standard input and output are handed over as they are.\n\n" +
			"How far the run had come decides whether it may be started again:\n" +
			"  --phases      the program marks its phases: `" + name + " phase NAME`, or a line appended to the file that\n" +
			"                $" + managed.PhaseFileVar + " names. It starts at booting.\n" +
			"  --idempotent  the whole run may be repeated.\n" +
			"  neither       nobody knows, so a person is asked.\n\n" +
			"Exit code: that of CMD, 128+N when signal N ended it; 125 to 127 for exec's own errors.\n\n" +
			"--root is " + rootUsage + ".\n" +
			"P is an installed distribution, npm package or gem; of the kinds jar, image and binary it is a file in DIR.\n" +
			"What it leaves out is found: the kind (by P, or git in a work tree, npm in an installed project, else folder), the\n" +
			"modules (the Python packages in DIR) and the runtime (that of CMD). It may be repeated; without it the roots of the config count.",
		Args:        s.args(e.check),
		RunE:        s.run(e.run),
		Annotations: map[string]string{programAnnotation: ""},
	}
	f := c.Flags()
	// What follows CMD is CMD's, also when somebody leaves the "--" out.
	f.SetInterspersed(false)
	f.BoolVar(&e.phases, "phases", false, "the program marks its phases")
	f.BoolVar(&e.idempotent, "idempotent", false, "the whole run counts as before work")
	f.StringVar(&e.runName, "name", "", "the run's `NAME`, unique among living runs of the project (default: from CMD)")
	f.StringVar(&e.project, "project", "", "the run's `PROJECT` (default: from the config, else \""+config.DefaultProject+"\")")
	f.StringArrayVar(&e.roots, "root", nil, "a `ROOT` of managed code, see above; repeatable")
	f.StringArrayVar(&e.workspaces, "workspace", nil, "a `DIR` of user code; repeatable")
	f.StringArrayVar(&e.waits, "waits-for", nil, "the `NAME` of a run that this one waits for; repeatable")
	f.StringVar(&e.supervised, "supervised-by", "", "the `UNIT` that restarts this run by itself: then Mulligan never does (default: this one's, if systemd does)")
	f.BoolVar(&e.silenced, "silenced", false, "the caller holds back its own failure notice for the healer")
	f.StringVar(&e.launch, "launch", "", "run the replacement of launch `ID` (the healer's own use, with --lineage)")
	f.StringVar(&e.lineage, "lineage", "", "the `PROJECT/LINEAGE` that the launch belongs to")
	return c
}

// check finds arguments that contradict one another.
func (e *execCommand) check(c *cobra.Command, args []string) error {
	if c.Flags().Changed("launch") || c.Flags().Changed("lineage") {
		switch {
		case e.launch == "" || e.lineage == "":
			return errors.New("--launch ID and --lineage PROJECT/LINEAGE belong together")
		case len(args) > 0:
			return errors.New("--launch takes the command from the run that is replaced: leave CMD out")
		}
		return nil
	}
	switch {
	case len(args) == 0:
		return fmt.Errorf("CMD is missing: %s", c.UseLine())
	case e.phases && e.idempotent:
		return errors.New("--phases and --idempotent exclude one another: a program that marks its phases says more")
	case c.Flags().Changed("name") && strings.TrimSpace(e.runName) == "":
		return errors.New("--name is empty")
	case c.Flags().Changed("project") && strings.TrimSpace(e.project) == "":
		return errors.New("--project is empty")
	}
	return nil
}

func (e *execCommand) run(c *cobra.Command, args []string) error {
	if e.launch != "" {
		return e.replace(c.Context())
	}
	cfg, err := e.loadConfig()
	if err != nil {
		return ownFailure(err)
	}
	h, err := e.open(cfg, slog.LevelWarn)
	if err != nil {
		return ownFailure(err)
	}
	defer h.close()
	spec, err := e.spec(cfg, h.cfg.Runtimes, args)
	if err != nil {
		return ownFailure(err)
	}
	m, err := h.managed()
	if err != nil {
		return ownFailure(err)
	}
	if spec.Supervised == "" {
		spec.Supervised = e.supervisor(c.Context())
	}
	res, err := m.Exec(c.Context(), spec, managed.IO{Stdin: e.env.Stdin, Stdout: e.env.Stdout, Stderr: e.env.Stderr})
	return e.ended(res, err)
}

// spec is the run that the flags, the config and the command describe.
func (e *execCommand) spec(cfg config.Config, runtimes map[string]restart.Runtime, args []string) (managed.Spec, error) {
	dir, err := e.env.dir()
	if err != nil {
		return managed.Spec{}, err
	}
	roots, err := e.declaredRoots(e.roots, cfg)
	if err != nil {
		return managed.Spec{}, err
	}
	if len(roots) == 0 {
		e.warn("no root is declared, so this run can never be put back: declare the managed code with --root or in the config")
	}
	workspaces, err := e.shared.workspaces(e.workspaces, cfg)
	if err != nil {
		return managed.Spec{}, err
	}
	recipe := run.Recipe{Command: args, Dir: dir, Env: managed.CleanEnv(e.env.Environ)}
	switch {
	case e.phases:
		recipe.Marking = run.Phases
	case e.idempotent:
		recipe.Marking = run.Idempotent
	}
	// Now, not at the probe: an update may change what the name of the interpreter leads to.
	rt, err := process.Runtime(recipe)
	// A root of the config says what it means; one on the command line means the runtime of the program that stands beside it.
	if len(e.roots) > 0 && rt != nil {
		for i := range roots {
			if roots[i].Runtime == "" {
				roots[i].Runtime = rt.Name
			}
		}
	}
	spec := managed.Spec{Project: cfg.Project, Name: e.runName, Recipe: recipe, Runtime: rt, Roots: roots, Workspaces: workspaces,
		WaitsFor: e.waits, Supervised: e.supervised, Silenced: e.silenced}
	if err == nil {
		err = untried(runtimes, spec)
	}
	if err != nil {
		e.warn("the new code cannot be tried before a restart, so this run is never put back: %v", err)
	}
	if e.project != "" {
		spec.Project = e.project
	}
	if spec.Name == "" {
		spec.Name = nameOf(args)
	}
	return spec, nil
}

// untried says beforehand, when something can still be done about it, why none of a run's roots can ever be tried.
func untried(runtimes map[string]restart.Runtime, s managed.Spec) error {
	var why string
	for _, root := range s.Roots {
		rt := runtimes[root.Runtime]
		r, ok := rt.Planner.(restart.Refuser)
		switch {
		case rt.Planner == nil:
			continue
		case ok:
			why = r.Refuses(run.Run{Recipe: s.Recipe, Runtime: s.Runtime, Roots: s.Roots, Workspaces: s.Workspaces})
		}
		if !ok || why == "" {
			return nil
		}
	}
	if why == "" {
		return nil
	}
	return errors.New(why)
}

// nameOf is the name of a run that nobody named: the program's, or, behind an interpreter, the script's or module's, so
// that two scripts do not fight for the name "python3". A wrapper gives no name either.
func nameOf(command []string) string {
	if _, inner, ok := freshimport.Unwrap(command); ok {
		command = inner
	}
	base := filepath.Base(command[0])
	if !interpreter(base) {
		return base
	}
	for i := 1; i < len(command); i++ {
		switch a := command[i]; {
		case a == "-m" && i+1 < len(command):
			return command[i+1]
		case strings.HasPrefix(a, "-"):
			// A program in an argument has no name.
			if a == "-c" || a == "-e" {
				return base
			}
		default:
			script := filepath.Base(a)
			return strings.TrimSuffix(script, filepath.Ext(script))
		}
	}
	return base
}

// interpreter tells programs that run other programs by their names, versions left out ("python3.12").
func interpreter(base string) bool {
	plain := strings.TrimRight(base, "0123456789.")
	for _, name := range []string{"python", "pypy", "node", "ruby", "perl", "php", "bash", "sh", "dash", "zsh"} {
		if plain == name {
			return true
		}
	}
	return false
}

// replace is the runner: what the healer starts for a replacement. It reads no config: everything about the run is in the
// run that it replaces, and a config that broke meanwhile must not cost the replacement.
func (e *execCommand) replace(ctx context.Context) error {
	// A project may have a slash in its name; a lineage is an id and has none.
	i := strings.LastIndexByte(e.lineage, '/')
	if i <= 0 || i == len(e.lineage)-1 {
		return ownFailure(fmt.Errorf("--lineage is %q, want PROJECT/LINEAGE", e.lineage))
	}
	h, err := e.open(config.Default(), slog.LevelInfo)
	if err != nil {
		return ownFailure(err)
	}
	defer h.close()
	m, err := h.managed()
	if err != nil {
		return ownFailure(err)
	}
	// Whoever stops the unit of a replacement tells the runner alone.
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
	defer stop()
	res, err := m.Replace(ctx, ledger.Key{Project: e.lineage[:i], Lineage: e.lineage[i+1:]}, e.launch)
	e.sweep(context.WithoutCancel(ctx))
	return e.ended(res, err)
}

// What a run left behind gets sweepGrace to end by itself, and all of it may take sweepWithin.
const (
	sweepGrace  = 5 * time.Second
	sweepWithin = 20 * time.Second
)

// sweep ends what the run has left in a scope that was made for it: a scope lasts as long as anything is in it, and nobody
// else looks after it. In a service the manager does.
func (e *execCommand) sweep(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	if _, err := systemd.Sweep(ctx, sweepGrace); err != nil {
		e.warn("what the run has left behind could not be ended: %v", err)
	}
}

// ended gives on the program's exit code, and says what the program itself could not.
func (e *execCommand) ended(res managed.Result, err error) error {
	if res.End.NotStarted && res.Run.Log == "" {
		e.warn("%s", strings.TrimSpace(string(res.End.Tail)))
	}
	if n := len(res.End.Survivors); n > 0 {
		e.warn("the program has ended, %d of its processes live on: %s", n, strings.Trim(fmt.Sprint(res.End.Survivors), "[]"))
	}
	if err == nil {
		return silent(process.ExitCode(res.End.Exit))
	}
	if res.End.Exit == (classify.Exit{}) {
		// The program did not run, or nobody saw how it ended.
		return ownFailure(err)
	}
	// It ran, and its end could not be kept: its own exit code is still the truth.
	return &ExitError{Code: process.ExitCode(res.End.Exit), Err: err}
}

// warn says something that does not change the exit code.
func (e *execCommand) warn(format string, args ...any) {
	fmt.Fprintf(e.env.Stderr, "%s: %s\n", e.program(), notify.Redact(fmt.Sprintf(format, args...)))
}
