package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Schema is the version of the JSON form of the models.
const Schema = 1

// Report is the live report of one episode. It is built anew from the records on every change and holds no state of its
// own, so a report that was not written, or is lost, is made good by the next.
//
// Its JSON form is stable under Schema: fields are added, never renamed. Times named When are for people, in the zone of
// the Options; all others are RFC 3339.
type Report struct {
	Schema  int    `json:"schema"`
	Episode string `json:"episode"`
	// Headline counts agents and names none, so that it stays short and calm whatever they are called.
	Headline string `json:"headline"`
	// Changed is when a member last moved, RFC 3339.
	Changed string         `json:"changed"`
	Counts  episode.Counts `json:"counts"`
	Update  Update         `json:"update"`
	// Culprit is nil as long as no commit is known; it may appear later without a change of the episode's id.
	Culprit   *Culprit  `json:"culprit,omitempty"`
	Witnesses []Witness `json:"witnesses,omitempty"`
	// Agents are the members that were put back or still may be, LeftAlone the declined ones. Each member is in one of
	// the two.
	Agents    []Agent     `json:"agents,omitempty"`
	LeftAlone []LeftAlone `json:"left_alone,omitempty"`
	// Why is the rule that was applied, for somebody who never read about it.
	Why string `json:"why"`
	// Prevention is how the next update need not do this.
	Prevention string `json:"prevention"`
}

// Update is who changed what, and when.
type Update struct {
	Root string `json:"root,omitempty"`
	// From and To are the identity range over all agents, shortened; Boots is how many identities they started with.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// More than one means that the update found agents of different ages, and that From is the oldest.
	Boots int    `json:"boots,omitempty"`
	When  string `json:"when,omitempty"`
	// Journal is the row's id, Command what it ran and Status how that ended.
	// All three are empty for an update that nobody ran through the journal.
	Journal string `json:"journal,omitempty"`
	Command string `json:"command,omitempty"`
	Status  string `json:"status,omitempty"`
}

// Culprit is the commit that did it.
type Culprit struct {
	// Commit is shortened for people; the records hold it whole.
	Commit  string `json:"commit"`
	Subject string `json:"subject,omitempty"`
	When    string `json:"when,omitempty"`
	// Name is the module or module:symbol whose presence the commit changed, and Path the file where.
	Path string `json:"path,omitempty"`
	Name string `json:"name,omitempty"`
}

// Witness is one kind of proof, with how many agents it holds for.
type Witness struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
	// Detail is the sentence of the first agent that has this proof; the others differ in commits at most.
	Detail string `json:"detail"`
	Agents int    `json:"agents"`
}

// Agent is one that was or may be put back. Every text in it is fit to be shown as it is.
type Agent struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Lineage string `json:"lineage"`
	Run     string `json:"run"`
	State   string `json:"state"`
	// Phase is what it was in when it broke, in words.
	Phase string `json:"phase"`
	Died  string `json:"died"` // RFC 3339
	// Signature is what was read from the text ("torn import: acme.wire:Frame"), Exception the text's own line.
	Signature string `json:"signature"`
	Exception string `json:"exception,omitempty"`
	// Action is what was done about it, and Now where that has led; see [Now].
	Action string `json:"action"`
	Now    string `json:"now"`
	// Evidence is a path relative to the state folder, empty before anything was begun.
	Evidence string `json:"evidence,omitempty"`
}

// LeftAlone is one that was declined, and why.
type LeftAlone struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Lineage string `json:"lineage"`
	// Reason is the stable code; Title and Text say it in words, Text in the decision's own where it left some.
	Reason string `json:"reason"`
	Title  string `json:"title"`
	Text   string `json:"text"`
	// Workspace is where the work lies as it was left. The healer never cleans it.
	Workspace string `json:"workspace,omitempty"`
	// GoOn says what a person can do, with commands that can be pasted.
	GoOn string `json:"go_on,omitempty"`
}

// Build makes the report of an episode. row is the update's journal row where there is one, nil otherwise.
func Build(e episode.Episode, row *journal.Row, o Options) Report {
	r := Report{
		Schema: Schema, Episode: e.ID, Counts: e.Counts, Changed: e.Changed.String(),
		Headline: headline(e), Update: update(e, row, o), Witnesses: witnesses(e),
		Why: why(e),
		Prevention: "Run updates as `" + o.program() + " swap -- CMD`: it waits for its turn, keeps restarts back while" +
			" the code changes, and leaves proof of what changed.",
	}
	if c := e.Culprit; c != nil {
		r.Culprit = &Culprit{Commit: notify.Abbreviate(c.Commit), Subject: line(c.Subject), Path: path(c.Path), Name: line(c.Name)}
		if !c.When.IsZero() {
			r.Culprit.When = o.clock(c.When)
		}
	}
	// A declined member has no "now" that could change, so it gets its reason instead of a row.
	for _, m := range e.Members {
		if m.State == ledger.Declined {
			r.LeftAlone = append(r.LeftAlone, leftAlone(m, o))
			continue
		}
		r.Agents = append(r.Agents, agent(m, o))
	}
	return r
}

func agent(m ledger.Record, o Options) Agent {
	d := m.Facts.Death
	return Agent{
		Name: name(m), Project: line(m.Project), Lineage: line(m.Lineage), Run: line(d.Run), State: line(string(m.State)),
		Phase: phase(d.Phase), Died: d.At.String(), Signature: signature(m.Facts.Signature),
		Exception: line(m.Facts.Signature.Message), Action: action(m, o), Now: Now(m, o), Evidence: path(m.Evidence),
	}
}

