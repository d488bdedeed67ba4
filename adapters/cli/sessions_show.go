package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
)

// sessionView is all that a person needs of one session, as JSON.
type sessionView struct {
	session.Status
	Session string         `json:"session"`
	Needs   []session.Need `json:"needs,omitempty"`
	// Pauses are the open gates and parks, oldest first, with their questions.
	Pauses []pauseView `json:"pauses,omitempty"`
	// Calls are those of which nobody knows whether they happened; InFlight those of a turn that may still run.
	Calls    []callView `json:"calls,omitempty"`
	InFlight []callView `json:"in_flight,omitempty"`
	// Commands are what a person can do now; none where only the host can write, which ByHost says.
	Commands []string `json:"commands,omitempty"`
	ByHost   bool     `json:"by_host,omitempty"`
}

type pauseView struct {
	Kind      session.Kind    `json:"kind"`
	Interrupt string          `json:"interrupt"`
	Question  json.RawMessage `json:"question,omitempty"`
	At        stamp.Time      `json:"at"`
	Expires   stamp.Time      `json:"expires,omitzero"`
}

type callView struct {
	Seq   uint64          `json:"seq"`
	Tool  string          `json:"tool"`
	Class session.Class   `json:"class"`
	Args  json.RawMessage `json:"args,omitempty"`
	Turn  string          `json:"turn"`
	At    stamp.Time      `json:"at"`
}

