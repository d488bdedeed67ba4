package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// newShow answers the question that a notice leaves: what is known, and what was it decided on.
func newShow(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "show TARGET [-j]",
		Short: "Say all that is known of one run, lineage or episode",
		Long: "Say all that is known of one target: a run's name (\"name\" or \"project/name\"; the newest run that has it), a\n" +
			"run's id, a lineage, a launch id, or an episode.",
		Args: s.args(exactly("TARGET")),
	}
	c.RunE = s.run(func(c *cobra.Command, args []string) error {
		return s.ask(c.Context(), slog.LevelError, func(ctx context.Context, h *host, cfg config.Config, healer *restart.Healer) error {
			view, err := s.find(ctx, h, cfg, healer, args[0])
			if err != nil {
				return err
			}
			if json {
				return printJSON(s.env.Stdout, view)
			}
			return printText(s.env.Stdout, view.text(s.env.style()))
		})
	})
	jsonFlag(c, &json)
	return c
}

// showView is one target. Kind says which of the others is set; a record and an answer are both shown as a card.
type showView struct {
	Kind        string         `json:"kind"` // record, answer, run or episode
	Card        *report.Card   `json:"card,omitempty"`
	Report      *report.Report `json:"report,omitempty"`
	Run         *runView       `json:"run,omitempty"`
	Replacement *runView       `json:"replacement,omitempty"`
}

// find looks for a run or lineage first, then for an episode.
func (s *shared) find(ctx context.Context, h *host, cfg config.Config, healer *restart.Healer, target string) (showView, error) {
	o := s.view(ctx, h, cfg)
	x, err := healer.Explain(ctx, target)
	if errors.Is(err, restart.ErrNoTarget) {
		if v, ok, err := s.findEpisode(ctx, h, healer, target, o); ok || err != nil {
			return v, err
		}
		return showView{}, fmt.Errorf("nothing goes by %q: give a run's name, its id, its lineage or an episode; `%s list -a` shows them", target, s.called())
	}
	if err != nil {
		return showView{}, fmt.Errorf("%w: `%s doctor` lists every damaged record", err, s.called())
	}
	in := h.cfg.Stores.Instances
	v := showView{Kind: "run", Run: viewRun(in, x.Run), Replacement: viewRun(in, x.Replacement)}
	switch {
	case x.Record != nil:
		for _, e := range x.Record.History {
			if e.Cause != "" && v.Replacement != nil {
				v.Replacement.Cause = e.Cause // it left no word itself
			}
		}
		card := report.BuildCard(*x.Record, o)
		v.Kind, v.Card = "record", &card
	case x.Answer != nil:
		card := report.BuildAnswerCard(*x.Answer, o)
		v.Kind, v.Card = "answer", &card
	}
	return v, nil
}

// findEpisode finds the episode of an id, and the row of the update journal that it names.
func (s *shared) findEpisode(ctx context.Context, h *host, healer *restart.Healer, id string, o report.Options) (showView, bool, error) {
	records, _, err := healer.Records(ctx)
	if err != nil {
		return showView{}, false, err
	}
	records = slices.DeleteFunc(records, func(r ledger.Record) bool { return r.Episode != id })
	if len(records) == 0 {
		return showView{}, false, nil
	}
	ep := episode.Group(records)[0]
	var row *journal.Row
	for r, err := range h.cfg.Stores.Journal.Rows(ctx) {
		if err == nil && r.ID == ep.Update {
			row = &r
		}
	}
	rep := report.Build(ep, row, o)
	return showView{Kind: "episode", Report: &rep}, true, nil
}

func (v showView) text(style report.Style) string {
	switch {
	case v.Card != nil:
		return v.Card.Text(style)
	case v.Report != nil:
		return v.Report.Text(style)
	}
	return v.Run.text()
}

