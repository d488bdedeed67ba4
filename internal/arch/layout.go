package arch

import (
	"path"
	"slices"
	"strings"
)

// folders are what the root may hold. Folders with a leading dot belong to tools and are not looked at.
var folders = []string{
	"restart/", "ledger/", "classify/", "witness/", "probe/", "episode/", "notify/", "adapters/", "examples/", "internal/",
}

// rootRequires is all that the root module may depend on: the last three are for tests.
var rootRequires = []string{
	"github.com/google/uuid", "github.com/gofrs/flock", "go.yaml.in/yaml/v4", "github.com/rs/zerolog", "golang.org/x/sys",
	"github.com/google/go-cmp", "pgregory.net/rapid", "github.com/anishathalye/porcupine",
}

// outsideWork are modules that the workspace does not tie in. The developer tools stay out because a workspace takes
// one version of each dependency for all its modules, and a linter must not choose the library's.
var outsideWork = []string{"internal/tools"}

func layout(t *Tree) (out []Finding) {
	for _, name := range t.Top {
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, "/"):
			if !slices.Contains(folders, name) {
				out = append(out, findingf(name, "this folder has no place in the root"))
			}
		case path.Ext(name) == ".go":
			out = append(out, findingf(name, "the root holds no package"))
		}
	}
	return sorted(out)
}

// modules finds packages in the wrong module, modules that the workspace forgot, and dependencies that the root module
// should not have.
func modules(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		layer, ok := layerOf(p.Path)
		if ok && layer.Own && p.Module == "." {
			out = append(out, findingf(p.Path, "needs a go.mod of its own"))
		}
		if ok && !layer.Own && p.Module != "." && !below(p.Path, "examples") {
			out = append(out, findingf(p.Path, "belongs to the root module, not to that in %s", p.Module))
		}
	}
	for dir, text := range t.Modules {
		if dir != "." && !slices.Contains(outsideWork, dir) && !inWork(t.Work, dir) {
			out = append(out, findingf(dir, "go.work does not use this module"))
		}
		if want := path.Join(t.Module, dir); modulePath(text) != want {
			out = append(out, findingf(path.Join(dir, "go.mod"), "the module's path is %q, by its folder it is %q",
				modulePath(text), want))
		}
	}
	for _, req := range directRequires(t.Modules["."]) {
		if !slices.Contains(rootRequires, req) {
			out = append(out, findingf("go.mod", "requires %s", req))
		}
	}
	return sorted(out)
}

func inWork(work, dir string) bool {
	for line := range strings.Lines(work) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "use "))
		if line == dir || line == "./"+dir {
			return true
		}
	}
	return false
}

// directRequires are the modules that a go.mod requires for its own code, as lines in or out of a block.
func directRequires(mod string) (out []string) {
	for line := range strings.Lines(mod) {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") || strings.Contains(line, "// indirect") ||
			strings.Contains(line, "=>") {
			continue
		}
		if strings.Contains(fields[0], ".") {
			out = append(out, fields[0])
		}
	}
	return out
}

// testAids may be used by tests of nested modules as well: they are no door to what the library does.
var testAids = []string{"internal/require", "internal/bench/relaunchtest"}

// noPrivateDoor finds nested modules and examples that use what a stranger cannot.
func noPrivateDoor(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if p.Module == "." && !below(p.Path, "examples") {
			continue
		}
		for _, f := range p.Files {
			for imported, spec := range f.imports() {
				dir, own := t.own(imported)
				if !own || !internal(dir) || f.Test && slices.Contains(testAids, dir) {
					continue
				}
				if p.Module == "." || !below(dir, p.Module) {
					out = append(out, findingf(t.pos(spec), "%s imports %s", p.Path, dir))
				}
			}
		}
	}
	return sorted(out)
}

// maxLines is where a file has to be split.
const maxLines = 700

func fileLength(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		for _, f := range p.Files {
			if f.Lines > maxLines {
				out = append(out, findingf(f.Path, "%d lines; at most %d", f.Lines, maxLines))
			}
		}
	}
	return out
}
