package pypackage_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/pypackage"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

// site is a site-packages folder with one distribution, put there as pip does: code first, RECORD last.
type site struct {
	t   testing.TB
	dir string
}

func newSite(t testing.TB) *site {
	t.Helper()
	return &site{t: t, dir: t.TempDir()}
}

func (s *site) write(name, text string) {
	s.t.Helper()
	at := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) install(version string, files map[string]string) {
	s.t.Helper()
	old, err := filepath.Glob(filepath.Join(s.dir, "Acme_Wire-*.dist-info"))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, o := range old {
		s.remove(filepath.Base(o))
	}
	s.remove("acme_wire")
	info := "Acme_Wire-" + version + ".dist-info"
	var record []string
	for name, text := range files {
		s.write(name, text)
		sum := sha256.Sum256([]byte(text))
		record = append(record, fmt.Sprintf("%s,sha256=%s,%d", name, base64.RawURLEncoding.EncodeToString(sum[:]), len(text)))
	}
	slices.Sort(record)
	s.write(info+"/METADATA", "Name: Acme-Wire\nVersion: "+version+"\n")
	record = append(record, "acme_wire/__pycache__/wire.cpython-312.pyc,,", info+"/RECORD,,", "../../../bin/acme,sha256=x,1")
	s.write(info+"/RECORD", strings.Join(record, "\r\n")+"\r\n")
}

func code(text string) map[string]string {
	return map[string]string{"acme_wire/__init__.py": "", "acme_wire/wire.py": text, "acme_wire/data.txt": "data"}
}

func (s *site) root() witness.Root {
	return witness.Root{Root: classify.Root{Name: "wire", Dirs: []string{s.dir}, Modules: []string{"acme_wire"}}, Kind: pypackage.Kind, Package: "acme.wire"}
}

func newSource(t testing.TB) *pypackage.Source {
	t.Helper()
	s, err := pypackage.New(pypackage.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *site) identify() witness.Identity {
	s.t.Helper()
	id, err := newSource(s.t).Identify(s.t.Context(), s.root())
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func TestSource(t *testing.T) {
	t.Parallel()
	witnesstest.Run(t, func(t testing.TB) witnesstest.World {
		s := newSite(t)
		s.install("1.0", code("x = 1\n"))
		n := 0
		return witnesstest.World{
			Source: newSource(t), Root: s.root(),
			Change: func() {
				n++
				s.install(fmt.Sprintf("1.%d", n), code(fmt.Sprintf("x = %d\n", n)))
			},
			Noise: func() {
				s.write("acme_wire/run.log", "noise")
				s.write("acme_wire/__pycache__/wire.cpython-312.pyc", "compiled")
				s.write("other/x.py", "")
			},
			Break: func() { s.remove(filepath.Base(infoOf(t, s))) },
		}
	})
}

func infoOf(t testing.TB, s *site) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(s.dir, "*.dist-info"))
	if err != nil || len(found) != 1 {
		t.Fatalf("dist-info folders are %v, %v", found, err)
	}
	return found[0]
}

func TestRevisionIsVersionAndRecord(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.install("1.0", code("x = 1\n"))
	one := s.identify()
	if !strings.HasPrefix(one.Revision, "1.0@") || len(one.Dirty) != 0 {
		t.Errorf("identity is %+v", one)
	}
	// The same version built anew is another tree.
	s.install("1.0", code("x = 22\n"))
	if two := s.identify(); two.Revision == one.Revision {
		t.Errorf("another build has the same revision %s", two.Revision)
	}
	s.install("1.0", code("x = 1\n"))
	if three := s.identify(); three.Key() != one.Key() {
		t.Errorf("the same build has the keys %s and %s", one.Key(), three.Key())
	}
}

