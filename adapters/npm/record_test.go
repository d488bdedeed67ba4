package npm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/witness"
)

// put writes an installed package, symlink a link to one.
func (a *app) put(at, name, version string) {
	a.t.Helper()
	a.write(at+"/package.json", fmt.Sprintf(`{"name": %q, "version": %q}`, name, version))
	a.write(at+"/index.js", "// "+version)
}

func (a *app) symlink(to, at string) {
	a.t.Helper()
	a.remove(at)
	a.write(at, "")
	a.remove(at)
	if err := os.Symlink(to, filepath.Join(a.dir, at)); err != nil {
		a.t.Fatal(err)
	}
}

const pnpmStore = "node_modules/.pnpm/@acme+wire@1.0.0/node_modules"

// pnpmLists writes pnpm's record of one package, without dependencies.
func (a *app) pnpmLists(version string) {
	a.t.Helper()
	a.write("node_modules/.modules.yaml", `{"nodeLinker": "isolated", "virtualStoreDir": ".pnpm", "included": {"dependencies": true, "devDependencies": true, "optionalDependencies": true}}`)
	a.write("node_modules/.pnpm/lock.yaml", strings.ReplaceAll(`lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      '@acme/wire': {specifier: ^1.0.0, version: VERSION}
packages:
  '@acme/wire@VERSION':
    resolution: {integrity: sha512-VERSION}
snapshots:
  '@acme/wire@VERSION': {}
`, "VERSION", version))
}

func pnpmTree(a *app) {
	a.put(pnpmStore+"/@acme/wire", "@acme/wire", "1.0.0")
	a.put("node_modules/.pnpm/left@2.0.0/node_modules/left", "left", "2.0.0")
	a.symlink("../../left@2.0.0/node_modules/left", pnpmStore+"/left")
	a.symlink("../.pnpm/@acme+wire@1.0.0/node_modules/@acme/wire", "node_modules/@acme/wire")
	a.put("node_modules/.pnpm/tool@1.0.0/node_modules/tool", "tool", "1.0.0")
	a.symlink(".pnpm/tool@1.0.0/node_modules/tool", "node_modules/tool")
	a.pnpmLists("1.0.0")
	a.write("node_modules/.pnpm/lock.yaml", `lockfileVersion: '9.0'
importers:
  .:
    dependencies:
      '@acme/wire': {specifier: ^1.0.0, version: 1.0.0(left@2.0.0)}
    devDependencies:
      here: {specifier: link:../here, version: link:../here}
      tool: {specifier: 1.0.0, version: 1.0.0}
packages:
  '@acme/wire@1.0.0':
    resolution: {integrity: sha512-one}
  left@2.0.0:
    resolution: {integrity: sha512-two}
  other-machine@1.0.0:
    resolution: {integrity: sha512-three}
  tool@1.0.0:
    resolution: {integrity: sha512-four}
snapshots:
  '@acme/wire@1.0.0(left@2.0.0)':
    dependencies:
      left: 2.0.0
    optionalDependencies:
      other-machine: 1.0.0
  left@2.0.0: {}
  other-machine@1.0.0:
    optional: true
  tool@1.0.0: {}
`)
}

func classicTree(a *app) {
	a.put("node_modules/@acme/wire", "@acme/wire", "1.0.0")
	a.put("node_modules/left", "left", "2.0.0")
	a.write("yarn.lock", "# yarn lockfile v1\n")
	a.write("node_modules/.yarn-integrity", `{"modulesFolders": ["node_modules"], "flags": [], "topLevelPatterns": ["@acme/wire@^1.0.0"], "lockfileEntries": {
"@acme/wire@^1.0.0": "https://packages.example/@acme/wire/-/wire-1.0.0.tgz#aa", "left@^2.0.0": "https://packages.example/left/-/left-2.0.0.tgz#bb"}}`)
}

