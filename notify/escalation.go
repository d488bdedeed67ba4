package notify

import (
	"slices"
	"strings"
	"time"
)

// Kinds of the rows that are no episode's. An escalation's or answer's Kind is its reason code.
const (
	// KindPause is a breaker that tripped, or a pause that holds failures up.
	KindPause = "pause"
)

// EscalationFacts are what one loud row about one lineage is made of.
type EscalationFacts struct {
	// Project and Lineage, and for an answer Run, make the key together with Reason.
	Project string
	Lineage string
	Run     string
	// Name is the agent's, empty for the lineage.
	Name string
	// Reason is the code of the decision, and Note its sentence, empty for the catalogue's.
	Reason string
	Note   string
	At     time.Time
	// Workspace is where the work lies as it was left, empty when there is none.
	Workspace string
	// Exception and Message are what the text said. They stand in the last note.
	Exception string
	Message   string
	Episode   string
	Report    string
	// Program is how the command line is called here; empty means "mulligan".
	Program string
	// Target is what its commands take for this run; empty means the lineage.
	Target string
}

// Escalation is a row of its own for what a person has to see: a decline, a question, work that is held, a deferral
// that expired, a replacement that broke again. Its key is the lineage and the reason, so that each is seen once.
func Escalation(f EscalationFacts) Row {
	key := "lineage:" + part(f.Project) + "/" + part(f.Lineage) + ":" + part(f.Reason)
	row := personal(key, f)
	row.Tone, row.Toast, row.Loud = Red, true, true
	return row
}

// AnswerFacts are what a row about a death without a record is made of.
type AnswerFacts struct {
	EscalationFacts
	// Loud is set when nobody else tells this failure, because the run's own notice was held back.
	Loud bool
}

// AnswerRow is a row about one death that got an answer and no record. Its key is the run and the reason: a failure
// that was shown while the healer was paused and is answered later makes two rows, because it is two messages.
func AnswerRow(f AnswerFacts) Row {
	row := personal("run:"+part(f.Run)+":"+part(f.Reason), f.EscalationFacts)
	row.Tone = Dim
	if f.Loud {
		row.Tone, row.Toast, row.Loud = Red, true, true
	}
	return row
}

// RunOf is whose row a key of [AnswerRow] with this reason names; ok is false for any other key.
func RunOf(key, reason string) (run string, ok bool) {
	run, ok = strings.CutPrefix(key, "run:")
	if !ok {
		return "", false
	}
	if run, ok = strings.CutSuffix(run, ":"+part(reason)); !ok {
		return "", false
	}
	return strings.NewReplacer("%2F", "/", "%3A", ":", "%25", "%").Replace(run), true
}

// Outcome is the last form of a row that showed a failure while it waited: the same key as [AnswerRow] made for shown,
// the reason under which it waited, and now what became of it. It is dim and makes no noise: whatever is loud about the
// outcome has a row of its own.
func Outcome(shown string, f EscalationFacts) Row {
	was := f
	was.Reason = shown
	row := personal(AnswerRow(AnswerFacts{EscalationFacts: was}).Key, f)
	row.Tone = Dim
	// What was said while it waited must not stand below the outcome.
	for _, n := range []Note{{"why", Reason(f.Reason).Text}, {"next", "Nothing is left to do here."}} {
		if n.Text != "" && !slices.ContainsFunc(row.Notes, func(o Note) bool { return o.ID == n.ID }) {
			row.Notes = append(row.Notes, n)
		}
	}
	return row
}

// personal is what escalations and answers share: whom it is about, why, where the work lies, how to go on, and what
// the text said.
func personal(key string, f EscalationFacts) Row {
	info := Reason(f.Reason)
	if f.Reason == "" {
		info.Title = "Left alone"
	}
	name := f.Name
	if name == "" {
		name = f.Lineage
	}
	name = Line(name, nameLimit)
	why := f.Note
	if why == "" {
		why = info.Text
	}
	row := Row{
		Key: key, Kind: f.Reason, At: f.At, Episode: f.Episode, Report: f.Report,
		Title: firstCalm(name+": "+lowerFirst(info.Title), "An agent: "+lowerFirst(info.Title)),
	}
	// The first note is the catalogue's own sentence: the decision's may quote the exception.
	notes := []Note{{ID: "reason", Text: info.Text}, {ID: "agent", Text: "Agent " + name}}
	if f.Project != "" {
		notes[1].Text += " of project " + Line(f.Project, nameLimit)
	}
	if info.Text == "" {
		notes = notes[1:]
	}
	// Then in the order in which a person asks: why, where is my work, what now, what did it say.
	add := func(id, text string) {
		if text != "" {
			notes = append(notes, Note{ID: id, Text: text})
		}
	}
	if f.Note != "" && f.Note != info.Text {
		add("why", why)
	}
	if f.Workspace != "" {
		add("workspace", workspace(f.Reason)+f.Workspace)
	}
	add("next", GoOn(f.Reason, f.Program, f.target(), f.Workspace))
	if what := ended(f.Exception, f.Message); what != "" {
		add("ended", "It ended on "+what)
	}
	for i := range notes {
		notes[i].Text = notes[i].fit(noteLimit)
	}
	row.Notes = notes
	return row
}

