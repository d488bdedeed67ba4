package report_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares with testdata/name; -update rewrites it, and the diff is reviewed.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", name, d)
	}
}

func options() report.Options { return report.Options{Now: clock(20, 0)} }

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

func theReport(t *testing.T) report.Report {
	t.Helper()
	eps := episode.Group(story())
	if len(eps) != 1 {
		t.Fatalf("%d episodes, want 1", len(eps))
	}
	return report.Build(eps[0], row(), options())
}

func TestGolden(t *testing.T) {
	t.Parallel()
	r := theReport(t)
	golden(t, "report.txt", r.Text(report.Style{}))
	golden(t, "report-60.txt", r.Text(report.Style{Width: 60}))
	golden(t, "report-color.txt", r.Text(report.Style{Color: true}))
	golden(t, "report.md", r.Markdown())
	golden(t, "report.json", asJSON(t, r))

	cards := map[string]report.Card{"answer": report.BuildAnswerCard(answers()[0], options())}
	for _, m := range story() {
		cards[string(m.State)] = report.BuildCard(m, options())
	}
	for name, c := range cards {
		golden(t, "card-"+name+".txt", c.Text(report.Style{}))
	}
	golden(t, "card.json", asJSON(t, cards[string(ledger.SettledOK)]))

	l := theList()
	golden(t, "list.txt", l.Text(report.Style{}))
	golden(t, "list-50.txt", l.Text(report.Style{Width: 50}))
	golden(t, "list.json", asJSON(t, l))
}

func theList() report.List {
	records := story()
	loose := agent("lin-g", "fresh", oldRev, ledger.Claimed, "", clock(19, 0))
	loose.Episode = ""
	other := agent("lin-h", "agent🙂", oldRev, ledger.Declined, "no_update_witness", clock(1, 0))
	other.Episode, other.Project, other.Facts.Witnesses = "q-1-lib-00000000", "api", nil
	alone := agent("lin-i", "soloist", oldRev, ledger.Declined, "no_update_witness", clock(3, 0))
	alone.Episode, alone.Facts.Witnesses = "l-web-lin-i-00000000", nil
	damaged := []*ledger.DamageError{{Path: "ledger/web__lin-z.json", Why: "the checksum does not match"}}
	return report.BuildList(append(records, loose, other, alone), answers(), damaged, options())
}

// TestWidthIsKept holds the promise that text fits: only lines that a person pastes may be longer.
func TestWidthIsKept(t *testing.T) {
	t.Parallel()
	for _, width := range []int{40, 57, 80, 120, 200} {
		s := report.Style{Width: width}
		long := agent("lin-l", strings.Repeat("翻訳", 50)+"x", oldRev, ledger.Launched, "relaunch", clock(2, 0))
		texts := []string{report.BuildCard(long, options()).Text(s), report.BuildList([]ledger.Record{long}, nil, nil, options()).Text(s), theReport(t).Text(s), theList().Text(s)}
		for _, m := range story() {
			m.Facts.Death.Workspace, m.Facts.Death.Log, m.Evidence = "", "", ""
			if m.State == ledger.Declined || m.State == ledger.SettledFailed {
				continue
			}
			texts = append(texts, report.BuildCard(m, options()).Text(s))
		}
		for _, text := range texts {
			for l := range strings.Lines(text) {
				l = strings.TrimSuffix(l, "\n")
				if strings.Contains(l, "mulligan retry") || strings.Contains(l, "workspace: ") {
					continue
				}
				if w := report.Width(l); w > width {
					t.Errorf("width %d: a line takes %d columns: %q", width, w, l)
				}
				if strings.TrimRight(l, " ") != l {
					t.Errorf("width %d: a line ends in spaces: %q", width, l)
				}
			}
		}
	}
}

