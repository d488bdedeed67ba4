package notify_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/notify"
)

var noon = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

func agentNamed(i int, name string) notify.Agent {
	return notify.Agent{
		Project: "web", Lineage: fmt.Sprintf("lin-%d", 9-i), Name: name, At: noon.Add(time.Duration(i) * time.Second),
		Exception: "ImportError", Message: "ImportError: cannot import name 'Frame'", Now: "running again since 12:00",
	}
}

// sink is the smallest notifier there can be: what Merge is for.
type sink struct {
	rows   map[string]notify.Row
	toasts int
}

func (s *sink) show(r notify.Row) {
	r = notify.Merge(s.rows[r.Key], r)
	if r.Toast {
		s.toasts++
	}
	if s.rows == nil {
		s.rows = map[string]notify.Row{}
	}
	s.rows[r.Key] = r
}

// TestFiveAgentsOneRow is the rule that a person meets: one update, one row, one toast, four "+1".
func TestFiveAgentsOneRow(t *testing.T) {
	t.Parallel()
	facts := notify.EpisodeFacts{ID: "c-1", Root: "acme", Commit: strings.Repeat("ab", 20), Subject: "drop the old frame"}
	var s sink
	for i := range 5 {
		facts.Agents = append([]notify.Agent{agentNamed(i, fmt.Sprintf("agent-%d", i))}, facts.Agents...) // any order
		facts.Report = fmt.Sprintf("report-%d", i)
		s.show(notify.EpisodeRow(facts))
		s.show(notify.EpisodeRow(facts)) // at least once
	}
	if len(s.rows) != 1 || s.toasts != 1 {
		t.Fatalf("%d rows and %d toasts, want one of each", len(s.rows), s.toasts)
	}
	row := s.rows["episode:c-1"]
	plus := 0
	for _, n := range row.Notes {
		if strings.HasPrefix(n.Text, "+1 ") {
			plus++
		}
	}
	if plus != 4 || len(row.Notes) != 6 {
		t.Errorf("%d notes with +1 of %d, want 4 of 6:\n%v", plus, len(row.Notes), row.Notes)
	}
	if row.Title != "5 agents put back after an update of acme" || row.Report != "report-4" {
		t.Errorf("the last one refreshes title and report, got %q and %q", row.Title, row.Report)
	}
	if row.Glyph != "↻" || row.Tone != notify.Amber || row.Loud {
		t.Errorf("the row is not a calm amber one: %+v", row)
	}
	if !strings.HasPrefix(row.Notes[1].Text, "agent-0") || !strings.HasPrefix(row.Notes[2].Text, "+1 agent-1") {
		t.Errorf("the first agent opens the row: %v", row.Notes)
	}
}

// TestToldKeepsTheToast is for sinks that remember nothing.
func TestToldKeepsTheToast(t *testing.T) {
	t.Parallel()
	f := notify.EpisodeFacts{ID: "c-1", Agents: []notify.Agent{agentNamed(0, "a"), agentNamed(1, "b")}}
	if !notify.EpisodeRow(f).Toast {
		t.Error("a first row that tells of two at once has to sound as well")
	}
	f.Told = true
	if notify.EpisodeRow(f).Toast {
		t.Error("a further agent sounds again")
	}
}

// TestTitlesStayCalm draws names with the words in every guise, for every builder.
func TestTitlesStayCalm(t *testing.T) {
	t.Parallel()
	evil := []string{"failover-error", "FAIL", "ErrorBoundary", "fa-il", "e r r o r", "mirror_error", "FaIlUrE", "coder", "err", "or", "ai-lib", "ﬀ", ""}
	word := rapid.SampledFrom(evil)
	rapid.Check(t, func(t *rapid.T) {
		w := func(label string) string {
			if rapid.Bool().Draw(t, label+" any") {
				return rapid.String().Draw(t, label)
			}
			return word.Draw(t, label)
		}
		f := notify.EpisodeFacts{ID: w("id"), Root: w("root"), Commit: w("commit"), Subject: w("subject")}
		for range rapid.IntRange(0, 2).Draw(t, "agents") {
			f.Agents = append(f.Agents, notify.Agent{Name: w("name"), Lineage: w("lineage"), Message: w("message")})
		}
		code := rapid.OneOf(rapid.SampledFrom(codes()), word, rapid.String()).Draw(t, "code")
		e := notify.EscalationFacts{Name: w("name"), Lineage: w("lineage"), Reason: code, Note: w("note"), Message: w("message")}
		for _, r := range []notify.Row{
			notify.EpisodeRow(f), notify.Escalation(e), notify.AnswerRow(notify.AnswerFacts{EscalationFacts: e, Loud: true}),
			notify.PauseRow(notify.PauseFacts{Reason: code, Note: w("note")}),
		} {
			title := strings.ToLower(r.Title)
			if strings.Contains(title, "fail") || strings.Contains(title, "error") {
				t.Fatalf("title %q", r.Title)
			}
			if strings.TrimSpace(r.Title) == "" {
				t.Fatal("no title")
			}
		}
	})
}

