package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// newPrune is for those who let passes run one by one; the loop prunes by itself.
func newPrune(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "prune [-j]",
		Short: "Take away what is settled and older than the config keeps",
		Long: "Take away evidence, reports, answers and ended runs with their logs once they are older than retention_days. Records\n" +
			"shrink and stay, so that no lineage gets a second do-over. What is open, untold, alive or rung is left alone, and\n" +
			"nothing is pruned while the healer is paused or disabled: exit code 3. `run --follow` does this once a day.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error {
		return s.ask(c.Context(), slog.LevelWarn, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
			n, err := healer.Prune(ctx)
			if err != nil {
				return err
			}
			if json {
				err = printJSON(s.env.Stdout, n)
			} else {
				err = printText(s.env.Stdout, s.pruned(n))
			}
			if err == nil && n.Held != "" {
				err = silent(CodeDisabled)
			}
			return err
		})
	})
	jsonFlag(c, &json)
	return c
}

// pruned says what was taken away, or why nothing was.
func (s *shared) pruned(n restart.Pruned) string {
	switch n.Held {
	case "":
	case policy.Disabled:
		return "The healer is switched off, or was at its last pass: nothing was pruned.\n"
	case policy.Paused:
		return "The healer is paused: nothing was pruned. To go on: " + s.called() + " resume\n"
	default:
		return "This is a canary: nothing was pruned.\n"
	}
	text := fmt.Sprintf("Shrank %s; took away the evidence of %s, %s, %s and %s.\n", amount(n.Records, "record"),
		amount(n.Evidence, "lineage"), amount(n.Reports, "report"), amount(n.Answers, "answer"), amount(n.Runs, "run"))
	if n.More {
		text += fmt.Sprintf("There is more: call `%s prune` again.\n", s.called())
	}
	return text
}