// TestNothingForeignActs feeds every field with text that would act on a terminal, on Markdown or give a secret away.
func TestNothingForeignActs(t *testing.T) {
	t.Parallel()
	evil := "x\x1b[31m\x07\n| <b> `c` \u202e ghp_0123456789abcdefghijABCDEFGHIJ012345"
	m := agent(evil, evil, evil, ledger.Declined, evil, clock(1, 0))
	m.Project, m.Note, m.Evidence = evil, evil, evil
	m.Facts.Death.Phase, m.Facts.Death.Workspace, m.Facts.Death.Log, m.Facts.Death.Signal = evil, evil, evil, evil
	m.Facts.Signature = ledger.Signature{Family: evil, Module: evil, Symbol: evil, Root: evil, Message: evil, Exception: evil}
	m.Facts.Witnesses[0].Kind, m.Facts.Witnesses[0].Detail = evil, evil
	m.Facts.Culprit = &ledger.Culprit{Root: evil, Commit: evil, Subject: evil, Path: evil, Name: evil}
	m.Facts.Probe = &ledger.Probe{Outcome: evil, Detail: evil, Modules: []string{evil}}
	m.Launch = &ledger.Launch{ID: evil, Run: evil}
	m.History[0].Note, m.History[0].Reason = evil, evil
	alive := m
	alive.State = ledger.Deferred
	a := answers()[0]
	a.Key, a.Name, a.Run, a.Reason, a.Text = m.Key, evil, evil, evil, evil
	j := row()
	j.ID, j.Command, j.Status = evil, []string{evil}, "x"
	r := report.Build(episode.Group([]ledger.Record{m, alive})[0], j, options())
	c, ac := report.BuildCard(m, options()), report.BuildAnswerCard(a, options())
	l := report.BuildList([]ledger.Record{m, alive}, []ledger.Answer{a}, []*ledger.DamageError{{Path: evil, Why: evil}}, options())
	for name, text := range map[string]string{
		"report": r.Text(report.Style{}), "markdown": r.Markdown(), "report json": asJSON(t, r), "card": c.Text(report.Style{}),
		"card json": asJSON(t, c), "answer": ac.Text(report.Style{}), "answer json": asJSON(t, ac), "list": l.Text(report.Style{}), "list json": asJSON(t, l),
	} {
		for _, bad := range []string{"\x1b", "\x07", "\u202e", "ghp_", `\u001b`, `\u0007`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s lets %q through:\n%s", name, bad, text)
			}
		}
	}
	for l := range strings.Lines(r.Markdown()) {
		// The indented lines are code spans, in which nothing acts.
		if !strings.HasPrefix(l, "  - ") && strings.Contains(l, "<b>") {
			t.Errorf("HTML gets through the Markdown: %s", l)
		}
	}
}

// TestAnEpisodeOfOneIsNoUpdate holds that nothing is said of an update where none is known.
func TestAnEpisodeOfOneIsNoUpdate(t *testing.T) {
	t.Parallel()
	m := agent("lin-i", "soloist", oldRev, ledger.Declined, "no_update_witness", clock(3, 0))
	m.Episode, m.Facts.Witnesses = "l-web-lin-i-00000000", nil
	r := report.Build(episode.Group([]ledger.Record{m})[0], nil, options())
	if want := "1 agent broke, and no update is known to have done it: 1 left alone"; r.Headline != want {
		t.Errorf("headline %q, want %q", r.Headline, want)
	}
	l := report.BuildList([]ledger.Record{m}, nil, nil, options())
	if len(l.Episodes) != 0 || len(l.NoEpisode) != 1 || l.NoEpisode[0].Episode != m.Episode {
		t.Errorf("the list is %+v", l)
	}
}

// TestEveryStateHasASentence also holds the calm of it: a state nobody knows of is shown as well.
func TestEveryStateHasASentence(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, st := range []ledger.State{
		ledger.Claimed, ledger.Deferred, ledger.Declined, ledger.Launching, ledger.Launched, ledger.SettledOK, ledger.SettledFailed, "from_the_future",
	} {
		s := report.Now(agent("l", "n", oldRev, st, "not_quiet", clock(1, 0)), options())
		if s == "" || seen[s] {
			t.Errorf("state %s: sentence %q is empty or another state's", st, s)
		}
		seen[s] = true
	}
}