func codes() []string {
	var out []string
	for _, i := range notify.Reasons() {
		out = append(out, i.Code)
	}
	return out
}

// TestHiddenNameIsToldHonestly: a name that may not stand in the title is counted there and read in a note.
func TestHiddenNameIsToldHonestly(t *testing.T) {
	t.Parallel()
	row := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1", Root: "acme", Agents: []notify.Agent{agentNamed(0, "failover-error")}})
	if row.Title != "1 agent put back after an update of acme" {
		t.Errorf("title %q", row.Title)
	}
	if !strings.HasPrefix(row.Notes[1].Text, "failover-error: ") {
		t.Errorf("note 2 does not name the agent: %q", row.Notes[1].Text)
	}
	named := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1", Root: "ai-lib", Agents: []notify.Agent{agentNamed(0, "coder")}})
	if named.Title != "coder put back after an update of ai-lib" {
		t.Errorf("an innocent name is hidden: %q", named.Title)
	}
}

// TestExceptionsStandInTheSecondNote looks for the text that ended the run.
func TestExceptionsStandInTheSecondNote(t *testing.T) {
	t.Parallel()
	const text = "ImportError: no 'Frame'"
	e := notify.EscalationFacts{Project: "web", Lineage: "l", Run: "r", Name: "coder", Reason: "no_update_witness", Note: "It ended on " + text, Exception: "ImportError", Message: text, At: noon}
	rows := []notify.Row{
		notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1", Agents: []notify.Agent{{Name: "coder", Message: text}}}),
		notify.Escalation(e), notify.AnswerRow(notify.AnswerFacts{EscalationFacts: e}),
	}
	e.Reason = ""
	rows = append(rows, notify.Escalation(e))
	for _, r := range rows {
		if strings.Contains(r.Title, "ImportError") || len(r.Notes) < 2 || strings.Contains(r.Notes[0].Text, "ImportError") {
			t.Errorf("the exception stands too high: %q %v", r.Title, r.Notes)
		}
		if !strings.Contains(fmt.Sprint(r.Notes[1:]), text) {
			t.Errorf("the exception is not told at all: %v", r.Notes)
		}
	}
}

func TestEscalationsSayHowToGoOn(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"notify_post_provider": "To go on, look at it with: cd '/srv/my work'; then start it again: mulligan retry lin-1",
		"handoff":              "Start it again? Yes: mulligan retry lin-1  No: mulligan dismiss lin-1",
		"phase_unknown":        "mulligan exec --phases -- CMD",
		"already_restarted":    "To start it by hand: mulligan retry lin-1",
		"deferred_expired":     "To start it by hand: mulligan retry lin-1",
	} {
		r := notify.Escalation(notify.EscalationFacts{Project: "web", Lineage: "lin-1", Name: "coder", Reason: reason, Workspace: "/srv/my work", At: noon})
		if !r.Loud || !r.Toast || r.Tone != notify.Red {
			t.Errorf("%s is not loud: %+v", reason, r)
		}
		notes := fmt.Sprint(r.Notes)
		if !strings.Contains(notes, want) || !strings.Contains(notes, "held as it was left: /srv/my work") {
			t.Errorf("%s: %s", reason, notes)
		}
	}
	p := notify.PauseRow(notify.PauseFacts{Since: noon, Reason: "storm_window", Program: "hostctl heal"})
	if !strings.Contains(fmt.Sprint(p.Notes), "hostctl heal resume") || !p.Loud {
		t.Errorf("a pause does not say how to end it: %+v", p)
	}
}