func berryTree(a *app) {
	a.put("node_modules/@acme/wire", "@acme/wire", "1.0.0")
	a.put("node_modules/left", "left", "2.0.0")
	a.write("yarn.lock", `__metadata: {version: 8}
"left@file:left.tgz": {version: 2.0.0, resolution: "left@file:left.tgz#left.tgz::hash=1"}
`)
	a.write("node_modules/.yarn-state.yml", `__metadata:
  version: 1

"@acme/wire@virtual:0123#npm:1.0.0":
  locations:
    - "node_modules/@acme/wire"

"acme@workspace:.":
  locations:
    - ""

"left@file:left.tgz#left.tgz::hash=1":
  locations:
    - "node_modules/left"
`)
}

const bunLock = `{
  "lockfileVersion": 1,
  "workspaces": {"": {"name": "acme", "dependencies": {"@acme/wire": "^1.0.0"}, "devDependencies": {"tool": "1.0.0"}}},
  "packages": {
    "@acme/wire": ["@acme/wire@1.0.0", "", {"dependencies": {"left": "^2.0.0"}}, "sha512-one"],
    "left": ["left@2.0.0", "", {}, "sha512-two"],
    "tool": ["tool@1.0.0", "", {}, "sha512-three"],
  }
}
`

func bunTree(a *app) {
	a.put("node_modules/@acme/wire", "@acme/wire", "1.0.0")
	a.put("node_modules/left", "left", "2.0.0")
	a.write("bun.lock", bunLock)
}

func bunStore(a *app) {
	const in = "node_modules/.bun/@acme+wire@1.0.0/node_modules"
	a.put(in+"/@acme/wire", "@acme/wire", "1.0.0")
	a.put("node_modules/.bun/left@2.0.0/node_modules/left", "left", "2.0.0")
	a.symlink("../../left@2.0.0/node_modules/left", in+"/left")
	a.symlink("../.bun/@acme+wire@1.0.0/node_modules/@acme/wire", "node_modules/@acme/wire")
	a.write("bun.lock", bunLock)
}