func (g *sessionsCommand) newShow() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "show SESSION [-j]",
		Short: "Say what a session is doing, what it waits for, and the commands to go on",
		Args:  g.args(exactly("SESSION")),
	}
	c.RunE = g.run(func(c *cobra.Command, args []string) error {
		return g.use(c.Context(), reading, func(ctx context.Context, u *sessionsUse) error {
			status, err := u.existing(ctx, args[0])
			if err != nil {
				return err
			}
			v, err := u.view(ctx, status)
			if err != nil {
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

// view looks up what the head leaves to the log: questions and arguments.
func (u *sessionsUse) view(ctx context.Context, s session.Status) (sessionView, error) {
	h := s.Head
	v := sessionView{Session: h.Session, Needs: s.Needs()}
	for _, list := range []struct {
		kind session.Kind
		open []session.Open
	}{{session.KindGate, h.Gates}, {session.KindPark, h.Parks}} {
		for _, o := range list.open {
			p := pauseView{Kind: list.kind, Interrupt: o.Interrupt, At: o.At, Expires: o.Expires}
			e, ok, err := u.Store.Find(ctx, h.Session, session.PauseID(o.Interrupt))
			if err != nil {
				return v, err
			}
			var asked session.Pause
			if ok && e.Into(&asked) == nil { // a question in a form of a newer version is still a pause
				p.Question = asked.Question
			}
			v.Pauses = append(v.Pauses, p)
		}
	}
	slices.SortStableFunc(v.Pauses, func(a, b pauseView) int { return cmp.Compare(a.At.Sub(b.At), 0) })
	unresolved := s.Unresolved()
	for _, c := range h.Calls {
		view := callView{Seq: c.Seq, Tool: c.Tool, Class: c.Class, Turn: c.Turn, At: c.At}
		e, ok, err := u.Store.Find(ctx, h.Session, c.ID)
		if err != nil {
			return v, err
		}
		var call session.Call
		if ok && e.Into(&call) == nil {
			view.Args = call.Args
		}
		if slices.ContainsFunc(unresolved, func(d session.Dangling) bool { return d.Seq == c.Seq }) {
			v.Calls = append(v.Calls, view)
		} else {
			v.InFlight = append(v.InFlight, view)
		}
	}
	s.Head.Gates, s.Head.Parks = hushed(h.Gates), hushed(h.Parks)
	v.Status = s
	if v.Commands = u.command.ways(v); u.hosts && v.Commands != nil {
		v.Commands, v.ByHost = nil, true
	}
	return v, nil
}

// hushed leaves the hashes of tokens out: a reader would take them for the tokens.
func hushed(open []session.Open) []session.Open {
	open = slices.Clone(open)
	for i := range open {
		open[i].Token = ""
	}
	return open
}

// ways are the commands by which the session goes on, in the order in which they are to be used.
func (g *sessionsCommand) ways(v sessionView) (out []string) {
	h, name := v.Head, v.Session
	if h.Abort != nil {
		return nil
	}
	for _, c := range v.Calls {
		out = append(out, g.line("resolve", name, strconv.FormatUint(c.Seq, 10))+" happened|did-not-happen|compensated")
	}
	if len(v.Calls) > 0 {
		out = append(out, g.line("ack", name, "--through", strconv.FormatUint(h.Last, 10)))
	}
	if v.Quarantined {
		out = append(out, g.line("release", name))
	}
	for _, p := range v.Pauses {
		out = append(out, g.line("answer", name, p.Interrupt)+" --text TEXT | --value JSON")
	}
	// A turn that was parked is taken up again once its question is answered.
	if v.Headline == session.Interrupted || v.Headline == session.Idle && h.Ended == session.EndParked {
		out = append(out, g.line("resume", name))
	}
	if h.Turn != nil && v.Headline == session.Running {
		out = append(out, g.line("abort", name))
	}
	return out
}

func (v sessionView) text() string {
	h := v.Head
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", notify.Line(v.Session, 0), v.Status)
	rows := [][]string{}
	add := func(name, format string, args ...any) {
		rows = append(rows, []string{"  " + name, fmt.Sprintf(format, args...)})
	}
	if h.Abort != nil {
		add("aborted", "%s%s", moment(h.Abort.At), because(h.Abort.Why))
	}
	if h.Owner.ID == "" {
		add("owner", "nobody")
	} else {
		add("owner", "%s, %s, last wrote %s", owner(h.Owner.Instance), life(v.Liveness), moment(h.Proof))
	}
	if t := h.Turn; t != nil {
		add("turn", "%s, begun %s", notify.Line(t.ID, 60), moment(t.At))
	} else if h.Ended != "" {
		add("last turn", "%s", h.Ended)
	}
	if i := v.Interruption; i != nil {
		how := "its owner is dead"
		switch {
		case i.Marked:
			how = "a drain marked it" + because(i.Why)
		case h.Turn == nil || h.Turn.ID != i.Turn:
			how = "another turn took its place"
		}
		add("interrupted", "%s, since %s: %s", notify.Line(i.Turn, 60), moment(i.Since), how)
	}
	if len(v.Calls) > 0 && v.Ambiguous {
		add("ambiguous", "the next turn refuses calls that may change something")
	}
	if h.Attempts > 0 {
		quarantine := ""
		if v.Quarantined {
			quarantine = ", so auto-resume leaves it alone"
		}
		add("attempts", "%d without a completed turn%s", h.Attempts, quarantine)
	}
	if h.Newer > 0 {
		add("newer", "%s that this version does not understand", amount(h.Newer, "event"))
	}
	add("log", "%s, %s to %s", amount(int(h.Last), "event"), moment(h.Began), moment(h.At))
	b.WriteString(table(rows))
	if len(v.Pauses) > 0 {
		b.WriteString("Waits for an answer:\n")
		for _, p := range v.Pauses {
			fmt.Fprintf(&b, "  %s %s, since %s: %s\n", p.Kind, notify.Line(p.Interrupt, 60), moment(p.At), spoken(p.Question))
			if !p.Expires.IsZero() {
				fmt.Fprintf(&b, "    its token is good until %s\n", moment(p.Expires))
			}
		}
	}
	calls(&b, "Nobody knows whether these calls happened:", v.Calls)
	calls(&b, "In flight:", v.InFlight)
	if len(v.Commands) > 0 {
		b.WriteString("To go on:\n")
		for _, c := range v.Commands {
			b.WriteString("  " + c + "\n")
		}
	}
	if v.ByHost {
		b.WriteString("To go on: inside its host, which alone writes this log.\n")
	}
	return b.String()
}

func calls(b *strings.Builder, title string, list []callView) {
	if len(list) == 0 {
		return
	}
	b.WriteString(title + "\n")
	for _, c := range list {
		fmt.Fprintf(b, "  %d %s (%s) %s, %s\n", c.Seq, notify.Line(c.Tool, 60), c.Class, spoken(c.Args), moment(c.At))
	}
}

// spoken is a host's JSON as people read it: text as it is, everything else as JSON, on one line and without secrets.
func spoken(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 {
		return "-"
	}
	if json.Unmarshal(raw, &text) != nil {
		text = string(raw)
	}
	return notify.Line(text, 300)
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + notify.Line(why, 200)
}

func owner(i ledger.Instance) string {
	out := "pid " + strconv.Itoa(i.PID)
	if i.Host != "" {
		out += " on " + notify.Line(i.Host, 60)
	}
	return out
}

func life(l ledger.Liveness) string {
	switch l {
	case ledger.Alive:
		return "alive"
	case ledger.Dead:
		return "proven dead"
	}
	return "not proven alive or dead"
}