func leftAlone(m ledger.Record, o Options) LeftAlone {
	info := notify.Reason(m.Reason)
	return LeftAlone{
		Name: name(m), Project: line(m.Project), Lineage: line(m.Lineage), Reason: line(m.Reason),
		Title: cmp.Or(info.Title, "Left alone"), Text: cmp.Or(line(m.Note), info.Text),
		Workspace: path(m.Facts.Death.Workspace),
		GoOn:      path(notify.GoOn(m.Reason, o.program(), m.Lineage, m.Facts.Death.Workspace)),
	}
}

// headline counts, so that it stays short and calm whatever the agents are called.
func headline(e episode.Episode) string {
	n := e.Counts.Total()
	s := plural(n, "agent")
	switch root := line(e.Root); {
	case e.ID == "":
		s += " without an episode"
	case e.Own():
		s += " broke, and no update is known to have done it"
	case root != "":
		s += " hit by an update of " + root
	default:
		s += " hit by an update"
	}
	if c := tally(e); c != "" {
		s += ": " + c
	}
	return s
}

// ends are the bad ends of an episode's replacements, told apart as [Now] tells them.
type ends struct{ broke, absent, gone, byHand int }

func endsOf(e episode.Episode) ends {
	n := ends{broke: e.Counts.Broken}
	for _, m := range e.Members {
		kind := &n.broke
		switch {
		case m.State != ledger.SettledFailed:
		case m.Launch != nil && m.Launch.Bound == nil:
			kind = &n.absent
		case m.Reason == "replacement_lost":
			kind = &n.gone
		case byHand(m.Reason):
			kind = &n.byHand
		}
		if kind != &n.broke {
			*kind++
			n.broke--
		}
	}
	return n
}

// tally is the counts in words, what is good first.
func tally(e episode.Episode) string {
	c, bad := e.Counts, endsOf(e)
	var parts []string
	for _, p := range []struct {
		n    int
		word string
	}{
		{c.Finished, "finished"}, {c.Running, "running again"}, {c.Launching, "being put back"}, {c.Waiting, "waiting"},
		{bad.broke, "broke again"}, {bad.absent, "never came up"}, {bad.gone, "gone"}, {bad.byHand, "ended by a person"},
		{c.LeftAlone, "left alone"},
	} {
		if p.n > 0 {
			parts = append(parts, strconv.Itoa(p.n)+" "+p.word)
		}
	}
	return strings.Join(parts, ", ")
}

func update(e episode.Episode, row *journal.Row, o Options) Update {
	u := Update{
		Root: line(e.Root), From: notify.Abbreviate(e.From), To: notify.Abbreviate(e.To), Boots: e.Boots,
		When: o.span(e.When), Journal: line(e.Update),
	}
	if row == nil {
		return u
	}
	words := make([]string, len(row.Command))
	for i, w := range row.Command {
		words[i] = notify.Shell(w)
	}
	u.Journal, u.Command, u.Status = line(row.ID), line(strings.Join(words, " ")), line(string(row.Status))
	// The journal saw the update itself; a witness only knows between which moments it happened.
	u.When = cmp.Or(o.span(row.Span()), u.When)
	for _, c := range row.Roots {
		if c.Name == e.Root && c.Changed() && u.To == "" {
			u.From, u.To = notify.Abbreviate(c.From), notify.Abbreviate(c.To)
		}
	}
	return u
}

// witnesses are the proofs of all members, one line a kind; the sentence is that of the first member that has it.
func witnesses(e episode.Episode) []Witness {
	var out []Witness
	for _, m := range e.Members {
		seen := map[string]bool{}
		for _, w := range m.Facts.Witnesses {
			i := slices.IndexFunc(out, func(x Witness) bool { return x.Kind == line(w.Kind) })
			if i < 0 {
				out = append(out, Witness{Kind: line(w.Kind), Title: witnessTitle(w.Kind), Detail: line(w.Detail)})
				i = len(out) - 1
			}
			if !seen[w.Kind] {
				seen[w.Kind] = true
				out[i].Agents++
			}
		}
	}
	return out
}

// why is the rule that was applied, in the words of somebody who never read the design.
func why(e episode.Episode) string {
	var s []string
	c := e.Counts
	if e.Own() {
		s = append(s, "The failure text looks like an update's doing, but nothing proves that the code changed under the run.")
	}
	if c.PutBack() > 0 {
		s = append(s, "The code was replaced under the running agents, and they ended before they had done any work."+
			" Each is put back once, under its own name and unchanged, after a trial has shown that the new code loads.")
	}
	switch bad := endsOf(e); {
	case bad.broke > 0:
		s = append(s, "What broke again is shown and not tried a second time.")
	case bad.absent+bad.gone > 0:
		s = append(s, "What never came up or went away is shown and not tried a second time.")
	}
	if c.Waiting > 0 {
		s = append(s, "What waits is put back once the code is quiet and loads; when its time is over it is left to a person.")
	}
	if c.LeftAlone > 0 {
		s = append(s, "What was left alone needs a person: starting it again could repeat work, or nothing proves that the update did it.")
	}
	return strings.Join(s, " ")
}

func name(m ledger.Record) string { return cmp.Or(line(m.Facts.Death.Name), line(m.Lineage)) }

func phase(p string) string {
	if p == "" {
		return "unknown"
	}
	return strings.ReplaceAll(line(p), "_", " ")
}
