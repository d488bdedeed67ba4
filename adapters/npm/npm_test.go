package npm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

func newSource(t testing.TB, cfg npm.Config) *npm.Source {
	t.Helper()
	s, err := npm.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// app is a project with one package installed, put there as npm does: the package first, the list last.
type app struct {
	t    testing.TB
	dir  string
	list map[string]map[string]any
}

func newApp(t testing.TB) *app {
	t.Helper()
	a := &app{t, t.TempDir(), map[string]map[string]any{}}
	a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
	a.write("src/main.js", "require('@acme/wire')\n")
	a.install("@acme/wire", "1.0.0", "exports.x = 1\n")
	return a
}

func (a *app) write(name, text string) {
	a.t.Helper()
	at := filepath.Join(a.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		a.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) remove(name string) {
	a.t.Helper()
	if err := os.RemoveAll(filepath.Join(a.dir, name)); err != nil {
		a.t.Fatal(err)
	}
}

func (a *app) rename(from, to string) {
	a.t.Helper()
	if err := os.Rename(filepath.Join(a.dir, from), filepath.Join(a.dir, to)); err != nil {
		a.t.Fatal(err)
	}
}

// unpack is the first half of an installation.
func (a *app) unpack(name, version, code string) {
	a.t.Helper()
	at := "node_modules/" + name
	a.remove(at)
	a.write(at+"/index.js", code)
	a.write(at+"/README.md", "words")
	a.write(at+"/package.json", `{"name": "`+name+`", "version": "`+version+`"}`)
}

func (a *app) install(name, version, code string) {
	a.t.Helper()
	a.unpack(name, version, code)
	a.list["node_modules/"+name] = map[string]any{"version": version, "integrity": fmt.Sprintf("sha512-%x", code)}
	a.writeList()
}

func (a *app) writeList() {
	a.t.Helper()
	text, err := json.Marshal(map[string]any{"lockfileVersion": 3, "packages": a.list})
	if err != nil {
		a.t.Fatal(err)
	}
	a.write("node_modules/.package-lock.json", string(text))
}

// wire is the root of the installed package, project that of the whole.
func (a *app) wire() witness.Root {
	return witness.Root{Root: classify.Root{Name: "wire", Dirs: []string{a.dir}, Modules: []string{"@acme/wire"}}, Kind: npm.Kind, Package: "@acme/wire"}
}

func (a *app) project() witness.Root {
	return witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{a.dir}, Modules: []string{"acme"}}, Kind: npm.Kind}
}

func identify(t testing.TB, r witness.Root) witness.Identity {
	t.Helper()
	id, err := newSource(t, npm.Config{}).Identify(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSource(t *testing.T) {
	t.Parallel()
	for name, root := range map[string]func(a *app) witness.Root{"package": (*app).wire, "project": (*app).project} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			witnesstest.Run(t, func(t testing.TB) witnesstest.World {
				a := newApp(t)
				n := 0
				return witnesstest.World{
					Source: newSource(t, npm.Config{}), Root: root(a),
					Change: func() {
						n++
						a.install("@acme/wire", fmt.Sprintf("1.0.%d", n), strings.Repeat("// ", n))
					},
					Noise: func() {
						a.write("node_modules/@acme/wire/run.log", "noise")
						a.write("node_modules/.cache/x.js", "")
						a.write("src/main.log", "noise")
					},
					Break: func() { a.remove("node_modules/@acme/wire/package.json") },
				}
			})
		})
	}
}

func TestWhatCounts(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	tests := []struct {
		name           string
		change         func()
		wire, projects bool
	}{
		{"the same again", func() { a.install("@acme/wire", "1.0.0", "exports.x = 1\n") }, false, false},
		{"another package", func() { a.install("left", "1.0.0", "") }, false, true},
		{"the project's code", func() { a.write("src/main.js", "// other\n") }, false, true},
		{"the project's package.json", func() { a.write("package.json", `{"name": "acme", "version": "0.3.1"}`) }, false, true},
		{"a dependency of the package", func() { a.write("node_modules/@acme/wire/node_modules/x/index.js", "") }, false, false},
		{"code changed by hand", func() { a.write("node_modules/@acme/wire/index.js", "exports.x = 3\n") }, true, false},
		{"the same version built anew", func() { a.install("@acme/wire", "1.0.0", "exports.y = 1\n") }, true, true},
		{"another archive with the same code", func() {
			a.list["node_modules/@acme/wire"]["integrity"] = "sha512-other"
			a.writeList()
		}, true, true},
		{"a new version", func() { a.install("@acme/wire", "1.1.0", "exports.y = 1\n") }, true, true},
	}
	for _, tt := range tests {
		w, p := identify(t, a.wire()), identify(t, a.project())
		tt.change()
		v, q := identify(t, a.wire()), identify(t, a.project())
		if !v.Known() || !q.Known() || (w.Key() != v.Key()) != tt.wire || (p.Key() != q.Key()) != tt.projects {
			t.Errorf("%s: the package went from %s to %s (want a move: %v), the project from %s to %s (want a move: %v)",
				tt.name, w.Key(), v.Key(), tt.wire, p.Key(), q.Key(), tt.projects)
		}
	}
	if v, q := identify(t, a.wire()), identify(t, a.project()); !strings.HasPrefix(v.Revision, "1.1.0@") || !strings.HasPrefix(q.Revision, "0.3.1@") {
		t.Errorf("revisions are %s and %s", v.Revision, q.Revision)
	}
	// However the package's folder is declared, it is the same package.
	want := identify(t, a.wire()).Key()
	for _, dir := range []string{"node_modules", "node_modules/@acme/wire"} {
		r := a.wire()
		r.Dirs = []string{filepath.Join(a.dir, "nowhere"), filepath.Join(a.dir, dir)}
		if got := identify(t, r).Key(); got != want {
			t.Errorf("declared by %s the key is %q, want %s", dir, got, want)
		}
	}
}

