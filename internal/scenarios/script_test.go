package scenarios

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var rewrite = flag.Bool("update", false, "rewrite what the screenplays show")

// script is a screenplay as it lies on disk.
type script struct {
	name  string
	head  string // what it promises
	lines []line
	texts []section
}

// line is a command or a remark, with what was written below it.
type line struct {
	text   string
	shows  []string
	number int
}

func (l line) command() bool { return l.text != "" && !strings.HasPrefix(l.text, "#") }

type section struct{ name, body string }

// parse reads a txtar archive: a comment, and sections that begin with "-- NAME --".
func parse(name, src string) (script, error) {
	s := script{name: name}
	var sections []section
	for raw := range strings.Lines(src) {
		if title, ok := strings.CutPrefix(strings.TrimSpace(raw), "-- "); ok && strings.HasSuffix(title, " --") {
			sections = append(sections, section{name: strings.TrimSuffix(title, " --")})
			continue
		}
		if len(sections) == 0 {
			s.head += raw
			continue
		}
		sections[len(sections)-1].body += raw
	}
	if strings.TrimSpace(s.head) == "" {
		return s, fmt.Errorf("%s: it does not say what it promises", name)
	}
	if len(sections) == 0 || sections[0].name != "play" {
		return s, fmt.Errorf("%s: the first section is not the play", name)
	}
	s.texts = sections[1:]
	for i, l := range strings.Split(strings.TrimRight(sections[0].body, "\n"), "\n") {
		if shown, ok := strings.CutPrefix(l, "  "); ok {
			if len(s.lines) == 0 || !s.lines[len(s.lines)-1].command() {
				return s, fmt.Errorf("%s: line %d of the play shows something that no command did", name, i+1)
			}
			last := &s.lines[len(s.lines)-1]
			last.shows = append(last.shows, shown)
			continue
		}
		s.lines = append(s.lines, line{text: strings.TrimRight(l, " "), number: i + 1})
	}
	return s, nil
}

// String is the screenplay as it is written.
func (s script) String() string {
	var b strings.Builder
	b.WriteString(s.head + "-- play --\n")
	for _, l := range s.lines {
		b.WriteString(l.text + "\n")
		for _, x := range l.shows {
			b.WriteString("  " + x + "\n")
		}
	}
	for _, t := range s.texts {
		b.WriteString("-- " + t.name + " --\n" + t.body)
	}
	return b.String()
}

// filesOnly reports a play that memory cannot have.
func (s script) filesOnly() bool {
	for _, l := range s.lines {
		if l.text == "# files only" {
			return true
		}
	}
	return false
}

// damages reports a play in which somebody damages a file: it need not come to an end.
func (s script) damages() bool {
	for _, l := range s.lines {
		if strings.HasPrefix(l.text, "tear ") {
			return true
		}
	}
	return false
}

func load(t *testing.T) (all []script) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no screenplays: %v", err)
	}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		s, err := parse(strings.TrimSuffix(filepath.Base(p), ".txtar"), string(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	return all
}

// TestScreenplays plays each of them on every kind of store, and compares what is shown line by line.
func TestScreenplays(t *testing.T) {
	t.Parallel()
	for _, s := range load(t) {
		for _, kind := range kinds {
			if kind == inMemory && s.filesOnly() {
				continue
			}
			t.Run(s.name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				p := newPlay(t, s, newStorage(t, kind))
				got := s
				got.lines = nil
				for _, l := range s.lines {
					want := l.shows
					if l.command() {
						l.shows = p.do(l)
					}
					got.lines = append(got.lines, l)
					if a, b := strings.Join(l.shows, "\n"), strings.Join(want, "\n"); a != b && !*rewrite {
						t.Errorf("line %d: %s\nshows\n%s\nwant\n%s", l.number, l.text, a, b)
					}
				}
				p.sound()
				if *rewrite && (kind == inMemory || s.filesOnly()) {
					if err := os.WriteFile(filepath.Join("testdata", s.name+".txtar"), []byte(got.String()), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestNothingIsMissing: each rule of the table has a play that names it, and each transition of the ledger's machine is
// shown in one.
func TestNothingIsMissing(t *testing.T) {
	t.Parallel()
	missing := map[string]bool{}
	for n := range 14 {
		missing[fmt.Sprintf("rule %d", n+1)] = true
	}
	for _, e := range []string{"claim", "claimed takeover", "claimed defer", "claimed decline", "claimed begin_launch", "deferred claim",
		"deferred decline", "launching takeover", "launching bind", "launching abort", "launched settle_ok", "launched settle_failed"} {
		missing[e] = true
	}
	leads := map[string]string{"claim": "claimed", "defer": "deferred", "decline": "declined", "begin_launch": "launching", "bind": "launched"}
	for _, s := range load(t) {
		head := strings.ReplaceAll(strings.ToLower(s.head), "rules 3 to 6", "rule 3, rule 4, rule 5, rule 6")
		for n := range 14 {
			if name := fmt.Sprintf("rule %d", n+1); regexp.MustCompile(name + `\b`).MatchString(head) {
				delete(missing, name)
			}
		}
		for _, l := range s.lines {
			state := ""
			for _, shown := range l.shows {
				event, _, _ := strings.Cut(strings.TrimSpace(shown), " ")
				if l.text != "ledger" || !strings.HasPrefix(shown, "  ") {
					state = ""
					continue
				}
				delete(missing, strings.TrimSpace(state+" "+event))
				if to := leads[event]; to != "" {
					state = to
				}
			}
		}
	}
	for what := range missing {
		t.Errorf("no play shows %s", what)
	}
}

// TestParse: what is read is what was written, and what is no screenplay is refused.
func TestParse(t *testing.T) {
	t.Parallel()
	for _, s := range load(t) {
		b, err := os.ReadFile(filepath.Join("testdata", s.name+".txtar"))
		if err != nil {
			t.Fatal(err)
		}
		if s.String() != string(b) {
			t.Errorf("%s comes back as\n%s", s.name, s)
		}
	}
	for _, bad := range []string{"", "-- play --\npass\n", "a promise\n-- text --\n", "a promise\n-- play --\n  shown\n", "a promise\n-- play --\n# remark\n  shown\n"} {
		if _, err := parse("bad", bad); err == nil {
			t.Errorf("%q is taken for a screenplay", bad)
		}
	}
}