// TestOtherInstallersHalfDone: no state between two installations passes for either, and no record that is damaged, or of a
// form that is not read.
func TestOtherInstallersHalfDone(t *testing.T) {
	t.Parallel()
	replace := func(file, old, new string) func(a *app) {
		return func(a *app) {
			a.t.Helper()
			text, err := os.ReadFile(filepath.Join(a.dir, file))
			if err != nil || !strings.Contains(string(text), old) {
				a.t.Fatalf("%s has no %q, %v", file, old, err)
			}
			a.write(file, strings.ReplaceAll(string(text), old, new))
		}
	}
	gone := func(file string) func(a *app) { return func(a *app) { a.remove(file) } }
	wire2 := func(a *app) { a.put("node_modules/@acme/wire", "@acme/wire", "2.0.0") }
	left3 := func(at string) func(a *app) { return func(a *app) { a.put(at, "left", "3.0.0") } }
	stray := func(a *app) { a.put("node_modules/new", "new", "1.0.0") }
	same := func(*app) {}
	for name, tt := range map[string]struct {
		tree          func(a *app)
		spoil         func(a *app)
		wire, project string // what the reason says; empty is known
	}{
		"pnpm":                         {pnpmTree, same, "", ""},
		"pnpm, a version not listed":   {pnpmTree, wire2, "pnpm's list says 1.0.0", "pnpm's list says 1.0.0"},
		"pnpm, a dependency":           {pnpmTree, left3(pnpmStore + "/left"), "", "pnpm's list says 2.0.0"},
		"pnpm, a dependency gone":      {pnpmTree, gone(pnpmStore + "/left"), "", "not there"},
		"pnpm, the link gone":          {pnpmTree, gone("node_modules/@acme"), "is not installed", "not there"},
		"pnpm, a link to nothing":      {pnpmTree, gone(pnpmStore), "link to nothing", "not there"},
		"pnpm, a package more":         {pnpmTree, stray, "", "not on pnpm's list"},
		"pnpm, no list":                {pnpmTree, gone("node_modules/.pnpm/lock.yaml"), "under way", "under way"},
		"pnpm, no modules":             {pnpmTree, gone("node_modules/.modules.yaml"), "under way", "under way"},
		"pnpm, half the modules":       {pnpmTree, replace("node_modules/.modules.yaml", `"included"`, `"inc`), "half written", "half written"},
		"pnpm, an older list":          {pnpmTree, replace("node_modules/.pnpm/lock.yaml", "'9.0'", "'6.0'"), "pnpm 9 and later", "pnpm 9 and later"},
		"pnpm, its own Plug'n'Play":    {pnpmTree, replace("node_modules/.modules.yaml", "isolated", "pnp"), "", "isolated and hoisted are read"},
		"pnpm, half a linker":          {pnpmTree, replace("node_modules/.modules.yaml", "isolated", "isol"), "isolated and hoisted", "isolated and hoisted"},
		"pnpm, cut before the last":    {pnpmTree, replace("node_modules/.pnpm/lock.yaml", "  left@2.0.0: {}\n", ""), "half written", "half written"},
		"pnpm, a name that leads away": {pnpmTree, replace("node_modules/.pnpm/lock.yaml", "here:", "../../x:"), "lies elsewhere", "lies elsewhere"},
		"pnpm, a tool gone":            {pnpmTree, gone("node_modules/tool"), "", "not there"},
		"pnpm, production": {pnpmTree, func(a *app) {
			a.remove("node_modules/tool")
			replace("node_modules/.modules.yaml", `"devDependencies": true`, `"devDependencies": false`)(a)
		}, "", ""},
		"pnpm, one that tools look for": {pnpmTree, func(a *app) { a.symlink(".pnpm/left@2.0.0/node_modules/left", "node_modules/left") }, "", ""},
		"pnpm, modules without the end": {pnpmTree, func(a *app) { a.write("node_modules/.modules.yaml", "nodeLinker: isolated\n") }, "half written", "half written"},

		"yarn":                       {classicTree, same, "", ""},
		"yarn, its list taken away":  {classicTree, gone("node_modules/.yarn-integrity"), "under way", "under way"},
		"yarn, half a list":          {classicTree, replace("node_modules/.yarn-integrity", `"lockfileEntries"`, `"lock`), "half written", "half written"},
		"yarn, a list without":       {classicTree, replace("node_modules/.yarn-integrity", `"lockfileEntries"`, `"lock": 1, "x"`), "half written", "half written"},
		"yarn, a version not listed": {classicTree, wire2, "yarn's list says 1.0.0", "yarn's list says 1.0.0"},
		"yarn, a package gone":       {classicTree, gone("node_modules/@acme/wire"), "is not installed", "not there"},

		"berry":                        {berryTree, same, "", ""},
		"berry, no list":               {berryTree, gone("node_modules/.yarn-state.yml"), "under way", "under way"},
		"berry, half a list":           {berryTree, replace("node_modules/.yarn-state.yml", `    - "node_modules/left"`+"\n", ""), "half written", "half written"},
		"berry, cut between packages":  {berryTree, replace("node_modules/.yarn-state.yml", "\n\"left@file:left.tgz#left.tgz::hash=1\":\n  locations:\n    - \"node_modules/left\"\n", ""), "", "not on yarn's list"},
		"berry, an empty list":         {berryTree, func(a *app) { a.write("node_modules/.yarn-state.yml", "") }, "half written", "half written"},
		"berry, a version not listed":  {berryTree, wire2, "yarn's list says 1.0.0", "yarn's list says 1.0.0"},
		"berry, an archive's version":  {berryTree, left3("node_modules/left"), "", "yarn's list says 2.0.0"},
		"berry, yarn.lock is ahead":    {berryTree, replace("yarn.lock", "hash=1", "hash=2"), "yarn.lock does not", "yarn.lock does not"},
		"berry, a package more":        {berryTree, stray, "", "not on yarn's list"},
		"berry, a name that leads":     {berryTree, replace("node_modules/.yarn-state.yml", `"node_modules/left"`, "\"node_modules/left\"\n    - \"../left\""), "", "lies elsewhere"},
		"berry, Plug'n'Play":           {berryTree, func(a *app) { a.remove("node_modules"); a.write(".pnp.cjs", "") }, "Plug'n'Play", "Plug'n'Play"},
		"berry, linked like pnpm does": {berryTree, func(a *app) { a.remove("node_modules/.yarn-state.yml"); a.write("node_modules/.store/x", "") }, "", "leaves no list"},

		"bun":                        {bunTree, same, "", ""},
		"bun, a version not listed":  {bunTree, wire2, "bun's list says 1.0.0", "bun's list says 1.0.0"},
		"bun, a lock that is ahead":  {bunTree, replace("bun.lock", "left@2.0.0", "left@3.0.0"), "", "bun's list says 3.0.0"},
		"bun, half a list":           {bunTree, replace("bun.lock", "  }\n}\n", "\n"), "half written", "half written"},
		"bun, an empty list":         {bunTree, func(a *app) { a.write("bun.lock", "") }, "half written", "half written"},
		"bun, a package gone":        {bunTree, gone("node_modules/left"), "", "not there"},
		"bun, a package more":        {bunTree, stray, "", "not on bun's list"},
		"bun, a name that leads":     {bunTree, replace("bun.lock", `"left": [`, `"../left": [`), "lies elsewhere", "lies elsewhere"},
		"bun, the old list":          {bunTree, func(a *app) { a.rename("bun.lock", "bun.lockb") }, "binary", "binary"},
		"bun isolated":               {bunStore, same, "", ""},
		"bun isolated, another":      {bunStore, wire2, "bun's list says 1.0.0", "bun's list says 1.0.0"},
		"bun isolated, a dependency": {bunStore, gone("node_modules/.bun/@acme+wire@1.0.0/node_modules/left"), "", "not there"},
	} {
		a := &app{t, t.TempDir(), nil}
		a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
		tt.tree(a)
		tt.spoil(a)
		a.says(name, tt.wire, tt.project)
	}
}

