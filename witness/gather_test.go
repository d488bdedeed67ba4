package witness_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// past is a history in memory: revisions in a line, each a set of files.
type past struct {
	revs    []rev
	err     error                            // of every question
	changes func([]witness.Change)           // sets the change times
	commits func([]string, []witness.Commit) // sees what was asked
}

type rev struct {
	name  string
	from  stamp.Time
	files map[string]string
}

func (p *past) Identify(context.Context, witness.Root) (witness.Identity, error) {
	return witness.Identity{}, errors.New("not asked for in these tests")
}

func (p *past) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, errors.New("not asked for in these tests")
}

func (p *past) At(_ context.Context, _ witness.Root, t stamp.Time) (string, stamp.Window, bool, error) {
	for i := len(p.revs) - 1; i >= 0; i-- {
		if p.revs[i].from.Before(t) {
			in := stamp.Window{From: p.revs[i].from}
			if i+1 < len(p.revs) {
				in.To = p.revs[i+1].from
			}
			return p.revs[i].name, in, true, p.err
		}
	}
	return "", stamp.Window{}, false, p.err
}

func (p *past) rev(name string) int {
	return slices.IndexFunc(p.revs, func(r rev) bool { return r.name == name })
}

func (p *past) Changed(_ context.Context, _ witness.Root, from, to string) ([]witness.Change, error) {
	if p.err != nil {
		return nil, p.err
	}
	a, b := p.revs[p.rev(from)].files, p.revs[p.rev(to)].files
	var out []witness.Change
	for f, was := range a {
		if is, ok := b[f]; !ok || is != was {
			out = append(out, witness.Change{Path: f, Deleted: !ok})
		}
	}
	for f := range b {
		if _, ok := a[f]; !ok {
			out = append(out, witness.Change{Path: f})
		}
	}
	if p.changes != nil {
		p.changes(out)
	}
	return out, nil
}

func (p *past) Read(_ context.Context, _ witness.Root, name, path string) ([]byte, bool, error) {
	if p.err != nil {
		return nil, false, p.err
	}
	text, ok := p.revs[p.rev(name)].files[path]
	return []byte(text), ok, nil
}

func (p *past) Commits(_ context.Context, _ witness.Root, from, to string, paths []string, limit int) ([]witness.Commit, error) {
	if p.err != nil {
		return nil, p.err
	}
	var out []witness.Commit
	for i := p.rev(to); i > p.rev(from) && len(out) < limit; i-- {
		out = append(out, witness.Commit{Revision: p.revs[i].name, Parents: []string{p.revs[i-1].name}, Subject: "commit " + p.revs[i].name, When: p.revs[i].from})
	}
	if p.commits != nil {
		p.commits(paths, out)
	}
	return out, nil
}

// words is a runtime whose modules are single files and bind the words in them.
type words struct{}

func (words) Files(module string) []string {
	return []string{strings.ReplaceAll(module, ".", "/") + ".py"}
}

func (words) Binds(src []byte, name string) bool {
	return slices.Contains(strings.Fields(string(src)), name)
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func exact(s float64) stamp.Time {
	return stamp.Wall(noon.Add(time.Duration(s*float64(time.Second))), 0)
}

func coarse(s int) stamp.Time {
	return stamp.Wall(noon.Add(time.Duration(s)*time.Second), time.Second)
}

func root(dirs ...string) witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: dirs, Modules: []string{"acme"}}, Kind: "memory", Runtime: "words"}
}

// request is a run that booted on revision a at second 100 and died at second 200 because acme.wire lacks Frame.
func request(p *past) witness.Request {
	return witness.Request{
		Verdict: classify.Verdict{Runtime: "words", Module: "acme.wire", Symbol: "Frame", Root: "acme", Asked: []string{"acme"}},
		Roots:   []witness.Root{root("/srv/acme")},
		Boot:    []witness.Identity{{Root: "acme", Kind: "memory", Revision: "a"}},
		Window:  stamp.Window{From: exact(100), To: exact(200)},
		Sources: map[string]witness.Source{"memory": p},
		Modules: map[string]witness.Modules{"words": words{}},
	}
}

// twoRevisions move from a to b at the given second; b lacks Frame.
func twoRevisions(second int) *past {
	return &past{revs: []rev{
		{"a", coarse(0), map[string]string{"acme/wire.py": "Frame Codec"}},
		{"b", coarse(second), map[string]string{"acme/wire.py": "Codec"}},
	}}
}