// TestHalfDone: no state between two versions passes for the old one.
func TestHalfDone(t *testing.T) {
	t.Parallel()
	const at = "node_modules/@acme/wire"
	for name, tt := range map[string]struct {
		spoil         func(a *app)
		wire, project string
	}{
		"set aside": {func(a *app) { a.rename(at, "node_modules/@acme/.wire-Ab3dEf9h") },
			"has been set aside", "has been set aside"},
		"set aside, the new one begun": {func(a *app) {
			a.rename(at, "node_modules/@acme/.wire-Ab3dEf9h")
			a.write(at+"/index.js", "exports.x = 1\n")
		}, "has been set aside", "has been set aside"},
		"set aside, the new one unpacked": {func(a *app) {
			a.rename(at, "node_modules/@acme/.wire-Ab3dEf9h")
			a.unpack("@acme/wire", "1.0.0", "exports.x = 2\n")
		}, "has been set aside", "has been set aside"},
		"unpacked, not on the list": {func(a *app) { a.unpack("@acme/wire", "2.0.0", "") }, "npm's list says 1.0.0", "npm's list says 1.0.0"},
		"no package.json":           {func(a *app) { a.remove(at + "/package.json") }, "has no package.json", "not there"},
		"half a package.json":       {func(a *app) { a.write(at+"/package.json", `{"name": "@ac`) }, "may be half written", "may be half written"},
		"half a list":               {func(a *app) { a.write("node_modules/.package-lock.json", `{"pack`) }, "may be half written", "may be half written"},
		"on no list": {func(a *app) { delete(a.list, at); a.writeList() },
			"not on npm's list", ""},
		"no list":           {func(a *app) { a.remove("node_modules/.package-lock.json") }, "", "another installer"},
		"the package gone":  {func(a *app) { a.remove(at) }, "is not installed", "not there"},
		"a link elsewhere":  {func(a *app) { a.linkAway() }, "declare that folder as a root", ""},
		"no project":        {func(a *app) { a.remove("package.json") }, "", "has no package.json"},
		"a list that leads": {func(a *app) { a.list["node_modules/../../x"] = map[string]any{}; a.writeList() }, "", "lies elsewhere"},
	} {
		a := newApp(t)
		tt.spoil(a)
		a.says(name, tt.wire, tt.project)
	}
}

// says wants the identities of the package and of the project to be unknown for a reason that holds a text, known where
// that is empty.
func (a *app) says(name, wire, project string) {
	a.t.Helper()
	for what, c := range map[string]struct {
		root witness.Root
		want string
	}{"package": {a.wire(), wire}, "project": {a.project(), project}} {
		id := identify(a.t, c.root)
		if c.want == "" && !id.Known() || c.want != "" && (id.Known() || !strings.Contains(id.Unknown, c.want)) {
			a.t.Errorf("%s: the %s is %+v, want unknown with %q", name, what, id, c.want)
		}
	}
}

// TestReasonIsTheSame: of several packages that are amiss the same one is named at each look.
func TestReasonIsTheSame(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	for i := range 8 {
		name := fmt.Sprint("gone", i)
		a.install(name, "1.0.0", "")
		a.remove("node_modules/" + name)
	}
	for range 20 {
		if id := identify(t, a.project()); !strings.Contains(id.Unknown, "gone0 is on npm's list and not there") {
			t.Fatalf("identity is %+v", id)
		}
	}
}

// linkAway is what npm makes of a folder that is installed for working on it.
func (a *app) linkAway() {
	a.t.Helper()
	a.remove("node_modules/@acme/wire")
	a.write("work/package.json", `{"name": "@acme/wire", "version": "1.0.0"}`)
	if err := os.Symlink("../../work", filepath.Join(a.dir, "node_modules/@acme/wire")); err != nil {
		a.t.Fatal(err)
	}
	a.list["node_modules/@acme/wire"] = map[string]any{"resolved": "work", "link": true}
	a.writeList()
}