// workspace begins the note of where the work lies. It is held only while nobody works in it again.
func workspace(reason string) string {
	switch reason {
	case "relaunch", "replacement_ok", "manual_relaunch", "superseded", "supervised":
		return "The workspace: "
	}
	return "The workspace is held as it was left: "
}

func (f EscalationFacts) target() string {
	for _, t := range []string{f.Target, f.Lineage, f.Run} {
		if t != "" {
			return t
		}
	}
	return f.Name
}

// GoOn is the sentence that tells a person what to do next, with commands that can be pasted. It is empty where nothing
// is left to do, and for a reason whose way out lies outside Mulligan. An empty program means "mulligan".
func GoOn(reason, program, target, workspace string) string {
	if program == "" {
		program = "mulligan"
	}
	if target == "" {
		return ""
	}
	target = Shell(target)
	retry, dismiss := program+" retry "+target, program+" dismiss "+target
	look := ""
	if workspace != "" {
		look = "look at it with: cd " + Shell(workspace) + "; then "
	}
	// A restart by hand is a new lineage, so it is always allowed; what differs is what a person should look at first.
	switch reason {
	case "handoff":
		return "Start it again? Yes: " + retry + "  No: " + dismiss
	case "phase_unknown":
		return "Start it again? Yes: " + retry + "  No: " + dismiss +
			"  To have this decided next time, let the run mark its phases: " + program + " exec --phases -- CMD"
	case "notify_post_provider":
		return "To go on, " + look + "start it again: " + retry
	// A person or another program has it in hand.
	case "supervised", "asked", "manual_relaunch", "superseded", "dismissed":
		return ""
	// It runs again, or is about to.
	case "relaunch", "replacement_ok", "waiting":
		return ""
	case "disabled":
		return "To let it be decided, set enabled: true in the config."
	case "paused", "by_hand", "storm_paused", "storm_episode", "storm_window", "storm_loop":
		return "To let it be decided: " + program + " resume"
	case "":
		return ""
	}
	return "To start it by hand: " + retry
}

// PauseFacts are what the row about a pause is made of.
type PauseFacts struct {
	// Since is when the pause began; a later pause is another row.
	Since  time.Time
	Reason string
	Note   string
	// Episode is the update that tripped the breaker, where it is one.
	Episode string
	Program string
}

// pauseKey is the key of a pause's row, with its beginning.
const (
	pauseKey  = "state:pause:"
	pauseTime = "20060102T150405.000000000"
)

// PauseOf is when the pause began whose row has this key; ok is false for any other key.
func PauseOf(key string) (since time.Time, ok bool) {
	at, ok := strings.CutPrefix(key, pauseKey)
	if !ok {
		return since, false
	}
	since, err := time.Parse(pauseTime, at)
	return since, err == nil
}

// ResumedRow is the last form of a pause's row: the same key, and that it is over. What the row said of the present
// while the pause lasted is replaced; why it was made stays.
func ResumedRow(since, at time.Time) Row {
	return Row{Key: pauseKey + since.UTC().Format(pauseTime), Kind: KindPause, Tone: Dim, Title: "Restarts are allowed again", At: at,
		Notes: []Note{{ID: "reason", Text: "The pause is over: what broke meanwhile is decided."}, {ID: "next", Text: "Nothing is left to do here."}}}
}

// PauseRow tells once that nothing is started any more, and how to go on.
func PauseRow(f PauseFacts) Row {
	info := Reason(f.Reason)
	program := f.Program
	if program == "" {
		program = "mulligan"
	}
	title := "Restarts are paused"
	if f.Reason != "" {
		title = firstCalm(title+": "+lowerFirst(info.Title), title)
	}
	row := Row{
		Key: pauseKey + f.Since.UTC().Format(pauseTime), Kind: KindPause,
		Tone: Red, Toast: true, Loud: true, Title: title, At: f.Since, Episode: f.Episode,
	}
	for _, n := range []Note{{"reason", info.Text}, {"why", f.Note}} {
		if n.Text != "" && (n.ID != "why" || f.Note != info.Text) {
			row.Notes = append(row.Notes, Note{ID: n.ID, Text: Line(n.Text, noteLimit)})
		}
	}
	row.Notes = append(row.Notes, Note{ID: "next", Text: "To go on: " + program + " resume"})
	return row
}