func TestDirtyFilesAreThoseNoLongerInstalled(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.install("1.0", code("x = 1\n"))
	later := func(name string) {
		t.Helper()
		at := time.Now().Add(time.Minute)
		if err := os.Chtimes(filepath.Join(s.dir, name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name   string
		change func()
		want   string
	}{
		{"nothing", func() {}, ""},
		{"touched, the content is the same", func() { later("acme_wire/wire.py") }, ""},
		{"an edit of another size", func() { s.write("acme_wire/wire.py", "x = 100\n") }, "acme_wire/wire.py"},
		{"an edit of the same size", func() { s.write("acme_wire/wire.py", "x = 2\n"); later("acme_wire/wire.py") }, "acme_wire/wire.py"},
		{"a file that is no code", func() { s.write("acme_wire/data.txt", "other data") }, "acme_wire/wire.py"},
		{"a file that is gone", func() { s.remove("acme_wire/__init__.py") }, "acme_wire/__init__.py(gone) acme_wire/wire.py"},
	}
	for _, tt := range tests {
		tt.change()
		var got []string
		for _, f := range s.identify().Dirty {
			if f.Digest == "" {
				f.Path += "(gone)"
			}
			got = append(got, f.Path)
		}
		if g := strings.Join(got, " "); g != tt.want {
			t.Errorf("%s: dirty files are %q, want %q", tt.name, g, tt.want)
		}
	}
}

// A later touch of the dist-info folder is a change, but does not make the installation younger.
func TestTouchOfTheInfoFolder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.install("1.0", code("x = 1\n"))
	src := newSource(t)
	look := func() (change, since stamp.Time) {
		t.Helper()
		change, err := src.LastChange(t.Context(), s.root())
		if err != nil {
			t.Fatal(err)
		}
		if _, since, err = src.InForce(t.Context(), s.root()); err != nil {
			t.Fatal(err)
		}
		return change, since
	}
	change, since := look()
	for i, deadline := 0, time.Now().Add(time.Minute); time.Now().Before(deadline); i++ {
		s.write(fmt.Sprintf("Acme_Wire-1.0.dist-info/REQUESTED%d", i), "")
		later, still := look()
		if still != since {
			t.Fatalf("a touch moved the installation from %s to %s", since, still)
		}
		if later.Sub(change) > 0 {
			return
		}
	}
	t.Error("no touch of the dist-info folder moved the last change")
}

func TestUnknownSaysWhy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(s *site)
		want  string
	}{
		{"not installed", func(s *site) { s.remove("Acme_Wire-1.0.dist-info") }, "is not installed in"},
		{"no RECORD", func(s *site) { s.remove("Acme_Wire-1.0.dist-info/RECORD") }, "has no RECORD"},
		{"there twice", func(s *site) { s.write("acme_wire-2.0.dist-info/RECORD", "") }, "is there twice"},
		{"set aside", func(s *site) { s.rename("Acme_Wire-1.0.dist-info", "~cme_Wire-1.0.dist-info") }, "has been set aside (~cme_Wire-1.0.dist-info)"},
		{"set aside, second form", func(s *site) { s.rename("Acme_Wire-1.0.dist-info", "~-me_Wire-1.0.dist-info") }, "has been set aside"},
		{"another package set aside", func(s *site) { s.rename("Acme_Wire-1.0.dist-info", "~umpy-1.0.dist-info") }, "is not installed in"},
		{"egg-info", func(s *site) { s.rename("Acme_Wire-1.0.dist-info", "acme_wire-1.0-py3.12.egg-info") }, "the old way"},
		{"editable", func(s *site) {
			s.write("Acme_Wire-1.0.dist-info/direct_url.json", `{"url": "file:///srv/wire", "dir_info": {"editable": true}}`)
		}, "installed for editing, its code is in /srv/wire"},
		{"RECORD that is none", func(s *site) { s.write("Acme_Wire-1.0.dist-info/RECORD", "a,\"b\n") }, "cannot be understood"},
		{"no folder", func(s *site) { s.remove("") }, "does not exist"},
	}
	for _, tt := range tests {
		s := newSite(t)
		s.install("1.0", code("x = 1\n"))
		tt.spoil(s)
		if id := s.identify(); id.Known() || !strings.Contains(id.Unknown, tt.want) {
			t.Errorf("%s: %+v, want unknown with %q", tt.name, id, tt.want)
		}
		if _, err := newSource(t).LastChange(t.Context(), s.root()); err == nil {
			t.Errorf("%s: there is a change signal", tt.name)
		}
	}
}

