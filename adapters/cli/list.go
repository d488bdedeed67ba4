package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
)

// newestCount bounds a list without -a, in records: a ledger keeps every lineage for good, so a list has to end.
const newestCount = 50

type listCommand struct {
	*shared
	all, json bool
}

func newList(s *shared) *cobra.Command {
	l := &listCommand{shared: s}
	c := &cobra.Command{
		Use:   "list [-a] [-j]",
		Short: "Show the ledger by episode, newest first",
		Long: "Show what was decided, by episode: all that one update broke stands together, newest first. Without -a these\n" +
			"are the 50 records that changed last, and the answers that were shown to somebody. With -a it is everything,\n" +
			"the answers that needed nobody and the runs themselves included.",
		Args: s.args(noneOr("argument")),
		RunE: s.run(l.run),
	}
	l.flags(c)
	return c
}

func (l *listCommand) flags(c *cobra.Command) {
	c.Flags().BoolVarP(&l.all, "all", "a", false, "everything: older records, quiet answers, runs")
	jsonFlag(c, &l.json)
}

// listView is the list as JSON: the ledger, and with -a the runs beside it.
type listView struct {
	report.List
	// More is set when older records were left out.
	More bool      `json:"more,omitempty"`
	Runs []runView `json:"runs,omitempty"`
}

func (l *listCommand) run(c *cobra.Command, _ []string) error {
	return l.ask(c.Context(), slog.LevelError, func(ctx context.Context, h *host, cfg config.Config, healer *restart.Healer) error {
		records, damaged, more, err := l.records(ctx, h, healer)
		if err != nil {
			return err
		}
		answers, torn, err := readAnswers(ctx, h)
		if err != nil {
			return err
		}
		damaged = append(damaged, torn...)
		view := listView{List: report.BuildList(records, l.shown(answers), damaged, l.view(ctx, h, cfg)), More: more}
		if l.all {
			if view.Runs, err = runViews(ctx, h); err != nil {
				return err
			}
		}
		if l.json {
			return printJSON(l.env.Stdout, view)
		}
		return printText(l.env.Stdout, l.text(view))
	})
}

// records reads the whole ledger with -a, else its newest end where the store can give that without reading the rest.
func (l *listCommand) records(ctx context.Context, h *host, healer *restart.Healer) (recs []ledger.Record, damaged []*ledger.DamageError, more bool, err error) {
	newest, ok := h.cfg.Stores.Ledger.(ledger.Newest)
	if l.all || !ok {
		recs, damaged, err = healer.Records(ctx)
		return recs, damaged, false, err
	}
	// One more than is shown tells whether there are more.
	if recs, err = newest.Newest(ctx, newestCount+1); err != nil {
		return nil, nil, false, err
	}
	if len(recs) > newestCount {
		return recs[:newestCount], nil, true, nil
	}
	// All of them fit: a full read costs little then, and also finds what is damaged.
	recs, damaged, err = healer.Records(ctx)
	return recs, damaged, false, err
}

// readAnswers are the answers, and apart from them those that cannot be read: these hide none of the others.
func readAnswers(ctx context.Context, h *host) (all []ledger.Answer, damaged []*ledger.DamageError, err error) {
	for a, err := range h.cfg.Stores.Answers.Answers(ctx) {
		var d *ledger.DamageError
		switch {
		case errors.As(err, &d):
			damaged = append(damaged, d)
		case err != nil:
			return nil, nil, fmt.Errorf("read the answers: %w", err)
		default:
			all = append(all, a)
		}
	}
	return all, damaged, nil
}

// shown leaves out the answers that nobody had to be told of.
func (l *listCommand) shown(answers []ledger.Answer) []ledger.Answer {
	if l.all {
		return answers
	}
	var out []ledger.Answer
	for _, a := range answers {
		if a.Loud {
			out = append(out, a)
		}
	}
	return out
}

func (l *listCommand) text(v listView) string {
	text := v.Text(l.env.style())
	if v.More {
		text += "\nOlder ones: " + l.called() + " list -a\n"
	}
	if len(v.Runs) > 0 {
		rows := [][]string{}
		for _, r := range v.Runs {
			rows = append(rows, []string{"  " + notify.Line(r.Name, 40), r.Project, r.State, r.Run})
		}
		text += "\nRuns\n" + table(rows)
	}
	return text
}

// runViews are all runs that can be read, the latest start first.
func runViews(ctx context.Context, h *host) ([]runView, error) {
	var all []run.Run
	for r, err := range h.cfg.Stores.Runs.List(ctx) {
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			h.log.Error("a run cannot be read", "error", err)
		default:
			all = append(all, r)
		}
	}
	return viewRuns(h.cfg.Stores.Instances, all), nil
}