// TestOtherInstallersBounds: a long list is not walked beyond the bound, and a file as large as a disk not read.
func TestOtherInstallersBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tree   func(a *app)
		record string
	}{
		"pnpm": {pnpmTree, "node_modules/.pnpm/lock.yaml"}, "pnpm's modules": {pnpmTree, "node_modules/.modules.yaml"}, "yarn": {classicTree, "node_modules/.yarn-integrity"},
		"berry": {berryTree, "node_modules/.yarn-state.yml"}, "bun": {bunTree, "bun.lock"},
	} {
		a := &app{t, t.TempDir(), nil}
		a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
		c.tree(a)
		if id, err := newSource(t, npm.Config{MaxFiles: 1}).Identify(t.Context(), a.project()); err != nil || name != "yarn" && !strings.Contains(id.Unknown, "more than 1 files") {
			t.Errorf("%s: with a bound of one file the project is %+v, %v", name, id, err)
		}
		if err := os.Truncate(filepath.Join(a.dir, c.record), 1<<30); err != nil {
			t.Fatal(err)
		}
		for _, r := range []witness.Root{a.wire(), a.project()} {
			if id := identify(t, r); !strings.Contains(id.Unknown, "holds more than") {
				t.Errorf("%s: with a record of 1 GiB a root is %+v", name, id)
			}
		}
	}
}

// A package of a long list costs one of the bound, also where it is only looked for.
func TestListCountsAgainstTheBound(t *testing.T) {
	t.Parallel()
	a := &app{t, t.TempDir(), nil}
	a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
	bunTree(a)
	var more strings.Builder
	for i := range 30 {
		a.put(fmt.Sprintf("node_modules/p%d", i), fmt.Sprintf("p%d", i), "1.0.0")
		fmt.Fprintf(&more, `"p%d": ["p%d@1.0.0", "", {}, "sha512-x"],`+"\n", i, i)
	}
	a.write("bun.lock", strings.Replace(bunLock, `    "left"`, more.String()+`    "left"`, 1))
	for limit, known := range map[int]bool{20: false, 60: true} {
		id, err := newSource(t, npm.Config{MaxFiles: limit}).Identify(t.Context(), a.project())
		if err != nil || id.Known() != known || !known && !strings.Contains(id.Unknown, "more than 20 files") {
			t.Errorf("with a bound of %d the project is %+v, %v", limit, id, err)
		}
	}
}

