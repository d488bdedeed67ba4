package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/restart"
)

// newPrune is for those who let passes run one by one; the loop prunes by itself.
func newPrune(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "prune [-j]",
		Short: "Take away what is settled and older than the config keeps",
		Long: "Take away evidence, reports, answers and ended runs with their logs once they are older than retention_days. Records\n" +
			"shrink and stay, so that no lineage gets a second do-over. What is open, untold, alive or rung is left alone, and\n" +
			"nothing is pruned while the healer is paused or disabled. `run --follow` does this once a day.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error {
		return s.ask(c.Context(), slog.LevelWarn, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
			n, err := healer.Prune(ctx)
			if err != nil {
				return err
			}
			if json {
				return printJSON(s.env.Stdout, n)
			}
			text := fmt.Sprintf("Shrank %d records; took away %d sets of evidence, %d reports, %d answers and %d runs.\n",
				n.Records, n.Evidence, n.Reports, n.Answers, n.Runs)
			if n.More {
				text += fmt.Sprintf("There is more: call `%s prune` again.\n", s.called())
			}
			return printText(s.env.Stdout, text)
		})
	})
	jsonFlag(c, &json)
	return c
}