// TestLinkIntoAStore: pnpm keeps each version in a store inside node_modules and links to it.
func TestLinkIntoAStore(t *testing.T) {
	t.Parallel()
	a := &app{t, t.TempDir(), nil}
	var keys []string
	for _, version := range []string{"1.0.0", "2.0.0"} {
		store := "node_modules/.pnpm/wire@" + version + "/node_modules/@acme/wire"
		a.write(store+"/package.json", `{"name": "@acme/wire", "version": "`+version+`"}`)
		a.write(store+"/index.js", "")
		a.remove("node_modules/@acme/wire")
		a.link(store)
		a.pnpmLists(version)
		id := identify(t, a.wire())
		if !strings.HasPrefix(id.Revision, version+"@") {
			t.Errorf("identity is %+v", id)
		}
		keys = append(keys, id.Key())
	}
	if keys[0] == keys[1] {
		t.Errorf("both versions have the key %q", keys[0])
	}
	// The store may be old: what is linked again is in force since then.
	src := newSource(t, npm.Config{})
	_, before, err := src.InForce(t.Context(), a.wire())
	if err != nil {
		t.Fatal(err)
	}
	a.pnpmLists("1.0.0")
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		a.remove("node_modules/@acme/wire")
		a.link("node_modules/.pnpm/wire@1.0.0/node_modules/@acme/wire")
		if _, after, err := src.InForce(t.Context(), a.wire()); err != nil || after.Sub(before) > 0 {
			if err != nil {
				t.Error(err)
			}
			return
		}
	}
	t.Errorf("linked again the package is in force since %s, as before", before)
}

// link puts the package into place as a link to a folder of the store.
func (a *app) link(store string) {
	a.t.Helper()
	a.write("node_modules/@acme/other", "")
	if err := os.Symlink(filepath.Join(a.dir, store), filepath.Join(a.dir, "node_modules/@acme/wire")); err != nil {
		a.t.Fatal(err)
	}
}

func TestBoundsAndDeclaration(t *testing.T) {
	t.Parallel()
	if _, err := npm.New(npm.Config{MaxFiles: -1, MaxBytes: -1}); err == nil || !strings.Contains(err.Error(), "MaxFiles") || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("negative bounds: %v, want both reported", err)
	}
	a := newApp(t)
	for want, cfg := range map[string]npm.Config{"more than 2 files": {MaxFiles: 2}, "larger than 5 bytes": {MaxBytes: 5}} {
		for _, r := range []witness.Root{a.wire(), a.project()} {
			if id, err := newSource(t, cfg).Identify(t.Context(), r); err != nil || !strings.Contains(id.Unknown, want) {
				t.Errorf("identity is %+v, %v; want unknown with %q", id, err, want)
			}
		}
	}
	for _, name := range []string{"..", "../x", "acme/wire", "@acme", "@acme/", "@acme/wire/x", ".bin", `a\b`} {
		r := a.wire()
		r.Package = name
		if id := identify(t, r); !strings.Contains(id.Unknown, "no name of a package") {
			t.Errorf("package %q: %+v", name, id)
		}
	}
}

// A package has no history, but the disk tells since when it holds what it holds.
func TestWitnessWithoutAReadingAtTheDeath(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	boot := identify(t, a.wire())
	a.install("@acme/wire", "2.0.0", "exports.y = 1\n")
	now := time.Now()
	at := func(d time.Duration) stamp.Time { return stamp.Wall(now.Add(d), 0) }
	for name, tt := range map[string]struct {
		from, to time.Duration
		holds    bool
		why      string
	}{
		"before the death": {-time.Hour, time.Minute, true, "2.0.0"},
		"after the death":  {-time.Hour, -time.Minute, false, "came after the death"},
	} {
		f, err := witness.Gather(t.Context(), witness.Request{
			Verdict: classify.Verdict{Module: "@acme/wire", Symbol: "x", Root: "wire"},
			Roots:   []witness.Root{a.wire()}, Boot: []witness.Identity{boot}, Window: stamp.Window{From: at(tt.from), To: at(tt.to)},
			Sources: map[string]witness.Source{npm.Kind: newSource(t, npm.Config{})},
		})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		if f.Holds() != tt.holds || !strings.Contains(string(text), tt.why) {
			t.Errorf("an update %s: %s, want a witness: %v, with %q", name, text, tt.holds, tt.why)
		}
	}
}

func ExampleNew() {
	src, err := npm.New(npm.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "wire", Dirs: []string{"/nowhere/app"}, Modules: []string{"@acme/wire"}},
		Kind: npm.Kind, Package: "@acme/wire",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false package @acme/wire is not installed in /nowhere/app <nil>
}
