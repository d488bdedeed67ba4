package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
)

// scanSince is how far back a scan looks when nobody says.
const scanSince = "7d"

// newScan is how a person finds out what the healer would have done, before it is allowed to do anything.
func newScan(s *shared) *cobra.Command {
	var since string
	var limit int
	var json bool
	c := &cobra.Command{
		Use:   "scan [-s DUR] [-l N] [-j]",
		Short: "Replay the decisions over past deaths, writing nothing",
		Long: "Replay the real decision path over the bad ends of the past, newest first, as it would decide today. Nothing is\n" +
			"written and no probe is run: a death that would need one says would_probe.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error {
		span, err := parseAge(since)
		if err != nil {
			return err
		}
		if limit < 0 {
			return usage("--limit is %d, want 0 for all, or more", limit)
		}
		return s.ask(c.Context(), slog.LevelError, func(ctx context.Context, h *host, _ config.Config, healer *restart.Healer) error {
			past, err := healer.Scan(ctx, span, limit)
			if err != nil {
				return err
			}
			failed := slices.ContainsFunc(past, func(p restart.Past) bool { return p.Error != "" })
			for i, p := range past {
				p.Name, p.Text, p.Error = notify.Redact(p.Name), notify.Redact(p.Text), notify.Redact(p.Error)
				past[i] = p
			}
			if json {
				err = printJSON(s.env.Stdout, map[string]any{"deaths": past})
			} else {
				err = printText(s.env.Stdout, scanText(past, since))
			}
			if err == nil && failed {
				err = silent(CodeFailed)
			}
			return err
		})
	})
	c.Flags().StringVarP(&since, "since", "s", scanSince, "how far back: a `DUR` such as 30m, 12h or 7d; 0s is without end")
	c.Flags().IntVarP(&limit, "limit", "l", 0, "at most `N` deaths; 0 is all")
	jsonFlag(c, &json)
	return c
}

func scanText(past []restart.Past, since string) string {
	if len(past) == 0 {
		return fmt.Sprintf("No run ended badly in the last %s.\n", since)
	}
	rows := [][]string{{"DIED", "NAME", "WOULD BE", "WHY", "WAS"}}
	for _, p := range past {
		why := cmp.Or(p.Error, p.Text)
		rows = append(rows, []string{p.Died.Local().Format("2006-01-02 15:04:05"), notify.Line(p.Name, 40),
			cmp.Or(p.Code, "error"), notify.Line(why, 100), cmp.Or(p.Was, "-")})
	}
	return table(rows) + "Nothing was written and no probe was run.\n"
}
