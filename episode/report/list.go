package report

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
)

// List is the ledger as a table: by episode, newest first, with the deaths that belong to none below. It shows what it is
// given; whoever wants the newest fifty gives it those.
type List struct {
	Schema int `json:"schema"`
	// Damaged are records that cannot be used; they stand first, because a person has to look.
	Damaged  []string  `json:"damaged,omitempty"`
	Episodes []Section `json:"episodes"`
	// NoEpisode are the answers, the records that have no episode yet, and those whose episode is their own alone.
	NoEpisode []Line `json:"no_episode,omitempty"`
}

// Section is one episode. Its lines stand in the order of the deaths, so that the first to break comes first.
type Section struct {
	Episode string         `json:"episode"`
	Title   string         `json:"title"`
	Changed string         `json:"changed"` // RFC 3339
	Clock   string         `json:"-"`       // for people
	Counts  episode.Counts `json:"counts"`
	Tally   string         `json:"-"` // the counts, for people
	Lines   []Line         `json:"lines"`
}

// Line is one lineage, or one answered death. Now is its sentence; see [Now].
type Line struct {
	Name    string `json:"name"`
	Project string `json:"project"`
	Lineage string `json:"lineage"`
	Run     string `json:"run"`
	// Episode is the record's, empty for an answer and for a record that has none yet.
	Episode string `json:"episode,omitempty"`
	// State is empty for an answer.
	State  string `json:"state,omitempty"`
	Reason string `json:"reason,omitempty"`
	Died   string `json:"died"` // RFC 3339
	Clock  string `json:"-"`    // for people
	Now    string `json:"now"`

	// order is when it last changed.
	order time.Time
}

// BuildList lists records and answers. damaged are what the store could not read.
func BuildList(records []ledger.Record, answers []ledger.Answer, damaged []*ledger.DamageError, o Options) List {
	l := List{Schema: Schema, Episodes: []Section{}}
	for _, d := range damaged {
		l.Damaged = append(l.Damaged, path(d.Error()))
	}
	for _, e := range episode.Group(records) {
		var lines []Line
		for _, m := range e.Members {
			lines = append(lines, Line{
				Name: name(m), Project: line(m.Project), Lineage: line(m.Lineage), Run: line(m.Facts.Death.Run),
				State: line(string(m.State)), Reason: line(m.Reason), Died: m.Facts.Death.At.String(), Clock: o.clock(m.Facts.Death.At),
				Episode: m.Episode, Now: Now(m, o), order: m.Changed().Wall,
			})
		}
		if e.ID == "" || e.Own() {
			l.NoEpisode = append(l.NoEpisode, lines...)
			continue
		}
		l.Episodes = append(l.Episodes, Section{
			Episode: e.ID, Title: sectionTitle(e), Changed: e.Changed.String(), Clock: o.clock(e.Changed), Counts: e.Counts, Tally: tally(e), Lines: lines,
		})
	}
	for _, a := range answers {
		l.NoEpisode = append(l.NoEpisode, Line{
			Name: cmp.Or(line(a.Name), line(a.Key.Lineage)), Project: line(a.Key.Project), Lineage: line(a.Key.Lineage),
			Run: line(a.Run), Reason: line(a.Reason), Died: a.Died.String(), Clock: o.clock(a.Died), Now: answerNow(a), order: a.At.Wall,
		})
	}
	// Answers and records share this section, so they are put in one order here, by when they last changed.
	slices.SortStableFunc(l.NoEpisode, func(a, b Line) int {
		return cmp.Or(cmp.Compare(settledRank(a), settledRank(b)), b.order.Compare(a.order), cmp.Compare(a.Run, b.Run))
	})
	return l
}

// settledRank puts what still needs work above what is over.
func settledRank(l Line) int {
	if l.State != "" && !ledger.State(l.State).Final() {
		return 0
	}
	return 1
}

// sectionTitle names an episode by what is known of it, the commit first.
func sectionTitle(e episode.Episode) string {
	var s string
	switch {
	case e.Culprit != nil:
		s = join(line(e.Root), notify.Abbreviate(e.Culprit.Commit))
		if e.Culprit.Subject != "" {
			s += "  " + line(e.Culprit.Subject)
		}
	case e.To != "":
		s = join(line(e.Root), "update to "+notify.Abbreviate(e.To))
	case e.Root != "":
		s = "update of " + line(e.Root)
	default:
		s = e.ID
	}
	return s
}

// Text is the list for a terminal. The columns line up over all episodes.
func (l List) Text(s Style) string {
	// An empty table would leave a person wondering whether it looked in the right place.
	if len(l.Damaged) == 0 && len(l.Episodes) == 0 && len(l.NoEpisode) == 0 {
		return "Nothing has needed a do-over.\n"
	}
	var b strings.Builder
	for _, d := range l.Damaged {
		b.WriteString(s.para(0, "! ", red, d))
	}
	var all []Line
	for _, e := range l.Episodes {
		all = append(all, e.Lines...)
	}
	all = append(all, l.NoEpisode...)
	// One project is no news in every line.
	projects := severalProjects(all)
	widths := s.widths(2, cells(all, projects))
	gap := ""
	section := func(mark, title, tail string, lines []Line) {
		b.WriteString(gap)
		b.WriteString(s.para(0, mark, bold, title))
		if tail != "" {
			b.WriteString(s.para(2, "", dim, tail))
		}
		b.WriteString(s.render(2, widths, cells(lines, projects)))
		gap = "\n"
	}
	if len(l.Damaged) > 0 {
		gap = "\n"
	}
	for _, e := range l.Episodes {
		section(notify.Glyph+" ", e.Title, e.Clock+" · "+e.Tally, e.Lines)
	}
	if len(l.NoEpisode) > 0 {
		section("", "no episode", "", l.NoEpisode)
	}
	return b.String()
}

// nameWidth bounds a name in a table: one long name must not press the other columns of every row together.
const nameWidth = 40

// cells are the columns of the list: who, of which project where there are several, when it broke, and where it stands.
func cells(lines []Line, projects bool) [][]cell {
	var rows [][]cell
	for _, l := range lines {
		row := []cell{{notify.Line(l.Name, nameWidth), plain}}
		if projects {
			row = append(row, cell{l.Project, dim})
		}
		p := statePaint(ledger.State(l.State))
		if l.State == "" {
			p = dim
		}
		rows = append(rows, append(row, cell{l.Clock, dim}, cell{l.Now, p}))
	}
	return rows
}

func severalProjects(lines []Line) bool {
	for _, l := range lines {
		if l.Project != lines[0].Project {
			return true
		}
	}
	return false
}