// TestOtherInstallersUpdate: another version of a dependency moves the project and not the package beside it; what a pull
// changes in bun.lock alone moves neither.
func TestOtherInstallersUpdate(t *testing.T) {
	t.Parallel()
	for name, tree := range map[string]func(a *app){"pnpm": pnpmTree, "yarn": classicTree, "berry": berryTree, "bun": bunTree, "bun isolated": bunStore} {
		a := &app{t, t.TempDir(), nil}
		a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
		tree(a)
		wire, project := identify(t, a.wire()), identify(t, a.project())
		rewrite := func(file, old, new string) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(strings.ReplaceAll(string(text), old, new)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if strings.HasPrefix(name, "bun") {
			rewrite(filepath.Join(a.dir, "bun.lock"), "sha512-", "sha512-x")
			rewrite(filepath.Join(a.dir, "bun.lock"), "^2.0.0", ">=2.0.0")
			if p := identify(t, a.project()); p.Key() != project.Key() {
				t.Errorf("%s: after bun.lock was changed alone the project is %+v, it was %+v", name, p, project)
			}
		}
		err := filepath.WalkDir(a.dir, func(file string, e os.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				rewrite(file, "2.0.0", "2.1.0")
				rewrite(file, "hash=1", "hash=2") // of another archive
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if w, p := identify(t, a.wire()), identify(t, a.project()); w.Key() != wire.Key() || !p.Known() || p.Key() == project.Key() {
			t.Errorf("%s: after a dependency was updated the identities are %+v and %+v, they were %+v and %+v", name, w, p, wire, project)
		}
	}
}

// TestRecordsReadAlike: one record comes to one identity, however it is ordered and written.
func TestRecordsReadAlike(t *testing.T) {
	t.Parallel()
	a := &app{t, t.TempDir(), nil}
	a.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
	classicTree(a)
	var list strings.Builder
	for i := range 20 {
		fmt.Fprintf(&list, `"@acme/wire@>=%d": "https://packages.example/@acme/wire/-/wire-1.%d.0.tgz#a%d", "@acme/wire@../%d.tgz": "../%d.tgz#b%d", `, i, i, i, i, i, i)
	}
	a.write("node_modules/.yarn-integrity", `{"topLevelPatterns": [], "lockfileEntries": {`+strings.TrimSuffix(list.String(), ", ")+`}}`)
	want := identify(t, a.wire())
	for range 10 {
		if got := identify(t, a.wire()); !got.Known() || got.Key() != want.Key() {
			t.Fatalf("read again the package is %+v, it was %+v", got, want)
		}
	}
	b := &app{t, t.TempDir(), nil}
	b.write("package.json", `{"name": "acme", "version": "0.3.0"}`)
	pnpmTree(b)
	want = identify(t, b.project())
	text, err := os.ReadFile(filepath.Join(b.dir, "node_modules/.pnpm/lock.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	form, rest, _ := strings.Cut(string(text), "importers:")
	b.write("node_modules/.pnpm/lock.yaml", "importers:"+rest+"\n"+form+"settings:\n  autoInstallPeers: true\n")
	if got := identify(t, b.project()); !got.Known() || got.Key() != want.Key() {
		t.Errorf("with its list written otherwise the project is %+v, it was %+v", got, want)
	}
}

// TestNewestRecordCounts: of two installers that worked one after the other the list of the second is the one that counts.
func TestNewestRecordCounts(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	classicTree(a)
	if id := identify(t, a.project()); !id.Known() {
		t.Errorf("after npm and then yarn the project is %+v", id)
	}
	a.remove("node_modules/left")
	a.install("@acme/wire", "1.1.0", "exports.x = 1\n")
	if id := identify(t, a.wire()); !strings.HasPrefix(id.Revision, "1.1.0@") {
		t.Errorf("after npm once more the package is %+v", id)
	}
}
