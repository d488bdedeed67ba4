package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
)

// Card is one lineage in full: what happened, what was decided and why, and where the evidence lies.
type Card struct {
	Schema  int    `json:"schema"`
	Name    string `json:"name"`
	Project string `json:"project"`
	Lineage string `json:"lineage"`
	// Run is the one that broke, NewRun the one that replaced it.
	Run string `json:"run"`
	// State is the record's, empty for a death that has an answer and no record.
	State string `json:"state,omitempty"`
	// Now and Death are sentences: where it stands, and how it broke.
	Now   string `json:"now"`
	Death string `json:"death"`
	// Signature is what was read from the text, Message the line that it was read from.
	Signature string    `json:"signature,omitempty"`
	Message   string    `json:"message,omitempty"`
	Verdict   Verdict   `json:"verdict"`
	Witnesses []Witness `json:"witnesses,omitempty"`
	Culprit   *Culprit  `json:"culprit,omitempty"`
	// Probe is what the trial of the new code said, empty when none was run.
	Probe    string   `json:"probe,omitempty"`
	Timeline []Moment `json:"timeline"`
	Launch   string   `json:"launch,omitempty"`
	NewRun   string   `json:"new_run,omitempty"`
	Episode  string   `json:"episode,omitempty"`
	// Evidence is relative to the state folder; Workspace and Log are the run's own, as it gave them.
	Evidence  string `json:"evidence,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Log       string `json:"log,omitempty"`
	// GoOn is what a person can do, with commands to paste; empty where nothing is left to do.
	GoOn string `json:"go_on,omitempty"`
}

// Verdict is the last decision with its reason explained. Doc says where the documentation explains it further.
type Verdict struct {
	Reason string `json:"reason"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	Doc    string `json:"doc,omitempty"`
}

// Moment is one line of the timeline, the oldest first: the run's own start and end, then every change of the record.
type Moment struct {
	At    string `json:"at"` // RFC 3339
	Clock string `json:"-"`  // for people
	What  string `json:"what"`
	Why   string `json:"why,omitempty"`
}

// BuildCard is the card of a record.
func BuildCard(r ledger.Record, o Options) Card {
	f := r.Facts
	c := Card{
		Schema: Schema, Name: name(r), Project: line(r.Project), Lineage: line(r.Lineage), Run: line(f.Death.Run),
		State: line(string(r.State)), Now: Now(r, o), Death: death(f.Death, o), Signature: signature(f.Signature),
		Message: line(f.Signature.Message), Verdict: verdict(r.Reason, r.Note), Episode: r.Episode,
		Evidence: path(r.Evidence), Workspace: path(f.Death.Workspace), Log: path(f.Death.Log),
	}
	for _, w := range f.Witnesses {
		c.Witnesses = append(c.Witnesses, Witness{Kind: line(w.Kind), Title: witnessTitle(w.Kind), Detail: line(w.Detail), Agents: 1})
	}
	if k := culpritOf(f); k != nil {
		c.Culprit = &Culprit{Commit: notify.Abbreviate(k.Commit), Subject: line(k.Subject), Path: path(k.Path), Name: line(k.Name)}
		if !k.When.IsZero() {
			c.Culprit.When = o.clock(k.When)
		}
	}
	if p := f.Probe; p != nil {
		c.Probe = line(p.Outcome)
		if len(p.Modules) > 0 {
			c.Probe += ", " + plural(len(p.Modules), "module") + " tried: " + line(strings.Join(p.Modules, ", "))
		}
		if p.Detail != "" {
			c.Probe += "; " + line(p.Detail)
		}
	}
	if r.Launch != nil {
		c.Launch, c.NewRun = line(r.Launch.ID), line(r.Launch.Run)
	}
	// While the healer still works on it, a person has nothing to do.
	if r.State == ledger.Declined || r.State == ledger.SettledFailed {
		c.GoOn = path(notify.GoOn(r.Reason, o.program(), r.Lineage, f.Death.Workspace))
	}
	if !f.Death.Booted.IsZero() {
		c.Timeline = append(c.Timeline, Moment{At: f.Death.Booted.String(), Clock: o.clock(f.Death.Booted), What: "started"})
	}
	if !f.Death.At.IsZero() {
		c.Timeline = append(c.Timeline, Moment{At: f.Death.At.String(), Clock: o.clock(f.Death.At), What: "broke", Why: "during " + phase(f.Death.Phase)})
	}
	for _, h := range r.History {
		m := Moment{At: h.At.String(), Clock: o.clock(h.At), What: happened(h), Why: line(h.Note)}
		// The reason of a launch is the same for all of them: that it was due.
		if h.Reason != "" && h.Event != ledger.BeginLaunch {
			m.Why = cmp.Or(m.Why, notify.Reason(h.Reason).Title)
		}
		// What a person did has a reason and, at times, their note.
		if h.Event == ledger.Intend && h.Note != "" {
			m.Why = notify.Reason(h.Reason).Title + ": " + m.Why
		}
		c.Timeline = append(c.Timeline, m)
	}
	return c
}