// TestWhatIsOverIsNotToldAsPresent holds that a row which took its outcome says nothing any more that was true only
// before, whatever a sink held under its key.
func TestWhatIsOverIsNotToldAsPresent(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"storm_episode", "storm_window", "storm_loop", "by_hand"} {
		held := notify.Merge(notify.PauseRow(notify.PauseFacts{Since: noon, Reason: reason}), notify.ResumedRow(noon, noon.Add(time.Minute)))
		if notes := fmt.Sprint(held.Notes); strings.Contains(notes, "othing more is started") || strings.Contains(notes, "until it is resumed") {
			t.Errorf("after %s: %s", reason, notes)
		}
	}
	for reason, held := range map[string]bool{
		"relaunch": false, "manual_relaunch": false, "superseded": false, "replacement_ok": false, "deferred_expired": true, "dismissed": true,
	} {
		f := notify.EscalationFacts{Project: "web", Lineage: "lin-1", Run: "run-1", Workspace: "/srv/work", Reason: "paused", At: noon}
		shown := notify.AnswerRow(notify.AnswerFacts{EscalationFacts: f, Loud: true})
		f.Reason, f.At = reason, noon.Add(time.Minute)
		notes := fmt.Sprint(notify.Merge(shown, notify.Outcome("paused", f)).Notes)
		if strings.Contains(notes, "held as it was left") != held || !strings.Contains(notes, "/srv/work") {
			t.Errorf("%s: %s", reason, notes)
		}
	}
}

// TestKeys holds that a key is stable and that no two stories share one.
func TestKeys(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	add := func(name string, r notify.Row) {
		t.Helper()
		if was, ok := seen[r.Key]; ok {
			t.Errorf("%s and %s share the key %q", was, name, r.Key)
		}
		seen[r.Key] = name
	}
	e := func(project, lineage, reason string) notify.EscalationFacts {
		return notify.EscalationFacts{Project: project, Lineage: lineage, Run: lineage, Reason: reason}
	}
	add("a/b c", notify.Escalation(e("a/b", "c", "handoff")))
	add("a b/c", notify.Escalation(e("a", "b/c", "handoff")))
	add("a b%2Fc", notify.Escalation(e("a", "b%2Fc", "handoff")))
	add("other reason", notify.Escalation(e("a", "b/c", "auth")))
	add("answer", notify.AnswerRow(notify.AnswerFacts{EscalationFacts: e("a", "b/c", "auth")}))
	add("episode", notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1"}))
	add("pause", notify.PauseRow(notify.PauseFacts{Since: noon}))
	add("next pause", notify.PauseRow(notify.PauseFacts{Since: noon.Add(time.Second)}))
	again := e("a", "b/c", "handoff")
	again.Name, again.Note, again.At = "renamed", "more is known", noon
	if _, ok := seen[notify.Escalation(again).Key]; !ok {
		t.Error("the key changed between two deliveries")
	}
}

// TestBuildersRedact puts a token into every field.
func TestBuildersRedact(t *testing.T) {
	t.Parallel()
	const s = "ghp_0123456789abcdefghijABCDEFGHIJ012345 \x1b[2J"
	e := notify.EscalationFacts{Project: s, Name: s, Reason: "handoff", Note: s, Workspace: "/w/" + s, Exception: s, Message: s, Target: s, Lineage: "l", Run: "r"}
	for _, r := range []notify.Row{
		notify.EpisodeRow(notify.EpisodeFacts{ID: "x", Root: s, Commit: s, Subject: s, Agents: []notify.Agent{{Name: s, Exception: s, Message: s, Now: s}, {Lineage: s}}}),
		notify.Escalation(e), notify.AnswerRow(notify.AnswerFacts{EscalationFacts: e}), notify.PauseRow(notify.PauseFacts{Reason: s, Note: s}),
		notify.Escalation(notify.EscalationFacts{Reason: s}), {Title: notify.Reason(s).Title + notify.Reason(s).Text},
	} {
		text := r.Title
		for _, n := range r.Notes {
			text += n.Text
		}
		if strings.Contains(text, "0123456789abcdefghij") || strings.Contains(text, "\x1b") {
			t.Errorf("shown as it came: %q", text)
		}
	}
}

// TestMergeLosesNothing delivers rows of one key in any order and any number of times.
func TestMergeLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type written struct {
			at   time.Time
			text string
		}
		newest := map[string]written{} // the twin: the newest text of each note
		var held notify.Row
		toasts := 0
		var last time.Time
		for i := range rapid.IntRange(1, 12).Draw(t, "deliveries") {
			at := noon.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "at")) * time.Second)
			r := notify.Row{Key: "k", Title: strconv.Itoa(i), At: at, Toast: true}
			stale := i > 0 && at.Before(last)
			for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 4, rapid.ID[string]).Draw(t, "notes") {
				text := fmt.Sprintf("%s%d", id, i)
				r.Notes = append(r.Notes, notify.Note{ID: id, Text: text})
				if _, ok := newest[id]; !ok || !stale {
					newest[id] = written{at, text}
				}
			}
			before := append([]notify.Note(nil), held.Notes...)
			next := notify.Merge(held, r)
			if d := cmp.Diff(before, append([]notify.Note(nil), held.Notes...)); d != "" {
				t.Fatalf("Merge altered what was held: %s", d)
			}
			held = next
			if held.Toast {
				toasts++
			}
			if !stale {
				last = at
				if held.Title != r.Title {
					t.Fatalf("a newer row left the title at %q", held.Title)
				}
			} else if held.Title == r.Title || held.At.Before(last) {
				t.Fatal("an older row took the title back")
			}
		}
		if toasts != 1 {
			t.Fatalf("%d toasts", toasts)
		}
		got := map[string]string{}
		for _, n := range held.Notes {
			got[n.ID] = n.Text
		}
		if len(got) != len(held.Notes) || len(got) != len(newest) {
			t.Fatalf("notes %v, want one each of %v", held.Notes, newest)
		}
		for id, w := range newest {
			if got[id] != w.text {
				t.Fatalf("note %s is %q, want %q", id, got[id], w.text)
			}
		}
	})
}

