package scenarios

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

var nothingUnflushed faultfs.Survival

// names gives ids the names that a reader can follow.
type names struct {
	of       map[string]string
	runs     map[string]int
	episodes map[string]string
}

func newNames() *names {
	return &names{of: map[string]string{}, runs: map[string]int{}, episodes: map[string]string{}}
}

func (n *names) run(a *restarttest.Agent) string {
	if _, ok := n.of[a.ID()]; !ok {
		n.runs[a.Name]++
		n.of[a.ID()] = fmt.Sprintf("%s#%d", a.Name, n.runs[a.Name])
	}
	return n.of[a.ID()]
}

func (n *names) episode(id string) string {
	if _, ok := n.episodes[id]; !ok {
		n.episodes[id] = fmt.Sprintf("E%d", len(n.episodes)+1)
	}
	return n.episodes[id]
}

var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	holders = regexp.MustCompile(` \(pid \d+, since [^)]*\)`)
	clocks  = regexp.MustCompile(`\b\d\d:\d\d\b`)
	folders = regexp.MustCompile(`(/[^ /:]+)+/([^ /:]+)`)
)

// plain is a text without what differs from one play to the next.
func (n *names) plain(s string) string {
	s = holders.ReplaceAllString(s, "")
	s = clocks.ReplaceAllString(s, "(then)")
	s = uuids.ReplaceAllStringFunc(s, func(id string) string {
		if name, ok := n.of[id]; ok {
			return name
		}
		return "(id)"
	})
	return folders.ReplaceAllStringFunc(s, func(p string) string {
		if strings.HasSuffix(p, ".json") {
			return filepath.Base(p)
		}
		return p
	})
}

// outcome is what a pass did: outcomes by name, starts, new notices.
func (p *play) outcome(res restart.Result, err error, before []notify.Row) (out []string) {
	for _, a := range p.w.Agents("") {
		p.names.run(a)
	}
	slices.SortStableFunc(res.Outcomes, func(a, b restart.Outcome) int { return strings.Compare(a.Name, b.Name) })
	if res.Held != "" {
		out = append(out, "held: "+res.Held)
	}
	for _, o := range res.Outcomes {
		who := o.Name
		if who == "" {
			who = "(nobody)"
		}
		switch what := string(o.Verdict); {
		case o.Error != "" && err != nil:
			// The healer was killed: what it would have said is nobody's.
		case o.Error != "":
			out = append(out, fmt.Sprintf("%s: error: %s", who, p.names.plain(o.Error)))
		case o.Code == "" || o.Code == what:
			out = append(out, fmt.Sprintf("%s: %s. %s", who, what, p.names.plain(o.Text)))
		default:
			out = append(out, fmt.Sprintf("%s: %s, %s. %s", who, what, o.Code, p.names.plain(o.Text)))
		}
	}
	if err != nil {
		out = []string{"the healer is killed"}
	}
	out = append(out, p.starts()...)
	// Rows of one pass come in no particular order.
	var shown []string
	for _, r := range p.w.Rows() {
		i := slices.IndexFunc(before, func(b notify.Row) bool { return b.Key == r.Key })
		switch {
		case i < 0:
			shown = append(shown, "shown: "+p.row(r))
		case before[i].Title != r.Title:
			shown = append(shown, "shown again: "+p.row(r))
		}
	}
	slices.Sort(shown)
	out = append(out, shown...)
	if len(out) == 0 {
		return []string{"nothing"}
	}
	return out
}

func (p *play) row(r notify.Row) string {
	how := "quiet"
	if r.Loud {
		how = "loud"
	}
	return fmt.Sprintf("%s, %s", p.names.plain(r.Title), how)
}

// starts are the replacements that began since they were last shown, and whom of them each had to wait for.
func (p *play) starts() (out []string) {
	all := p.w.Starts()
	p.began = min(p.began, len(all))
	for i, s := range all[p.began:] {
		text := s.Name + " runs again"
		for _, before := range all[p.began:][:i] {
			if slices.Contains(p.w.Latest(s.Name).Registered().WaitsFor, before.Name) {
				text += ", after " + before.Name
			}
		}
		out = append(out, text)
	}
	p.began = len(all)
	slices.Sort(out)
	return out
}

func (p *play) show(line, []string) (out []string) {
	for _, a := range p.w.Agents("") {
		end := "is dead"
		switch r := a.Registered(); {
		case a.Alive():
			end = "runs"
		case r.Ended != nil && r.Ended.OK:
			end = "ended well"
		}
		out = append(out, fmt.Sprintf("%s: %s, %s", p.names.run(a), end, a.Stands()))
	}
	slices.Sort(out)
	out = append(out, fmt.Sprintf("doorbells: %d, probes: %d, toasts: %d", p.w.Bells(), p.w.Probes(), p.w.Toasts()))
	return out
}

func (p *play) ledger(line, []string) (out []string) {
	var recs []ledger.Record
	for r, err := range p.w.Stores().Ledger.List(p.t.Context()) {
		if err != nil {
			out = append(out, "error: "+p.names.plain(err.Error()))
			continue
		}
		recs = append(recs, r)
	}
	slices.SortFunc(recs, func(a, b ledger.Record) int {
		if n := strings.Compare(a.Facts.Death.Name, b.Facts.Death.Name); n != 0 {
			return n
		}
		return strings.Compare(a.Lineage, b.Lineage)
	})
	for _, r := range recs {
		head := p.names.plain(r.Lineage) + ": " + string(r.State)
		if r.Episode != "" {
			head += ", episode " + p.names.episode(r.Episode)
		}
		if c := r.Facts.Culprit; c != nil {
			head += ", culprit " + c.Commit
		}
		for _, w := range r.Facts.Witnesses {
			head += ", " + w.Kind
		}
		if r.Facts.Probe != nil {
			head += ", probe " + r.Facts.Probe.Outcome
		}
		if r.Evidence != "" {
			head += ", evidence"
		}
		if !r.Pruned.IsZero() {
			head += ", pruned"
		}
		out = append(out, head)
		for _, e := range r.History {
			out = append(out, strings.TrimRight(fmt.Sprintf("  %s %s", e.Event, e.Reason), " "))
		}
	}
	if len(out) == 0 {
		return []string{"empty"}
	}
	return out
}

func (p *play) notices(line, []string) (out []string) {
	rows := p.w.Rows()
	slices.SortStableFunc(rows, func(a, b notify.Row) int { return strings.Compare(a.Title, b.Title) })
	for _, r := range rows {
		out = append(out, p.row(r))
		for _, n := range r.Notes {
			out = append(out, "  "+p.names.plain(n.Text))
		}
	}
	return out
}

func (p *play) journal(line, []string) (out []string) {
	for r, err := range p.w.Stores().Journal.Rows(p.t.Context()) {
		p.must(err)
		for _, root := range r.Roots {
			out = append(out, fmt.Sprintf("%s: %s, %s to %s", r.Status, root.Name, root.From, root.To))
		}
	}
	return out
}
