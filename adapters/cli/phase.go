package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// newPhase is the one command that managed programs call themselves, so it opens no state folder and reads no config: a
// mark costs one append.
func newPhase(s *shared) *cobra.Command {
	names := make([]string, len(run.All))
	for i, p := range run.All {
		names[i] = string(p)
	}
	c := &cobra.Command{
		Use:   "phase NAME",
		Short: "Mark how far the run has come that this is called in",
		Long: "Mark how far a run has come. It is for programs that run under exec --phases, which tells them the file to mark\n" +
			"in $" + managed.PhaseFileVar + ". The mark can be seen when the command returns, also after a kill, so call it before\n" +
			"the work that it announces. The highest mark counts; in rising order:\n" +
			"  " + strings.Join(names, ", "),
		Args:      s.args(exactly("NAME")),
		ValidArgs: names,
	}
	c.RunE = s.run(func(_ *cobra.Command, args []string) error {
		p, err := run.ParsePhase(args[0])
		if err != nil {
			return &ExitError{Code: CodeUsage, Err: err}
		}
		file := s.env.get(managed.PhaseFileVar)
		if file == "" {
			return usage("$%s is not set: start the program with `%s exec --phases -- CMD`", managed.PhaseFileVar, s.program())
		}
		return managed.Mark(file, p)
	})
	return c
}