// runView is what is shown of a run. The environment of its recipe is not: it holds keys.
type runView struct {
	Run      string `json:"run"`
	Name     string `json:"name"`
	Project  string `json:"project"`
	Lineage  string `json:"lineage"`
	Replaces string `json:"replaces,omitempty"`
	State    string `json:"state"` // running, lost, ended, failed
	Phase    string `json:"phase"`
	Marking  string `json:"marking,omitempty"`
	PID      int    `json:"pid,omitempty"`
	Exit     *int   `json:"exit,omitempty"`
	Signal   string `json:"signal,omitempty"`
	Cause    string `json:"cause,omitempty"` // known for certain: a reason code
	Started  string `json:"started"`         // RFC 3339
	Ended    string `json:"ended,omitempty"`
	Command  string `json:"command"`
	Dir      string `json:"dir"`
	// Supervised is what restarts the run by itself, so that Mulligan does not.
	Supervised string `json:"supervised,omitempty"`
	Workspace  string `json:"workspace,omitempty"`
	Log        string `json:"log,omitempty"`
	Intent     string `json:"intent,omitempty"`
	// IntentBy is who did it, IntentNote why, and Next the run that was started by hand in its place.
	IntentBy   string `json:"intent_by,omitempty"`
	IntentNote string `json:"intent_note,omitempty"`
	Next       string `json:"next,omitempty"`
	// Probe says whether the new code can be tried before a restart: the interpreter, or why not.
	Interpreter string   `json:"interpreter,omitempty"`
	Roots       []string `json:"roots,omitempty"`
}

func viewRuns(in ledger.Instances, all []run.Run) []runView {
	slices.SortFunc(all, func(a, b run.Run) int { return b.Started.Wall.Compare(a.Started.Wall) })
	out := make([]runView, len(all))
	for i := range all {
		out[i] = *viewRun(in, &all[i])
	}
	return out
}

func viewRun(in ledger.Instances, r *run.Run) *runView {
	if r == nil {
		return nil
	}
	words := make([]string, len(r.Recipe.Command))
	for i, w := range r.Recipe.Command {
		words[i] = notify.Shell(w)
	}
	v := &runView{
		Run: r.ID, Name: notify.Line(r.Name, 0), Project: notify.Line(r.Project, 0), Lineage: r.Lineage, Replaces: r.Replaces,
		Phase: string(r.Phase), Marking: string(r.Recipe.Marking), PID: r.PID, Started: r.Started.String(),
		Command: notify.Line(strings.Join(words, " "), 0), Dir: notify.Line(r.Recipe.Dir, 0), Log: notify.Line(r.Log, 0),
		Next: r.Next, Supervised: notify.Line(r.Supervised, 0),
	}
	switch {
	case r.Ended != nil:
		v.State, v.Ended = "failed", r.Ended.At.String()
		if r.Ended.OK {
			v.State = "ended"
		}
		v.Signal, v.Cause = r.Ended.Exit.Signal, string(r.Ended.Cause)
		if r.Ended.OK || r.Ended.Exit.Code != 0 { // a run inside its host breaks without an exit code
			v.Exit = &r.Ended.Exit.Code
		}
	case restart.MayLive(in, *r):
		v.State = "running"
	default:
		v.State = "lost" // nobody is left who could say how it ended
	}
	if len(r.Workspaces) > 0 {
		v.Workspace = notify.Line(r.Workspaces[0], 0)
	}
	if r.Intent != nil {
		v.Intent, v.IntentBy, v.IntentNote = string(r.Intent.Kind), notify.Line(r.Intent.By, 0), notify.Line(r.Intent.Note, 0)
	}
	if r.Runtime != nil {
		v.Interpreter = r.Runtime.Interpreter
	}
	for _, root := range r.Roots {
		v.Roots = append(v.Roots, root.Name)
	}
	return v
}

// intent is what a person did, in words.
func (v *runView) intent() string {
	text := v.Intent
	if v.IntentBy != "" {
		text += " by " + v.IntentBy
	}
	if v.IntentNote != "" {
		text += ": " + v.IntentNote
	}
	return text
}

func (v *runView) text() string {
	rows := [][]string{
		{"name", v.Name}, {"project", v.Project}, {"run", v.Run}, {"lineage", v.Lineage}, {"state", v.State}, {"phase", v.Phase},
		{"started", v.Started}, {"ended", v.Ended}, {"command", v.Command}, {"folder", v.Dir}, {"workspace", v.Workspace},
		{"roots", strings.Join(v.Roots, ", ")}, {"log", v.Log}, {"intent", v.intent()}, {"followed by", v.Next},
		{"restarted by", v.Supervised},
	}
	if v.Exit != nil {
		end := fmt.Sprintf("exit code %d", *v.Exit)
		if v.Signal != "" {
			end = v.Signal
		}
		rows = slices.Insert(rows, 8, []string{"end", end})
	}
	rows = slices.DeleteFunc(rows, func(r []string) bool { return r[1] == "" })
	switch v.State {
	case "running":
		return table(rows) + "Nothing was decided about this run: it runs.\n"
	case "ended":
		return table(rows) + "Nothing was decided about this run: it ended well.\n"
	}
	// A pass of a healer that is paused or switched off may have seen it.
	return table(rows) + "Nothing was decided about this run yet.\n"
}