func TestWaitingNamesItsEnd(t *testing.T) {
	t.Parallel()
	m := agent("l", "n", oldRev, ledger.Deferred, "not_quiet", clock(2, 0))
	if got, want := report.Now(m, options()), "waiting until 14:32 at most: the code is still changing"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	o := options()
	o.Paused = true
	if got := report.Now(m, o); !strings.Contains(got, "paused") || strings.Contains(got, "14:32") {
		t.Errorf("a pause stops the clock, but it reads %q", got)
	}
}

func TestWidth(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]int{
		"": 0, "abc": 3, "é": 1, "e\u0301": 1, "翻訳": 4, "かな": 4, "ｆｕｌｌ": 8, "한글": 4, "🙂": 2, "↻ a": 3, "•": 1, "→": 1, "…": 1, "\u200b": 0, "日本a": 5,
	} {
		if got := report.Width(s); got != want {
			t.Errorf("Width(%q) = %d, want %d", s, got, want)
		}
	}
}

// TestHeadlineIsCalm uses the agent whose name has both words in it.
func TestHeadlineIsCalm(t *testing.T) {
	t.Parallel()
	h := strings.ToLower(theReport(t).Headline)
	if strings.Contains(h, "fail") || strings.Contains(h, "error") {
		t.Errorf("headline %q", h)
	}
	if !strings.Contains(theReport(t).Prevention, "swap -- CMD") {
		t.Error("the prevention line names no command")
	}
}

// TestBadEndsAreToldApart holds that no view says of a replacement that it broke again when it did something else.
func TestBadEndsAreToldApart(t *testing.T) {
	t.Parallel()
	lost := agent("lin-1", "lost", oldRev, ledger.SettledFailed, "already_restarted", clock(2, 14))
	killed := agent("lin-2", "killed", oldRev, ledger.SettledFailed, "already_restarted", clock(2, 15))
	absent := agent("lin-3", "absent", oldRev, ledger.SettledFailed, "already_restarted", clock(2, 16))
	for r, reason := range map[*ledger.Record]string{&lost: "replacement_lost", &killed: "killed", &absent: "launch_aborted"} {
		r.Reason, r.History[len(r.History)-1].Reason = reason, reason
	}
	absent.Launch.Bound = nil
	absent.History[len(absent.History)-1].Event = ledger.Abort
	records := []ledger.Record{lost, killed, absent}
	rep := report.Build(episode.Group(records)[0], nil, report.Options{})
	texts := []string{rep.Text(report.Style{}), rep.Markdown(), report.BuildList(records, nil, nil, report.Options{}).Text(report.Style{})}
	for i, text := range texts {
		if !strings.Contains(text, "1 never came up, 1 gone, 1 ended by a person") {
			t.Errorf("view %d counts otherwise:\n%s", i, text)
		}
	}
	for _, r := range records {
		texts = append(texts, report.BuildCard(r, report.Options{}).Text(report.Style{}))
	}
	for i, text := range texts {
		if strings.Contains(text, "broke again") {
			t.Errorf("view %d says that something broke again:\n%s", i, text)
		}
	}
}

// TestLongNameLeavesTheOthersReadable holds that one name of hundreds of characters presses no other row together.
func TestLongNameLeavesTheOthersReadable(t *testing.T) {
	t.Parallel()
	records := []ledger.Record{
		agent("lin-1", "coder", oldRev, ledger.SettledOK, "replacement_ok", clock(2, 14)),
		agent("lin-2", strings.Repeat("x", 300), oldRev, ledger.SettledOK, "replacement_ok", clock(2, 15)),
	}
	list := report.BuildList(records, nil, nil, report.Options{})
	if n := strings.Count(list.Text(report.Style{}), "finished at 2026-"); n != 2 {
		t.Errorf("%d of 2 rows are whole:\n%s", n, list.Text(report.Style{}))
	}
	if name := list.Episodes[0].Lines[1].Name; len(name) < 100 {
		t.Errorf("a program that reads the list gets %q", name)
	}
}