func (s *site) rename(from, to string) {
	s.t.Helper()
	if err := os.Rename(filepath.Join(s.dir, from), filepath.Join(s.dir, to)); err != nil {
		s.t.Fatal(err)
	}
}

func TestBoundsAndDeclaration(t *testing.T) {
	t.Parallel()
	if _, err := pypackage.New(pypackage.Config{MaxFiles: -1}); err == nil {
		t.Error("a negative bound was accepted")
	}
	s := newSite(t)
	s.install("1.0", code("x = 1\n"))
	few, err := pypackage.New(pypackage.Config{MaxFiles: 2})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := few.Identify(t.Context(), s.root()); err != nil || !strings.Contains(id.Unknown, "more than 2 files") {
		t.Errorf("identity is %+v, %v", id, err)
	}
	nameless := s.root()
	nameless.Package = ""
	if id, err := newSource(t).Identify(t.Context(), nameless); err != nil || !strings.Contains(id.Unknown, "names no package") {
		t.Errorf("identity is %+v, %v", id, err)
	}
	// The second folder counts when the first has nothing.
	two := s.root()
	two.Dirs = []string{filepath.Join(s.dir, "nowhere"), s.dir}
	if id, err := newSource(t).Identify(t.Context(), two); err != nil || !id.Known() {
		t.Errorf("identity is %+v, %v", id, err)
	}
}

// A package has no history, but the disk tells since when it holds what it holds.
func TestWitnessWithoutAReadingAtTheDeath(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.install("1.0", code("x = 1\n"))
	boot := s.identify()
	s.install("2.0", code("x = 2\n"))
	now := time.Now()
	at := func(d time.Duration) stamp.Time { return stamp.Wall(now.Add(d), 0) }
	gather := func(boot witness.Identity, from, to stamp.Time) witness.Findings {
		t.Helper()
		f, err := witness.Gather(t.Context(), witness.Request{
			Verdict: classify.Verdict{Module: "acme_wire.wire", Symbol: "y", Root: "wire"},
			Roots:   []witness.Root{s.root()}, Boot: []witness.Identity{boot}, Window: stamp.Window{From: from, To: to},
			Sources: map[string]witness.Source{pypackage.Kind: newSource(t)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := gather(boot, at(-time.Hour), at(time.Minute))
	if len(f.Evidence) != 1 || f.Evidence[0].Kind != witness.BootIdentity || f.Evidence[0].From != boot.Key() {
		t.Errorf("an update before the death: %s", dump(f))
	}
	for name, tt := range map[string]struct {
		boot     witness.Identity
		from, to time.Duration
		why      string
	}{
		"an update after the death":        {boot, -time.Hour, -time.Minute, "came after the death"},
		"no update":                        {s.identify(), -time.Hour, time.Minute, "now as at the boot"},
		"a boot that read something newer": {boot, time.Minute, time.Hour, "is older than the boot"},
	} {
		f := gather(tt.boot, at(tt.from), at(tt.to))
		if f.Holds() || !strings.Contains(dump(f), tt.why) {
			t.Errorf("%s: %s, want no witness because %q", name, dump(f), tt.why)
		}
	}
	s.rename("Acme_Wire-2.0.dist-info", "~cme_Wire-2.0.dist-info")
	if f := gather(boot, at(-time.Hour), at(time.Minute)); f.Holds() || !strings.Contains(dump(f), "has been set aside") {
		t.Errorf("half removed: %s", dump(f))
	}
}

func dump(f witness.Findings) string {
	text, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