// BuildAnswerCard is the card of a death that got an answer and no record.
func BuildAnswerCard(a ledger.Answer, o Options) Card {
	c := Card{
		Schema: Schema, Name: cmp.Or(line(a.Name), line(a.Key.Lineage)), Project: line(a.Key.Project),
		Lineage: line(a.Key.Lineage), Run: line(a.Run), Now: answerNow(a), Verdict: verdict(a.Reason, a.Text),
		Death: "broke at " + o.clock(a.Died),
		GoOn:  path(notify.GoOn(a.Reason, o.program(), a.Key.Lineage, "")),
		Timeline: []Moment{
			{At: a.Died.String(), Clock: o.clock(a.Died), What: "broke"},
			{At: a.At.String(), Clock: o.clock(a.At), What: "answered", Why: notify.Reason(a.Reason).Title},
		},
	}
	if a.Signature != nil {
		c.Signature, c.Message = signature(*a.Signature), line(a.Signature.Message)
	}
	if d := a.Death; d != nil {
		c.Death, c.Workspace, c.Log = death(*d, o), path(d.Workspace), path(d.Log)
		c.GoOn = path(notify.GoOn(a.Reason, o.program(), a.Key.Lineage, d.Workspace))
		if !d.Booted.IsZero() {
			c.Timeline = slices.Insert(c.Timeline, 0, Moment{At: d.Booted.String(), Clock: o.clock(d.Booted), What: "started"})
		}
	}
	return c
}

// answerNow tells a person's own doing from what was judged.
func answerNow(a ledger.Answer) string {
	if a.Reason == "" {
		return "left alone"
	}
	return "left alone: " + reason(a.Reason)
}

// Text is the card for a terminal: the sentence that most people came for at the top, what they may have to copy at the
// bottom.
func (c Card) Text(s Style) string {
	var b strings.Builder
	b.WriteString(s.para(0, "", bold, c.Name+"  "+c.Project+"/"+c.Lineage))
	b.WriteString(s.para(0, "", statePaint(ledger.State(c.State)), c.Now))
	b.WriteByte('\n')
	var rows [][]cell
	add := func(label, text string) {
		if text != "" {
			rows = append(rows, []cell{{label, dim}, {text, plain}})
		}
	}
	add("Verdict", c.Verdict.Title)
	add("", c.Verdict.Text)
	add("Death", c.Death)
	add("Broke on", c.Signature)
	add("", c.Message)
	for i, w := range c.Witnesses {
		label := "Proof"
		if i > 0 {
			label = ""
		}
		add(label, w.sentence(1))
	}
	if c.Culprit != nil {
		add("Culprit", c.Culprit.sentence())
		add("", c.Culprit.what())
	}
	add("Trial", c.Probe)
	add("New run", c.NewRun)
	add("Episode", c.Episode)
	b.WriteString(s.rows(0, rows))
	b.WriteString("\n" + s.paint(dim, "Timeline") + "\n")
	rows = nil
	for _, m := range c.Timeline {
		rows = append(rows, []cell{{m.Clock, dim}, {m.What, plain}, {m.Why, plain}})
	}
	b.WriteString(s.rows(2, rows))
	gap := "\n"
	for _, p := range [][2]string{{"Evidence ", c.Evidence}, {"Workspace", c.Workspace}, {"Log      ", c.Log}} {
		if p[1] != "" {
			// Paths are copied, so they stay in one piece whatever the width.
			b.WriteString(gap + s.paint(dim, p[0]) + "  " + p[1] + "\n")
			gap = ""
		}
	}
	if c.GoOn != "" {
		b.WriteString("\n" + s.whole(0, c.GoOn))
	}
	return b.String()
}

func verdict(code, note string) Verdict {
	info := notify.Reason(code)
	v := Verdict{Reason: line(code), Title: info.Title, Text: cmp.Or(line(note), info.Text), Doc: line(info.Doc)}
	if code == "" {
		v.Title, v.Text = "Not decided yet", line(note)
	}
	return v
}

func culpritOf(f ledger.Facts) *ledger.Culprit {
	if f.Culprit != nil {
		return f.Culprit
	}
	for _, w := range f.Witnesses {
		if w.Culprit != nil {
			return w.Culprit
		}
	}
	return nil
}

func death(d ledger.Death, o Options) string {
	s := "broke at " + o.clock(d.At) + " during " + phase(d.Phase)
	switch {
	case d.Signal != "":
		s += ", by " + line(d.Signal)
	case d.Exit != 0: // a program that breaks never exits with 0: then nobody saw its end, or it was none
		s += ", exit code " + strconv.Itoa(d.Exit)
	}
	if !d.Booted.IsZero() && !d.At.IsZero() {
		if age := d.At.Sub(d.Booted); age >= 0 {
			s += ", " + stamp.Short(age) + " after it started"
		}
	}
	return s
}

// happened is one history entry in words.
func happened(h ledger.Entry) string {
	switch h.Event {
	case ledger.Claim:
		return "looked at"
	case ledger.Takeover:
		return "taken over"
	case ledger.Defer:
		return "put off"
	case ledger.Decline:
		return "left alone"
	case ledger.BeginLaunch:
		return "restart begun"
	case ledger.Bind:
		return "running again"
	case ledger.Abort:
		return "restart never came up"
	case ledger.SettleOK:
		return "finished"
	case ledger.SettleBad:
		switch {
		case h.Reason == "replacement_lost":
			return "went away"
		case byHand(h.Reason):
			return "ended"
		}
		return "broke again"
	case ledger.Intend:
		return cmp.Or(line(h.By), "a person") + " decided"
	}
	return strings.ReplaceAll(line(string(h.Event)), "_", " ")
}
