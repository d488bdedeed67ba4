package notify

import (
	"cmp"
	"slices"
	"time"
)

// Glyph is the sign of recovery.
const Glyph = "↻"

// KindEpisode is the kind of an episode's one row.
const KindEpisode = "episode"

// EpisodeFacts are what an episode's row is made of: all that was put back because of one update.
type EpisodeFacts struct {
	// ID is the episode's id; it makes the row's key.
	ID string
	// Root, Commit and Subject name the update as far as it is known. Commit may be any revision.
	Root    string
	Commit  string
	Subject string
	// Agents are those that were put back, in any order.
	Agents []Agent
	// Report is where the live report lies.
	Report string
	// Told is set once a row of this episode was acknowledged. It keeps sinks that remember nothing from a second
	// toast; sinks that remember need it not.
	Told bool
}

// Agent is one agent that was put back.
type Agent struct {
	Project string
	Lineage string
	Name    string
	// At is when its launch began. The earliest agent opens the row, every later one is a "+1".
	At time.Time
	// Exception and Message are what had ended it.
	Exception string
	Message   string
	// Now is where it stands, as a short phrase ("running again since 14:03").
	Now string
}

// EpisodeRow is the one row of an episode. It is built from all agents every time, so that a delivery that was missed
// is made good by the next.
func EpisodeRow(f EpisodeFacts) Row {
	agents := slices.Clone(f.Agents)
	slices.SortStableFunc(agents, func(a, b Agent) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Project, b.Project), cmp.Compare(a.Lineage, b.Lineage))
	})
	row := Row{
		Key: "episode:" + part(f.ID), Kind: KindEpisode, Glyph: Glyph, Tone: Amber, Toast: !f.Told,
		Title: episodeTitle(f, agents), Episode: f.ID, Report: f.Report,
		// The update comes first, so that what an agent ended on never stands above the second note.
		Notes: []Note{{ID: "update", Text: updateNote(f)}},
	}
	for i, a := range agents {
		text := agentNote(a)
		// The earliest launch never changes, so no note turns from the opening one into a "+1" later.
		if i > 0 {
			text = "+1 " + text
		}
		row.Notes = append(row.Notes, Note{ID: "agent:" + part(a.Project) + "/" + part(a.Lineage), Text: Line(text, noteLimit)})
		if a.At.After(row.At) {
			row.At = a.At
		}
	}
	return row
}

// episodeTitle says how many were put back. A name that may not stand in a title is counted instead, and read in the
// agent's own note.
func episodeTitle(f EpisodeFacts, agents []Agent) string {
	who := count(len(agents), "agent")
	counted := who + " put back after an update"
	root := Line(f.Root, nameLimit)
	if root == "" {
		root = "its code"
	}
	if len(agents) != 1 || agents[0].Name == "" {
		return firstCalm(counted+" of "+root, counted)
	}
	// From the most telling to the plainest; the last has no word from outside.
	named := Line(agents[0].Name, nameLimit) + " put back after an update"
	return firstCalm(named+" of "+root, named, counted+" of "+root, counted)
}

func updateNote(f EpisodeFacts) string {
	s := "Update"
	if f.Commit != "" {
		s += " " + Abbreviate(f.Commit)
	}
	if f.Root != "" {
		s += " of " + Line(f.Root, nameLimit)
	}
	if f.Subject != "" {
		s += ": " + f.Subject
	}
	if s == "Update" {
		s = "The code changed under the running agents"
	}
	return Line(s, noteLimit)
}

func agentNote(a Agent) string {
	s := a.Name
	if s == "" {
		s = a.Lineage
	}
	s = Line(s, nameLimit)
	if now := Line(a.Now, nameLimit*2); now != "" {
		s += ": " + now
	} else {
		s += ": put back"
	}
	if what := ended(a.Exception, a.Message); what != "" {
		s += "; it had ended on " + what
	}
	return s
}

// ended is an exception and its message without saying the type twice.
func ended(exception, message string) string {
	exception, message = Line(exception, nameLimit*2), Line(message, noteLimit/2)
	switch {
	case message == "":
		return exception
	case exception == "" || len(message) >= len(exception) && message[:len(exception)] == exception:
		return message
	}
	return exception + ": " + message
}

// Abbreviate shortens a revision for people: a hash to twelve digits, anything else to a line of modest length.
func Abbreviate(revision string) string {
	hex := 0
	for hex < len(revision) && isHex(revision[hex]) {
		hex++
	}
	if hex >= 20 {
		rest := ""
		if hex < len(revision) && revision[hex] == '+' {
			rest = "+" // the tree has changes beside the commit
		}
		return revision[:12] + rest
	}
	return Line(revision, nameLimit)
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
