package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
)

// unreadable is the state that a session is shown in which cannot be read: nobody knows another.
const unreadable session.Headline = "unreadable"

var headlines = []session.Headline{session.Running, session.Paused, session.Interrupted, session.Idle, session.Aborted, unreadable}

// sessionRow is one session in a list, as JSON.
type sessionRow struct {
	Session  string           `json:"session"`
	State    session.Headline `json:"state"`
	Unproven bool             `json:"unproven,omitempty"`
	// Needs says what waits for a person.
	Needs []session.Need `json:"needs,omitempty"`
	Last  uint64         `json:"last"`
	At    stamp.Time     `json:"at"`
	// Error says of a session that cannot be read where it lies and what to do.
	Error string `json:"error,omitempty"`
}

func (g *sessionsCommand) newList() *cobra.Command {
	var json bool
	var state string
	c := &cobra.Command{
		Use:   "list [--state STATE] [-j]",
		Short: "List sessions with their state and what they need from a person",
		Long: "List all sessions by name: the state, when something last happened, and what waits for a person (answer: a\n" +
			"question is open; resolve: nobody knows whether a call happened; release: auto-resume has given up; repair: it\n" +
			"cannot be read). A running session is \"unproven\" when nothing proves its host alive or dead.",
		Args: g.args(noneOr("argument")),
	}
	c.RunE = g.run(func(c *cobra.Command, _ []string) error {
		if state != "" && !slices.Contains(headlines, session.Headline(state)) {
			return usage("--state %q, want one of %s", state, words(headlines))
		}
		return g.use(c.Context(), reading, func(ctx context.Context, u *sessionsUse) error {
			rows := []sessionRow{}
			err := u.each(ctx, func(s session.Status, bad *session.UnreadableError) {
				switch {
				case bad != nil && (state == "" || unreadable == session.Headline(state)):
					rows = append(rows, sessionRow{Session: bad.Session, State: unreadable, Needs: []session.Need{session.NeedRepair}, Error: bad.Error()})
				case bad == nil && (state == "" || s.Headline == session.Headline(state)):
					rows = append(rows, sessionRow{Session: s.Head.Session, State: s.Headline, Unproven: s.Unproven && s.Headline == session.Running,
						Needs: s.Needs(), Last: s.Head.Last, At: s.Head.At})
				}
			})
			if err != nil {
				return err
			}
			if json {
				return printJSON(g.env.Stdout, map[string]any{"sessions": rows})
			}
			return printText(g.env.Stdout, listText(rows))
		})
	})
	c.Flags().StringVar(&state, "state", "", "only those in this `STATE`: "+words(headlines))
	jsonFlag(c, &json)
	return c
}

func listText(rows []sessionRow) string {
	if len(rows) == 0 {
		return "No sessions.\n"
	}
	cells := [][]string{{"SESSION", "STATE", "LAST EVENT", "NEEDS"}}
	for _, r := range rows {
		state := string(r.State)
		if r.Unproven {
			state += " (unproven)"
		}
		needs := "-"
		if len(r.Needs) > 0 {
			needs = words(r.Needs)
		}
		cells = append(cells, []string{notify.Line(r.Session, 60), state, moment(r.At), needs})
	}
	text := table(cells)
	for _, r := range rows {
		if r.Error != "" {
			text += "\n" + notify.Line(r.Error, 1000) + "\n"
		}
	}
	return text
}

// each yields every session, and what is known of one that cannot be read.
func (u *sessionsUse) each(ctx context.Context, f func(session.Status, *session.UnreadableError)) error {
	for s, err := range session.All(ctx, u.List) {
		var bad *session.UnreadableError
		if err != nil && !errors.As(err, &bad) {
			return err
		}
		f(s, bad)
	}
	return nil
}

// statsView counts sessions, as JSON.
type statsView struct {
	Sessions int                      `json:"sessions"`
	States   map[session.Headline]int `json:"states"`
	Unproven int                      `json:"unproven"`
	Needs    map[session.Need]int     `json:"needs"`
	// Operator is how many sessions need a person, for whatever reason.
	Operator int    `json:"operator"`
	Events   uint64 `json:"events"`
	Gates    int    `json:"gates"`
	Parks    int    `json:"parks"`
	Calls    int    `json:"unresolved_calls"`
}

func (g *sessionsCommand) newStats() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "stats [-j]",
		Short: "Count sessions by state and by what they need",
		Args:  g.args(noneOr("argument")),
	}
	c.RunE = g.run(func(c *cobra.Command, _ []string) error {
		return g.use(c.Context(), reading, func(ctx context.Context, u *sessionsUse) error {
			v := statsView{States: map[session.Headline]int{}, Needs: map[session.Need]int{}}
			for _, h := range headlines {
				v.States[h] = 0
			}
			for _, n := range session.Needs() {
				v.Needs[n] = 0
			}
			if err := u.each(ctx, v.add); err != nil {
				return err
			}
			if json {
				return printJSON(g.env.Stdout, v)
			}
			return printText(g.env.Stdout, v.text())
		})
	})
	jsonFlag(c, &json)
	return c
}

func (v *statsView) add(s session.Status, bad *session.UnreadableError) {
	v.Sessions++
	if bad != nil {
		v.States[unreadable]++
		v.Needs[session.NeedRepair]++
		v.Operator++
		return
	}
	v.States[s.Headline]++
	if s.Unproven && s.Headline == session.Running {
		v.Unproven++
	}
	needs := s.Needs()
	for _, n := range needs {
		v.Needs[n]++
	}
	if len(needs) > 0 {
		v.Operator++
	}
	v.Events += s.Head.Last
	v.Gates += len(s.Head.Gates)
	v.Parks += len(s.Head.Parks)
	v.Calls += len(s.Unresolved())
}

func (v statsView) text() string {
	rows := [][]string{{"sessions", fmt.Sprint(v.Sessions)}}
	for _, h := range headlines {
		n := fmt.Sprint(v.States[h])
		if h == session.Running && v.Unproven > 0 {
			n += fmt.Sprintf(" (%d unproven)", v.Unproven)
		}
		rows = append(rows, []string{"  " + string(h), n})
	}
	rows = append(rows, []string{"need a person", fmt.Sprint(v.Operator)})
	for _, n := range session.Needs() {
		rows = append(rows, []string{"  " + string(n), fmt.Sprint(v.Needs[n])})
	}
	rows = append(rows, []string{"gates open", fmt.Sprint(v.Gates)}, []string{"parks open", fmt.Sprint(v.Parks)},
		[]string{"unresolved calls", fmt.Sprint(v.Calls)}, []string{"events", fmt.Sprint(v.Events)})
	return table(rows)
}

// words lists a few names in a sentence.
func words[S ~string](list []S) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return strings.Join(out, ", ")
}

// moment is a time as the texts about sessions show it: in UTC, because their hosts may be elsewhere.
func moment(t stamp.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.Wall.UTC().Format("2006-01-02T15:04:05Z")
}
