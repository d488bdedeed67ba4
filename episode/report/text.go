package report

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
)

// Text is the report for a terminal: what happened, what proves it, where each agent stands, what a person has to do,
// why, and, dim, how the next update need not do this.
func (r Report) Text(s Style) string {
	var b strings.Builder
	b.WriteString(s.para(0, notify.Glyph+" ", bold, r.Headline))
	b.WriteByte('\n')
	b.WriteString(s.rows(0, r.facts()))
	if len(r.Agents) > 0 {
		rows := [][]cell{{{"AGENT", dim}, {"BROKE DURING", dim}, {"BROKE ON", dim}, {"ACTION", dim}, {"NOW", dim}}}
		for _, a := range r.Agents {
			rows = append(rows, []cell{
				{notify.Line(a.Name, nameWidth), bold}, {a.Phase, plain}, {orDash(a.Signature), plain}, {a.Action, plain}, {a.Now, statePaint(ledger.State(a.State))},
			})
		}
		b.WriteByte('\n')
		if widths := s.widths(0, rows); widths[len(widths)-1] >= leastNow {
			b.WriteString(s.render(0, widths, rows))
		} else {
			b.WriteString(s.stacked(rows[1:]))
		}
	}
	if len(r.LeftAlone) > 0 {
		b.WriteString("\n" + s.paint(bold, "Left alone") + "\n")
		for _, l := range r.LeftAlone {
			b.WriteString(s.para(2, "• ", plain, l.Name+": "+lower(l.Title)+". "+l.Text))
			// The path and the command come last, where they are easy to mark and copy.
			if l.Workspace != "" {
				b.WriteString(s.whole(4, "workspace: "+l.Workspace))
			}
			if l.GoOn != "" {
				b.WriteString(s.whole(4, l.GoOn))
			}
		}
	}
	if r.Why != "" {
		b.WriteString("\n" + s.para(0, "", plain, "Why: "+r.Why))
	}
	b.WriteString("\n" + s.para(0, "", dim, r.Prevention))
	return b.String()
}

// leastNow is how wide the column Now has to be, so that its sentences do not run down the page.
const leastNow = 24

// stacked shows each row of the agents' table as a paragraph, where a table would be too narrow to read.
func (s Style) stacked(rows [][]cell) string {
	var b strings.Builder
	for _, row := range rows {
		now := row[len(row)-1]
		b.WriteString(s.para(0, "", bold, row[0].text))
		b.WriteString(s.para(2, "", plain, "broke during "+row[1].text+", "+row[2].text))
		b.WriteString(s.para(2, "", now.paint, row[3].text+" · "+now.text))
	}
	return b.String()
}

// facts are the labelled lines under the headline.
func (r Report) facts() [][]cell {
	var rows [][]cell
	add := func(label, text string) {
		if text != "" {
			rows = append(rows, []cell{{label, dim}, {text, plain}})
		}
	}
	add("Update", r.Update.sentence())
	add("", r.Update.journal())
	if c := r.Culprit; c != nil {
		add("Culprit", c.sentence())
		add("", c.what())
	}
	for i, w := range r.Witnesses {
		label := ""
		if i == 0 {
			label = "Proof"
		}
		add(label, w.sentence(r.Counts.Total()))
	}
	add("Episode", r.Episode)
	return rows
}

// sentence is what was updated, from what to what, and when.
func (u Update) sentence() string {
	s := u.Root
	switch {
	case u.From != "" && u.To != "":
		s = join(s, u.From+" → "+u.To)
	case u.To != "":
		s = join(s, "now "+u.To)
	}
	if u.Boots > 1 {
		s += " (the agents had started with " + plural(u.Boots, "different version") + ")"
	}
	if u.When != "" {
		s = join(s, "· "+u.When)
	}
	return s
}

// journal is who did it, as far as a journal tells.
func (u Update) journal() string {
	s := ""
	if u.Command != "" {
		s = "by " + u.Command
		if u.Status != "" {
			s += " (" + u.Status + ")"
		}
	}
	if u.Journal != "" {
		s = join(s, "journal row "+u.Journal)
	}
	return s
}

func (c Culprit) sentence() string {
	s := c.Commit
	if c.Subject != "" {
		s += "  " + c.Subject
	}
	if c.When != "" {
		s += " · " + c.When
	}
	return s
}