func TestMergeKeepsKeysApart(t *testing.T) {
	t.Parallel()
	held, came := notify.Row{Key: "a", Title: "x", Notes: []notify.Note{{ID: "n", Text: "x"}}}, notify.Row{Key: "b", Title: "y", Toast: true}
	if d := cmp.Diff(came, notify.Merge(held, came)); d != "" {
		t.Errorf("rows of two keys were combined: %s", d)
	}
}

func TestReasons(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, i := range notify.Reasons() {
		if seen[i.Code] {
			t.Errorf("%s is there twice", i.Code)
		}
		seen[i.Code] = true
		low := strings.ToLower(i.Title)
		if i.Title == "" || strings.HasSuffix(i.Title, ".") || strings.Contains(low, "fail") || strings.Contains(low, "error") {
			t.Errorf("%s: title %q", i.Code, i.Title)
		}
		if !strings.HasSuffix(i.Text, ".") || i.Doc != "notify/reasons.md#"+i.Code || !i.Known {
			t.Errorf("%s: %+v", i.Code, i)
		}
		switch i.Severity {
		case notify.Low, notify.Medium, notify.High:
		default:
			t.Errorf("%s: severity %q", i.Code, i.Severity)
		}
		if notify.Reason(i.Code) != i {
			t.Errorf("Reason(%s) says something else", i.Code)
		}
	}
	got := notify.Reason("quota_of_the_moon")
	if got.Title != "Quota of the moon" || got.Known || !strings.Contains(got.Text, "quota_of_the_moon") {
		t.Errorf("an unknown code: %+v", got)
	}
	if notify.Reason("") != (notify.Info{}) {
		t.Error("no code is no reason")
	}
}

// TestEveryCodeHasAText reads the codes where they are declared, so that a new one cannot go without words.
func TestEveryCodeHasAText(t *testing.T) {
	t.Parallel()
	for file, kinds := range map[string]string{
		"../restart/policy/codes.go": "", // untyped constants
		"../classify/verdict.go":     "Reason",
	} {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		ast.Inspect(f, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			kind := ""
			if id, ok := v.Type.(*ast.Ident); ok {
				kind = id.Name
			}
			lit, ok := v.Values[0].(*ast.BasicLit)
			if kind != kinds || !ok || lit.Kind != token.STRING {
				return true
			}
			code, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			found++
			if !notify.Reason(code).Known {
				t.Errorf("%s declares %q, and nothing says what it means", file, code)
			}
			return true
		})
		if found == 0 {
			t.Errorf("%s declares no codes any more: the test looks in the wrong place", file)
		}
	}
}

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"  a\n\tb  ": "a b", "a\x1b[31mb": "a [31mb", "x\u202ey": "xy", "\xff": "\ufffd", "password=hunter2": "password=[redacted]",
	} {
		if got := notify.Line(in, 0); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
	if got := notify.Line("abcdef", 4); got != "abc…" {
		t.Errorf("cut to %q", got)
	}
	if got := notify.Exact("cd '/a  b'\n\x1b"); got != "cd '/a  b'\ufffd\ufffd" {
		t.Errorf("Exact: %q", got)
	}
	if got := notify.Shell("it's"); got != `'it'\''s'` {
		t.Errorf("Shell: %s", got)
	}
}
