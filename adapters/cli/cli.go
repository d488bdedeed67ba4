package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
)

// name is the tree's own name where it is not mounted.
const name = "mulligan"

// New is the command tree. Its own RunE lists the ledger; every other command is below it. A host may set Use to another
// name before it mounts the tree. The tree's persistent flags are --home, --config and --verbose with the short form -v;
// a host's own persistent flags must not use that letter for another name.
func New(env Env) *cobra.Command {
	s := &shared{env: env.withDefaults()}
	list := &listCommand{shared: s}
	root := &cobra.Command{
		Use:   name + " [-a] [-j]",
		Short: "One free do-over for a run that a code update broke, with evidence",
		Long: "Mulligan puts a run back once when a code update broke it before it did any work, and shows every other\n" +
			"failure with its reason. Without a command it lists what was decided, newest first.",
		Args: s.args(noneOr("command")),
		RunE: s.run(list.run),
	}
	list.flags(root)
	root.SuggestionsMinimumDistance = 2
	root.PersistentFlags().StringVar(&s.home, "home", "", "state folder `DIR` (default $MULLIGAN_HOME, else the XDG state folder)")
	root.PersistentFlags().StringVar(&s.config, "config", "", "config `FILE` (default $MULLIGAN_CONFIG, else ./mulligan.yaml, else the defaults)")
	root.PersistentFlags().BoolVarP(&s.verbose, "verbose", "v", false, "log what goes on to standard error")
	for _, c := range []*cobra.Command{
		newList(s), newShow(s), newScan(s), newRun(s), newResume(s), newRetry(s), newDismiss(s), newStop(s), newExec(s), newPhase(s), newSwap(s), newPrune(s), newClassify(s), newDoctor(s), newSessions(s), newNotices(s), newSelfRestart(s), newService(s),
	} {
		root.AddCommand(c)
	}
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return tell(c, s.env, &ExitError{Code: usageCode(c), Err: fmt.Errorf("%w: `%s --help` shows the flags", err, c.CommandPath())})
	})
	s.root = root
	silence(root)
	root.SetIn(s.env.Stdin)
	root.SetOut(s.env.Stdout)
	root.SetErr(s.env.Stderr)
	return root
}

// silence keeps the command library from printing what tell prints.
func silence(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.DisableFlagsInUseLine = true
	for _, sub := range c.Commands() {
		silence(sub)
	}
}

// run makes a command's function: its error is printed, once, and becomes an [*ExitError].
func (s *shared) run(f func(c *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error { return tell(c, s.env, f(c, args)) }
}

// tell prints an error and gives it its exit code. With -j it is also the JSON that a reader of standard output gets.
func tell(c *cobra.Command, env Env, err error) error {
	if err == nil {
		return nil
	}
	var exit *ExitError
	if !errors.As(err, &exit) {
		exit = &ExitError{Code: CodeFailed, Err: err}
	}
	if exit.Err == nil {
		return exit
	}
	// It may quote a command of somebody else: who holds the lock, what could not be started.
	text := notify.Redact(exit.Err.Error())
	fmt.Fprintf(env.Stderr, "%s: %s\n", c.CommandPath(), text)
	if asJSON(c) {
		// That standard output is closed is not worth a second error.
		out := map[string]any{"error": text, "code": exit.Code}
		if reason := session.CodeOf(exit.Err); reason != "" {
			out["reason"] = reason
		}
		_ = printJSON(env.Stdout, out)
	}
	return exit
}

// asJSON reports that the command was asked for JSON. A command line that could not be read to its end counts too.
func asJSON(c *cobra.Command) bool {
	f := c.Flags().Lookup("json")
	return f != nil && f.Changed && f.Value.String() == "true"
}

// programAnnotation marks the commands whose exit codes belong to the program that they run.
const programAnnotation = "runs-a-program"

// usageCode is the exit code for wrong arguments.
func usageCode(c *cobra.Command) int {
	if _, ok := c.Annotations[programAnnotation]; ok {
		return 125
	}
	return CodeUsage
}

// args makes an argument check whose error is printed like any other.
func (s *shared) args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		err := valued(c)
		if err == nil {
			err = check(c, args)
		}
		if err != nil {
			return tell(c, s.env, &ExitError{Code: usageCode(c), Err: err})
		}
		return nil
	}
}

// valued refuses flags that were given and are empty, as "$DIR" is where nobody set DIR: the default, or the working
// folder, is not what was meant. Only free text may be empty.
func valued(c *cobra.Command) error {
	var errs []error
	c.Flags().Visit(func(f *pflag.Flag) {
		what, _ := pflag.UnquoteUsage(f)
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if what != "TEXT" && slices.Contains(values, "") {
			errs = append(errs, fmt.Errorf("--%s is empty: give a %s, or leave it out", f.Name, what))
		}
	})
	return errors.Join(errs...)
}

// noneOr refuses arguments, and where a name was meant for a command says which there are.
func noneOr(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		err := fmt.Errorf("there is no %s %q: `%s --help` shows what there is", what, args[0], c.CommandPath())
		if near := c.SuggestionsFor(args[0]); len(near) > 0 {
			err = fmt.Errorf("there is no %s %q: did you mean %s?", what, args[0], strings.Join(near, " or "))
		}
		return err
	}
}

// exactly wants one argument.
func exactly(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("%s is missing: %s", what, c.UseLine())
		case args[0] == "":
			return fmt.Errorf("%s is empty: %s", what, c.UseLine())
		case len(args) > 1:
			return fmt.Errorf("%q is one argument too many: %s", args[1], c.UseLine())
		}
		return nil
	}
}

// program is how the tree is called here, for texts that say who speaks.
func (s *shared) program() string { return s.root.CommandPath() }

// called is how the tree is called for a person to paste: with the state folder and the config file of this call, without
// which the next command would look at another ledger, or at none.
func (s *shared) called() string { return s.program() + s.where() }

// where are the flags of this call that say what a command is about.
func (s *shared) where() string {
	out := ""
	if s.home != "" {
		out += " --home " + notify.Shell(s.home)
	}
	if s.config != "" {
		out += " --config " + notify.Shell(s.config)
	}
	return out
}

// jsonFlag gives a command its -j. Every command that has a result has it, under the same name.
func jsonFlag(c *cobra.Command, on *bool) {
	c.Flags().BoolVarP(on, "json", "j", false, "print JSON and nothing else")
}