func (c Culprit) what() string {
	switch {
	case c.Name != "" && c.Path != "":
		return "changed " + c.Name + " in " + c.Path
	case c.Name != "":
		return "changed " + c.Name
	case c.Path != "":
		return "changed " + c.Path
	}
	return ""
}

func (w Witness) sentence(of int) string {
	s := w.Title
	if of > 1 {
		s += " (" + plural(w.Agents, "agent") + ")"
	}
	if w.Detail != "" {
		s += ": " + w.Detail
	}
	return s
}

// Markdown is the report for a page or a comment. Text from outside cannot act in it: neither as Markdown nor as HTML.
func (r Report) Markdown() string {
	var b strings.Builder
	b.WriteString("# " + notify.Glyph + " " + md(r.Headline) + "\n\n")
	item := func(label, text string) {
		if text != "" {
			b.WriteString("- **" + label + ":** " + md(text) + "\n")
		}
	}
	item("Update", join(r.Update.sentence(), r.Update.journal()))
	if r.Culprit != nil {
		item("Culprit", join(r.Culprit.sentence(), r.Culprit.what()))
	}
	for _, w := range r.Witnesses {
		item("Proof", w.sentence(r.Counts.Total()))
	}
	item("Episode", r.Episode)
	if len(r.Agents) > 0 {
		b.WriteString("\n| Agent | Broke during | Broke on | Action | **Now** |\n|---|---|---|---|---|\n")
		for _, a := range r.Agents {
			b.WriteString("| " + strings.Join([]string{md(a.Name), md(a.Phase), md(orDash(a.Signature)), md(a.Action), "**" + md(a.Now) + "**"}, " | ") + " |\n")
		}
	}
	if len(r.LeftAlone) > 0 {
		b.WriteString("\n## Left alone\n\n")
		for _, l := range r.LeftAlone {
			b.WriteString("- **" + md(l.Name) + "**: " + md(lower(l.Title)+". "+l.Text) + "\n")
			if l.Workspace != "" {
				b.WriteString("  - workspace: " + code(l.Workspace) + "\n")
			}
			if l.GoOn != "" {
				b.WriteString("  - " + code(l.GoOn) + "\n")
			}
		}
	}
	if r.Why != "" {
		b.WriteString("\n## Why\n\n" + md(r.Why) + "\n")
	}
	b.WriteString("\n<sub>" + mdKeepCode(r.Prevention) + "</sub>\n")
	return b.String()
}

// md keeps text from acting as Markdown or HTML.
func md(s string) string {
	return strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "|", `\|`, "#", `\#`,
		"<", "&lt;", ">", "&gt;", "&", "&amp;", "~", `\~`, "!", `\!`).Replace(s)
}

// mdKeepCode is md for our own sentence, whose code spans are meant.
func mdKeepCode(s string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "&", "&amp;").Replace(s)
}

// code is a code span that holds any text: its fence is longer than every run of backticks inside.
func code(s string) string {
	longest, run := 0, 0
	for _, c := range s {
		if c != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		s = " " + s + " "
	}
	return fence + s + fence
}

// para wraps text behind a mark, its later lines under its first.
func (s Style) para(indent int, mark string, p paint, text string) string {
	var b strings.Builder
	left := indent + Width(mark)
	for i, l := range wrap(text, s.width()-left) {
		if i == 0 {
			b.WriteString(strings.Repeat(" ", indent) + mark)
		} else {
			b.WriteString(strings.Repeat(" ", left))
		}
		b.WriteString(s.paint(p, l) + "\n")
	}
	return b.String()
}

// whole is a line that is not wrapped by us, because a person pastes it: a terminal wraps it without breaking it.
func (s Style) whole(indent int, text string) string {
	return strings.Repeat(" ", indent) + s.paint(amber, text) + "\n"
}

func statePaint(st ledger.State) paint {
	switch st {
	case ledger.Launched, ledger.Launching:
		return amber
	case ledger.SettledOK:
		return green
	case ledger.SettledFailed:
		return red
	case ledger.Declined:
		return dim
	}
	return plain
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + " " + b
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func lower(s string) string {
	if s == "" {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[n:]
}