func gather(t *testing.T, q witness.Request) witness.Findings {
	t.Helper()
	f, err := witness.Gather(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func dump(f witness.Findings) string {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func kinds(f witness.Findings) string {
	var out []string
	for _, e := range f.Evidence {
		out = append(out, string(e.Kind))
	}
	return strings.Join(out, " ")
}

// A move that is known only to the second, in the second of the death, is told by the change times of its files.
func TestMoveInTheSecondOfTheDeath(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		death   float64
		changed stamp.Time
		want    string
	}{
		{"files changed before", 200.5, exact(200.2), "boot_identity file_proof"},
		{"files changed at the very moment", 200.5, exact(200.5), "boot_identity file_proof"},
		{"files changed after", 200.5, exact(200.7), ""},
		{"files changed before the boot", 200.5, exact(99), ""},
		{"the disk does not tell", 200.5, stamp.Time{}, ""},
		{"the second is over: the move is certain", 201.5, stamp.Time{}, "boot_identity file_proof"},
	}
	for _, tt := range tests {
		p := twoRevisions(200)
		p.changes = func(c []witness.Change) {
			for i := range c {
				c[i].At = tt.changed
			}
		}
		q := request(p)
		q.Window.To = exact(tt.death)
		if f := gather(t, q); kinds(f) != tt.want {
			t.Errorf("%s: witnesses are %q, want %q\n%s", tt.name, kinds(f), tt.want, dump(f))
		}
	}
}

// A move that changes nothing in the root is not the update that spans the death; the one after it may be.
func TestSpanningUpdateBehindAMoveElsewhere(t *testing.T) {
	t.Parallel()
	p := twoRevisions(203)
	p.revs = []rev{p.revs[0], {"a2", coarse(201), p.revs[0].files}, p.revs[1]}
	p.changes = func(c []witness.Change) {
		for i := range c {
			c[i].At = exact(150)
		}
	}
	f := gather(t, request(p))
	if kinds(f) != "boot_identity file_proof" || f.Evidence[0].To != "b" {
		t.Errorf("findings are %s, want an update to b", dump(f))
	}
}

// The earliest of the changed files counts, but none that was there before the boot.
func TestEarliestChangeCounts(t *testing.T) {
	t.Parallel()
	p := &past{revs: []rev{
		{"a", coarse(0), map[string]string{"acme/wire.py": "Frame", "acme/x.py": "1", "acme/y.py": "1"}},
		{"b", coarse(300), map[string]string{"acme/wire.py": "", "acme/x.py": "2", "acme/y.py": "2"}},
	}}
	times := map[string]stamp.Time{"acme/wire.py": exact(250), "acme/x.py": exact(50), "acme/y.py": exact(150)}
	p.changes = func(c []witness.Change) {
		for i := range c {
			c[i].At = times[c[i].Path]
		}
	}
	f := gather(t, request(p))
	if kinds(f) != "boot_identity file_proof" || f.Evidence[0].When.From != exact(150) {
		t.Errorf("findings are %s, want an update from second 150", dump(f))
	}
	times["acme/y.py"] = exact(210)
	if f := gather(t, request(p)); f.Holds() {
		t.Errorf("findings are %s, want none: what changed early was there before the boot", dump(f))
	}
}

func TestEveryAbsenceHasAReason(t *testing.T) {
	t.Parallel()
	death := []witness.Identity{{Root: "acme", Kind: "memory", Revision: "a"}}
	tests := []struct {
		name   string
		change func(*witness.Request)
		whys   []string
	}{
		{"no managed root in the failure", func(q *witness.Request) { q.Verdict.Root, q.Verdict.Asked = "", nil }, []string{"names no managed root"}},
		{"a root that was not declared", func(q *witness.Request) { q.Roots = nil }, []string{"names no root that the run declared"}},
		{"no boot time", func(q *witness.Request) { q.Window.From = stamp.Time{} }, []string{"the moment of the boot is not known"}},
		{"no death time", func(q *witness.Request) { q.Window.To = stamp.Time{} }, []string{"the moment of the death is not known"}},
		{"a clock jump", func(q *witness.Request) { q.Window.To = exact(50) }, []string{"the clock jumped: the death (2026-05-04T12:00:50.000Z) lies before the boot (2026-05-04T12:01:40.000Z)"}},
		{"an unknown boot", func(q *witness.Request) { q.Boot[0] = witness.Identity{Root: "acme", Unknown: "no git"} }, []string{"the identity at the boot could not be read: no git"}},
		{"no boot identity of this root", func(q *witness.Request) { q.Boot[0].Root = "other" }, []string{"the identity at the boot was not recorded"}},
		{"no source", func(q *witness.Request) { q.Sources = nil }, []string{"was not recorded, and a root of kind \"memory\" has no memory", "keeps no old files"}},
		{"a failing source", func(q *witness.Request) {
			q.Sources = map[string]witness.Source{"memory": &past{err: errors.New("disk on fire")}}
		}, []string{"disk on fire"}},
		{"an unreadable death", func(q *witness.Request) {
			q.Death = []witness.Identity{{Root: "acme", Unknown: "it was late"}}
			q.Window.To = exact(-50)
			q.Window.From = exact(-100)
		}, []string{"could not be read (it was late)", "does not reach back"}},
		{"no runtime", func(q *witness.Request) { q.Modules, q.Death = nil, death }, []string{"nothing is known of how runtime \"words\" finds a module"}},
		{"no module", func(q *witness.Request) { q.Verdict.Module, q.Death = "", death }, []string{"names no managed module"}},
		{"no owner of the module", func(q *witness.Request) { q.Verdict.Root, q.Death = "", death }, []string{"no declared root owns the module"}},
		{"one dirty file", func(q *witness.Request) {
			q.Boot[0].Dirty = []witness.File{{Path: "acme/wire.py", Digest: "d"}}
			q.Death = []witness.Identity{q.Boot[0]}
		}, []string{"held a with 1 changed file at the boot and at the death"}},
		{"nothing changed", func(q *witness.Request) { q.Death = death }, []string{"held a at the boot and at the death", "existed at the boot and at the death", "no update of this root"}},
	}
	for _, tt := range tests {
		q := request(twoRevisions(500))
		tt.change(&q)
		f := gather(t, q)
		if f.Holds() || f.ClockJump != (tt.name == "a clock jump") {
			t.Errorf("%s: findings are %s", tt.name, dump(f))
		}
		for _, k := range []witness.Kind{witness.BootIdentity, witness.UpdateJournal, witness.FileProof} {
			if !slices.ContainsFunc(f.Absent, func(a witness.Absence) bool { return a.Kind == k && a.Why != "" }) {
				t.Errorf("%s: nothing says why %s is absent\n%s", tt.name, k, dump(f))
			}
		}
		for _, why := range tt.whys {
			if !slices.ContainsFunc(f.Absent, func(a witness.Absence) bool { return strings.Contains(a.Why, why) }) {
				t.Errorf("%s: no absence says %q\n%s", tt.name, why, dump(f))
			}
		}
	}
}

// A witness belongs to the root that lacks the name or to one whose code asked for it; an update of a third root is
// none.
func TestWitnessesAreBoundToTheRootsOfTheFailure(t *testing.T) {
	t.Parallel()
	p := twoRevisions(150)
	q := request(p)
	third := root("/srv/third")
	third.Name = "third"
	q.Roots = append(q.Roots, third)
	q.Boot = append(q.Boot, witness.Identity{Root: "third", Kind: "memory", Revision: "a"})
	q.Verdict.Root, q.Verdict.Asked = "acme", []string{"third"}
	f := gather(t, q)
	if kinds(f) != "boot_identity file_proof boot_identity" || f.Evidence[0].Root != "acme" || f.Evidence[2].Root != "third" {
		t.Errorf("owner and asker: %s", dump(f))
	}
	q.Verdict.Asked = nil
	for _, e := range gather(t, q).Evidence {
		if e.Root == "third" {
			t.Errorf("a root that has nothing to do with the failure is a witness: %+v", e)
		}
	}
}

func TestSameTree(t *testing.T) {
	t.Parallel()
	pkg := func(name string, dirs ...string) witness.Root {
		return witness.Root{Root: classify.Root{Dirs: dirs}, Kind: "pypackage", Package: name}
	}
	tests := []struct {
		root witness.Root
		row  journal.Root
		want bool
	}{
		{root("/srv/acme"), journal.Root{Kind: "memory", Dirs: []string{"/srv/acme/"}}, true},
		{root("/srv/acme"), journal.Root{Kind: "memory", Dirs: []string{"/srv"}}, true},
		{root("/srv/acme"), journal.Root{Kind: "memory", Dirs: []string{"/srv/acme/plugins"}}, true},
		{root("/srv/acme"), journal.Root{Kind: "memory", Dirs: []string{"/"}}, true},
		{root("/srv/acme", "/srv/b"), journal.Root{Kind: "memory", Dirs: []string{"/x", "/srv/b"}}, true},
		{root(`C:\acme`), journal.Root{Kind: "memory", Dirs: []string{"C:/acme"}}, true},
		{root("/srv/acme"), journal.Root{Kind: "memory", Dirs: []string{"/srv/acme2"}}, false},
		{root("/srv/acme"), journal.Root{Kind: "memory", Name: "acme"}, false},
		{root("/srv/acme"), journal.Root{Kind: "git", Dirs: []string{"/srv/acme"}}, false},
		{pkg("acme.wire", "/site"), journal.Root{Kind: "pypackage", Package: "Acme_Wire", Dirs: []string{"/site"}}, true},
		{pkg("acme-wire"), journal.Root{Kind: "pypackage", Package: "acme--wire", Dirs: []string{"/site"}}, true},
		{pkg("acme-wire", "/site"), journal.Root{Kind: "pypackage", Package: "acme-cli", Dirs: []string{"/site"}}, false},
		{pkg("acme-wire", "/site"), journal.Root{Kind: "pypackage", Package: "acme-wire", Dirs: []string{"/other"}}, false},
		{pkg("acme-wire", "/site"), journal.Root{Kind: "pypackage", Dirs: []string{"/site"}}, false},
	}
	for _, tt := range tests {
		if got := tt.root.SameTree(tt.row); got != tt.want {
			t.Errorf("%+v and %+v: %v, want %v", tt.root, tt.row, got, tt.want)
		}
	}
}

// Where the module lives is read off the failing stack; without one, from the folders of the root.
func TestFilesOfAModule(t *testing.T) {
	t.Parallel()
	frame := func(file string) []classify.Frame {
		return []classify.Frame{{File: file, Module: "acme.cli", Root: "acme"}}
	}
	tests := []struct {
		name   string
		dirs   []string
		frames []classify.Frame
		want   string
	}{
		{"shown by a frame", []string{"/srv/acme"}, frame("/srv/acme/python/acme/cli.py"), "python/acme/wire.py"},
		{"shown with the other slashes", []string{`C:\acme`}, frame(`C:\acme\python\acme\cli.py`), "python/acme/wire.py"},
		{"a frame from elsewhere", []string{"/srv/acme"}, frame("/home/x/acme/cli.py"), "acme/wire.py src/acme/wire.py lib/acme/wire.py wire.py"},
		{"no frame", []string{"/srv/x"}, nil, "acme/wire.py src/acme/wire.py lib/acme/wire.py"},
		{"the folder is the package", []string{"/srv/src/acme"}, frame("/srv/src/acme/cli.py"), "wire.py"},
		{"two folders", []string{"/srv/a", "/srv/b"}, frame("/srv/b/acme/cli.py"), "../b/acme/wire.py"},
	}
	for _, tt := range tests {
		var asked []string
		p := twoRevisions(150)
		p.commits = func(paths []string, _ []witness.Commit) { asked = paths }
		q := request(p)
		q.Roots[0].Dirs, q.Verdict.Frames, q.Verdict.Symbol = tt.dirs, tt.frames, ""
		// A name that changes at one of the wanted paths makes the search list commits of all of them.
		first, _, _ := strings.Cut(tt.want, " ")
		p.revs[0].files[first], p.revs[1].files = "x", map[string]string{}
		f := gather(t, q)
		if got := strings.Join(asked, " "); got != tt.want {
			t.Errorf("%s: files are %q, want %q\n%s", tt.name, got, tt.want, dump(f))
		}
	}
}

// paths is a runtime whose units are named by their paths.
type paths struct{ words }

func (paths) Files(module string) []string { return []string{strings.TrimPrefix(module, "/")} }

// A unit that is named by its path is found there, on the stack or not.
func TestFilesOfAPathUnit(t *testing.T) {
	t.Parallel()
	for _, frames := range [][]classify.Frame{nil, {{File: "/srv/acme/lib/wire.js", Module: "/srv/acme/lib/wire.js", Root: "acme"}}} {
		var asked []string
		p := &past{revs: []rev{{"a", coarse(0), map[string]string{"lib/wire.js": "Frame"}}, {"b", coarse(150), map[string]string{}}}}
		p.commits = func(paths []string, _ []witness.Commit) { asked = paths }
		q := request(p)
		q.Modules["words"] = paths{}
		q.Verdict.Module, q.Verdict.Symbol, q.Verdict.Frames = "/srv/acme/lib/wire.js", "", frames
		f := gather(t, q)
		if got := strings.Join(asked, " "); got != "lib/wire.js" {
			t.Errorf("%d frames: files are %q\n%s", len(frames), got, dump(f))
		}
	}
}

func TestTheNewestUpdateIsTold(t *testing.T) {
	t.Parallel()
	row := func(id string, begun, closed float64) journal.Row {
		return journal.Row{ID: id, Status: journal.Updated, Begun: exact(begun), Closed: exact(closed), Command: strings.Fields(strings.Repeat("long ", 40)),
			Roots: []journal.Root{{Kind: "memory", Dirs: []string{"/srv/acme"}, From: "a", To: "b"}}}
	}
	q := request(twoRevisions(500))
	q.Rows = []journal.Row{row("u1", 110, 115), row("u3", 150, 160), row("u2", 120, 130), row("u4", 300, 310)}
	f := gather(t, q)
	if kinds(f) != "update_journal" || f.Evidence[0].Update != "u3" || !strings.Contains(f.Evidence[0].Detail, "the newest of 3") || len(f.Evidence[0].Detail) > 250 {
		t.Errorf("findings are %s, want u3, the newest of 3, in a bounded sentence", dump(f))
	}
}

func TestEndedContextIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := witness.Gather(ctx, request(twoRevisions(150))); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

// calls counts the looks of a source without the power to observe.
type calls struct {
	*past
	order []string
}

func (c *calls) Identify(context.Context, witness.Root) (witness.Identity, error) {
	c.order = append(c.order, "identify")
	return witness.Identity{Revision: "a"}, nil
}

func (c *calls) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	c.order = append(c.order, "last change")
	return exact(1), witness.ErrChanging
}

func TestObserveWithoutThePower(t *testing.T) {
	t.Parallel()
	c := &calls{}
	o, err := witness.Observe(t.Context(), c, root("/srv/acme"))
	if err != nil || o.Identity.Revision != "a" || o.Changed != exact(1) || !errors.Is(o.NoSignal, witness.ErrChanging) {
		t.Errorf("observation is %+v, %v", o, err)
	}
	if got := strings.Join(c.order, ", "); got != "identify, last change" {
		t.Errorf("the looks were %s; the last change must be read after the identity", got)
	}
}

func ExampleGather() {
	// A source that remembers two revisions; an adapter such as gitcli stands here.
	src := twoRevisions(150)
	found, err := witness.Gather(context.Background(), witness.Request{
		Verdict: classify.Verdict{Runtime: "words", Module: "acme.wire", Symbol: "Frame", Root: "acme"},
		Roots:   []witness.Root{root("/srv/acme")},
		Boot:    []witness.Identity{{Root: "acme", Kind: "memory", Revision: "a"}},
		Window:  stamp.Window{From: exact(100), To: exact(200)},
		Sources: map[string]witness.Source{"memory": src},
		Modules: map[string]witness.Modules{"words": words{}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range found.Evidence {
		fmt.Println(e.Kind+":", e.Detail)
	}
	for _, a := range found.Absent {
		fmt.Println("no", a.Kind+":", a.Why)
	}
	fmt.Println("culprit:", found.Culprit().Commit)
	// Output:
	// boot_identity: acme held a when the run booted and, by its history, b when it died
	// file_proof: acme.wire:Frame went away between boot and death, in commit b (commit b)
	// no update_journal: the journal has no update of this root
	// culprit: b
}

func ExampleBegin() {
	q := request(twoRevisions(150))
	q.Death = []witness.Identity{{Root: "acme", Kind: "memory", Revision: "b"}}
	s, err := witness.Begin(context.Background(), q)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("begin a probe:", s.Found().Holds())
	all, err := s.Finish(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("culprit:", all.Culprit().Commit)
	// Output:
	// begin a probe: true
	// culprit: b
}

func TestWhole(t *testing.T) {
	t.Parallel()
	for _, id := range []witness.Identity{
		{Revision: "3f7a"}, {Revision: "1.0+local"}, {Revision: "1.0+0123456789abcdeg"}, {Revision: "1.0+0123456789abcde"},
		{Revision: "b+0123456789abcdef"},
		{Revision: "a", Dirty: []witness.File{{Path: "x", Digest: "y"}}}, {Revision: "a", Bindings: []witness.Binding{{Path: "x"}}},
		{Unknown: "why"},
	} {
		got, ok := witness.Whole(id.Key())
		if ok && (got.Key() != id.Key() || len(id.Dirty)+len(id.Bindings) > 0 || !id.Known()) {
			t.Errorf("the key %q is read as %+v, and was that of %+v", id.Key(), got, id)
		}
		if clean := id.Known() && len(id.Dirty)+len(id.Bindings) == 0; ok != clean && id.Revision != "b+0123456789abcdef" {
			t.Errorf("the key %q says everything: %t, want %t", id.Key(), ok, clean)
		}
	}
}
