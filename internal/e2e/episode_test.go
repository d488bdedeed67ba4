package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// TestFiveAgentsOneUpdate: one update breaks five agents, which booted at two commits. They are one episode: one probe,
// one row with one toast and four additions, one report.
func TestFiveAgentsOneUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	w.branch("v1b", "acme/notes.py", "def write():\n    print('noted')\n")
	w.repo.Git("checkout", "-q", "v1b")
	w.branch("v2", renamed...)
	w.repo.Git("checkout", "-q", "main")

	names := []string{"failover-error", "scout", "herald", "porter", "scribe"}
	var cast []*agent
	for _, n := range names[:2] {
		cast = append(cast, w.broken(n, "mark:preparing"))
	}
	w.update("v1b")
	for _, n := range names[2:] {
		cast = append(cast, w.broken(n, "mark:preparing"))
	}
	w.update("v2")
	w.tell("update")
	for _, a := range cast {
		a.dies()
	}
	if b := w.bells(); b != 5 {
		t.Fatalf("%d doorbells, want five", b)
	}
	w.clock.forward(61 * time.Minute) // now the tree has rested, and one pass has all five
	w.pass()
	w.passUntil("all five to end well", func() bool {
		for _, a := range cast {
			if w.stands(a) != "settled_ok replacement_ok" {
				return false
			}
		}
		return true
	})

	if n := w.prober.starts.Load(); n != 1 {
		t.Errorf("%d interpreters were started to probe one tree for five agents, want 1", n)
	}
	id := w.record(cast[0]).Episode
	boots := map[string]bool{}
	for _, a := range cast {
		if got := w.record(a).Episode; got != id {
			t.Errorf("%s is of episode %s, %s of %s", cast[0].name, id, a.name, got)
		}
		boots[a.run().Boot[0].Key()] = true
	}
	if len(boots) != 2 {
		t.Errorf("the story is wrong: the agents booted at %d commits", len(boots))
	}

	rows := w.rows.Rows()
	if len(rows) != 1 || w.rows.Toasts() != 1 {
		t.Fatalf("%d rows and %d toasts, want one and one:\n%s", len(rows), w.rows.Toasts(), w.rows.Text())
	}
	row := rows[0]
	plus := 0
	for _, n := range row.Notes {
		if strings.HasPrefix(n.Text, "+1") {
			plus++
		}
	}
	if plus != 4 {
		t.Errorf("%d additions, want four:\n%s", plus, w.rows.Text())
	}
	if row.Kind != notify.KindEpisode || row.Glyph != "↻" || row.Tone != notify.Amber || row.Loud {
		t.Errorf("the row is %s %s %s, loud %v", row.Kind, row.Glyph, row.Tone, row.Loud)
	}
	if title := strings.ToLower(row.Title); strings.Contains(title, "fail") || strings.Contains(title, "error") {
		t.Errorf("the title is %q", row.Title)
	}
	for i, n := range row.Notes[:1] {
		if strings.Contains(n.Text, "ImportError") {
			t.Errorf("note %d has the exception's text: %q", i+1, n.Text)
		}
	}
	files, err := w.home.Reports().GetReport(w.ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !strings.Contains(string(files["report.md"]), n) {
			t.Errorf("the report leaves out %s:\n%s", n, files["report.md"])
		}
	}
	if reports := w.reports(); reports != 1 {
		t.Errorf("%d reports, want one", reports)
	}
}

// TestTwoUpdatesTwoEpisodes: equal texts of different updates are different stories.
func TestTwoUpdatesTwoEpisodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	w.repo.Git("checkout", "-q", "v2")
	w.branch("v3", "acme/wire.py", wireSource, "acme/jobs.py", jobs)
	w.repo.Git("checkout", "-q", "v3")
	w.branch("v4", renamed...)
	w.repo.Git("checkout", "-q", "main")
	one := w.broken("one")
	w.update("v2")
	w.tell("update")
	one.dies()
	w.passUntil("one to end well", func() bool { return w.stands(one) == "settled_ok replacement_ok" })
	w.update("v3")
	two := w.start("two", "wait:second", "encode").waits("second")
	w.update("v4")
	w.tell("second")
	two.dies()
	w.passUntil("two to end well", func() bool { return w.stands(two) == "settled_ok replacement_ok" })
	if a, b := w.record(one).Episode, w.record(two).Episode; a == b {
		t.Errorf("two updates are one episode %s", a)
	}
	if w.rows.Toasts() != 2 {
		t.Errorf("%d toasts, want one for each update", w.rows.Toasts())
	}
}

// TestWaitingRunComesAfter: a run that waits for another is decided and launched after it, though it died before.
func TestWaitingRunComesAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	w.branch("v2", renamed...)
	herald := w.startAs("herald", func(s *managed.Spec) { s.WaitsFor = []string{"scout"} }, "wait:update", "encode").waits("update")
	scout := w.start("scout", "wait:later", "encode").waits("later")
	w.update("v2")
	w.tell("update")
	herald.dies()
	w.tell("later")
	scout.dies()
	w.clock.forward(61 * time.Minute)
	res := w.pass()
	if len(res.Outcomes) != 2 || res.Outcomes[0].Name != "scout" || res.Outcomes[1].Name != "herald" {
		t.Errorf("the order is %+v, want scout, then herald, who waits for it", res.Outcomes)
	}
	a, b := w.record(scout).Launch, w.record(herald).Launch
	if a == nil || b == nil || !a.Begun.Before(b.Begun) {
		t.Errorf("the launches began at %+v and %+v, want scout's first", a, b)
	}
}

// TestLeftAloneIsInTheReport: the report of an update also names whom it broke and who was not put back, and why.
func TestLeftAloneIsInTheReport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout, scribe := w.broken("scout", "mark:preparing"), w.broken("scribe", "mark:provider_running")
	w.update("v2")
	w.tell("update")
	scout.dies()
	scribe.dies()
	w.passUntil("both to be decided", func() bool {
		return w.stands(scout) == "settled_ok replacement_ok" && w.record(scribe) != nil && w.record(scribe).Episode != ""
	})
	if a, b := w.record(scout).Episode, w.record(scribe).Episode; a != b {
		t.Fatalf("one update, two episodes: %s and %s", a, b)
	}
	files, err := w.home.Reports().GetReport(w.ctx, w.record(scout).Episode)
	if err != nil {
		t.Fatal(err)
	}
	text := string(files["report.txt"])
	if !strings.Contains(text, "scribe") || !strings.Contains(strings.ToLower(text), "left alone") {
		t.Errorf("the report does not say who was left alone:\n%s", text)
	}
}
