package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// swapCommand is an update. Its exit code is the command's, because it stands where the command stood before: in scripts
// and in schedules that look at it.
type swapCommand struct {
	*shared
	wait  string
	roots []string
}

func newSwap(s *shared) *cobra.Command {
	w := &swapCommand{shared: s}
	c := &cobra.Command{
		Use:   "swap [--wait DUR] [--root ROOT] -- CMD [ARG...]",
		Short: "Run an update so that it is quiet and witnessed",
		Long: "Run a command that changes managed code. While it runs nothing is put back from the half-new tree, and\n" +
			"afterwards the journal proves what it changed.\n\n" +
			"Exit code: that of CMD, 128+N when signal N ended it; 125 to 127 for swap's own errors, and then nothing was changed.\n\n" +
			"--root is " + rootUsage + ".\n" +
			"It may be repeated; without it the roots of the config count.",
		Args:        s.args(w.check),
		RunE:        s.run(w.run),
		Annotations: map[string]string{programAnnotation: ""},
	}
	c.Flags().SetInterspersed(false)
	c.Flags().StringVar(&w.wait, "wait", update.DefaultWait.String(), "how long to wait for another update to end, a `DUR`")
	c.Flags().StringArrayVar(&w.roots, "root", nil, "a `ROOT` that the command may change, see above; repeatable")
	return c
}

func (w *swapCommand) check(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("CMD is missing: %s", c.UseLine())
	}
	return nil
}

func (w *swapCommand) run(c *cobra.Command, args []string) error {
	wait, err := parseAge(w.wait)
	if err != nil {
		return ownFailure(err)
	}
	if wait == 0 {
		wait = 1 // not at all; to the updater zero is its default
	}
	cfg, err := w.loadConfig()
	if err != nil {
		return ownFailure(err)
	}
	roots, err := w.declaredRoots(w.roots, cfg)
	if err != nil {
		return ownFailure(err)
	}
	// An update that names no code would be quiet and prove nothing; that is not what somebody who calls swap wants.
	if len(roots) == 0 {
		return ownFailure(errors.New("no root is declared, so nothing could be witnessed: say with --root or in the config which code CMD changes"))
	}
	dir, err := w.env.dir()
	if err != nil {
		return ownFailure(err)
	}
	h, err := w.open(cfg, slog.LevelWarn)
	if err != nil {
		return ownFailure(err)
	}
	defer h.close()
	cmds := &exitKeeper{Commands: process.Commands{}}
	u, err := h.updater(cmds)
	if err != nil {
		return ownFailure(err)
	}
	row, err := u.Run(c.Context(), roots, update.Command{Args: args, Dir: dir, Env: w.env.Environ,
		Stdin: w.env.Stdin, Stdout: w.env.Stdout, Stderr: w.env.Stderr}, wait)
	return w.ended(row, cmds, err)
}

// ended gives on the command's exit code. Without an end the command did not run: then nothing was changed.
func (w *swapCommand) ended(row journal.Row, cmds *exitKeeper, err error) error {
	var held *journal.HeldError
	switch {
	case err == nil:
		return silent(process.ExitCode(cmds.exit))
	case errors.As(err, &held):
		return ownFailure(fmt.Errorf("%w: nothing was changed; wait longer with --wait, or end the holder", err))
	case cmds.ended:
		return &ExitError{Code: process.ExitCode(cmds.exit), Err: fmt.Errorf("%w (update %s)", err, row.ID)}
	}
	return ownFailure(err)
}

// exitKeeper remembers how the command ended: the journal keeps no signal, and a caller has to tell one from a code.
type exitKeeper struct {
	update.Commands
	exit  classify.Exit
	ended bool
}

// Hold implements update.Commands.
func (k *exitKeeper) Hold(c update.Command) (update.Process, error) {
	p, err := k.Commands.Hold(c)
	if err != nil {
		return nil, err
	}
	return &keptProcess{Process: p, keeper: k}, nil
}

type keptProcess struct {
	update.Process
	keeper *exitKeeper
}

// Wait implements update.Process.
func (p *keptProcess) Wait(ctx context.Context) (classify.Exit, []byte, []byte) {
	exit, out, errs := p.Process.Wait(ctx)
	p.keeper.exit, p.keeper.ended = exit, true
	return exit, out, errs
}
