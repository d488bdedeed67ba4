package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// writes are the functions that change what is on a disk, by import path.
var writes = map[string][]string{
	"os": {"WriteFile", "Create", "CreateTemp", "MkdirTemp", "Mkdir", "MkdirAll", "Rename", "Remove", "RemoveAll", "Link",
		"Symlink", "Truncate", "Chmod", "Chown", "Lchown", "Chtimes", "CopyFS", "OpenRoot"},
	"syscall":               unixWrites,
	"golang.org/x/sys/unix": unixWrites,
}

var unixWrites = []string{"Open", "Openat", "Openat2", "Creat", "Rename", "Renameat", "Renameat2", "Unlink", "Unlinkat",
	"Link", "Linkat", "Symlink", "Symlinkat", "Mkdir", "Mkdirat", "Rmdir", "Truncate", "Ftruncate", "Fallocate", "Mknod",
	"Mkfifo", "Chmod", "Fchmodat", "Chown", "Fchownat", "Lchown", "Utimes", "UtimesNanoAt"}

// opens are the functions that write when their flags say so.
var opens = []string{"OpenFile"}

// readFlags are harmless. Every other flag, and a variable, is taken for a write: better asked about than missed.
var readFlags = []string{"O_RDONLY", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK", "O_NOCTTY", "O_PATH"}

// lockFiles are libraries that create files of their own.
var lockFiles = []string{"github.com/gofrs/flock"}

// writer is a package that may write, with the reason that makes it an exception.
type writer struct {
	Package string
	Why     string
	// Calls narrows the exception; empty allows everything.
	Calls []string
}

var writers = []writer{
	{Package: "internal/durable", Why: "it is the place where files are written"},
	{Package: "internal/faultfs", Why: "it stands in for the file system and passes on to it what it does not break"},
	{Package: "internal/tools/...", Why: "developer tools end up in no program of ours"},
	{Package: "examples/...", Why: "an example makes a playground of its own, and keeps nothing"},
	{Package: "adapters/process/...", Calls: []string{"os.OpenFile", "golang.org/x/sys/unix.Open", "os.MkdirTemp"},
		Why: "a child's log must be an open descriptor before the child starts, a pty is opened for writing, and a probe runs " +
			"in an empty folder of its own; none is state that has to survive a power cut"},
	{Package: "adapters/sqlite/...", Calls: []string{"os.OpenFile"},
		Why: "the database library writes its files itself, with the mode of the one that is there first"},
	{Package: "probe/canary", Calls: []string{"os.MkdirAll", "golang.org/x/sys/unix.Open"},
		Why: "a canary gets folders for its state that are thrown away with it, and Landlock wants handles (O_PATH) that neither " +
			"read nor write"},
	{Package: "adapters/systemd/...", Calls: []string{"os.OpenFile", "os.MkdirAll", "os.Rename"},
		Why: "a unit file is the service manager's, in a folder of the system's and readable by all, not state of ours"},
	{Package: "internal/bench/...", Why: "the program that it relaunches writes down when it began"},
	{Package: "internal/require", Why: "it makes trees for tests, in the tests' own folders"},
}

func mayWrite(p *Package, call string) bool {
	if p.Suite() {
		return true // a suite damages files on purpose, in its test's own folder
	}
	return slices.ContainsFunc(writers, func(w writer) bool {
		return match(w.Package, p.Path) && (len(w.Calls) == 0 || slices.Contains(w.Calls, call))
	})
}

func diskWrites(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		for _, f := range p.shipped() {
			names := f.names()
			for imported, spec := range f.imports() {
				if (slices.Contains(lockFiles, imported) || imported == "io/ioutil") && !mayWrite(p, imported) {
					out = append(out, findingf(t.pos(spec), "imports %s, which creates files", imported))
				}
			}
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				if call, ok := writeAt(names, n); ok && !mayWrite(p, call) {
					out = append(out, findingf(t.pos(n), "uses %s", call))
				}
				return true
			})
		}
	}
	return sorted(out)
}

// writeAt tells whether a node changes the disk, and by which function. A function taken as a value counts; an
// os.OpenFile is judged by its flags.
func writeAt(names names, n ast.Node) (call string, ok bool) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		imported, name, ok := names.qualified(n)
		return imported + "." + name, ok && slices.Contains(writes[imported], name)
	case *ast.CallExpr:
		sel, isSel := n.Fun.(*ast.SelectorExpr)
		if !isSel {
			return "", false
		}
		imported, name, ok := names.qualified(sel)
		if !ok || imported != "os" || !slices.Contains(opens, name) || len(n.Args) < 2 {
			return "", false
		}
		return imported + "." + name, !readOnly(n.Args[1])
	}
	return "", false
}

// readOnly reports whether a flag expression names nothing but reading.
func readOnly(flags ast.Expr) bool {
	switch e := flags.(type) {
	case *ast.ParenExpr:
		return readOnly(e.X)
	case *ast.BinaryExpr:
		return readOnly(e.X) && readOnly(e.Y)
	case *ast.SelectorExpr:
		return slices.Contains(readFlags, e.Sel.Name)
	case *ast.BasicLit:
		return e.Value == "0"
	}
	return false
}

// exits are the functions that end the process.
var exits = map[string][]string{
	"os":                        {"Exit"},
	"syscall":                   {"Exit"},
	"golang.org/x/sys/unix":     {"Exit"},
	"log":                       {"Fatal", "Fatalf", "Fatalln"},
	"github.com/rs/zerolog/log": {"Fatal"},
	"github.com/spf13/cobra":    {"CheckErr"},
}

func noExit(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if p.Name == "main" {
			continue
		}
		for _, f := range p.shipped() {
			names := f.names()
			ast.Inspect(f.Syntax, func(n ast.Node) bool {
				sel, isSel := n.(*ast.SelectorExpr)
				if !isSel {
					return true
				}
				if imported, name, ok := names.qualified(sel); ok && slices.Contains(exits[imported], name) {
					out = append(out, findingf(t.pos(n), "uses %s.%s", imported, name))
				}
				return true
			})
		}
	}
	return sorted(out)
}

func noInit(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		for _, f := range p.shipped() {
			for _, d := range f.Syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
					out = append(out, findingf(t.pos(fn), "has an init function"))
				}
			}
			for imported, spec := range f.imports() {
				if spec.Name != nil && spec.Name.Name == "." {
					out = append(out, findingf(t.pos(spec), "imports %s into its own names", imported))
				}
			}
		}
	}
	return sorted(out)
}

// forTests are packages that belong in tests alone, beside our own suites.
var forTests = []string{"testing/...", "net/http/httptest", "github.com/google/go-cmp/...", "pgregory.net/rapid/...",
	"github.com/anishathalye/porcupine/...", "internal/require", "internal/faultfs", "internal/scenarios"}

// aids are packages of ours that are written for tests and may use what tests use.
var aids = []string{"internal/require", "internal/scenarios", "internal/faultfs"}

func testOnly(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if p.Suite() || slices.Contains(aids, p.Path) {
			continue
		}
		for _, f := range p.shipped() {
			for imported, spec := range f.imports() {
				dir, own := t.own(imported)
				if own && (suite(dir) || matchAny(forTests, dir)) || !own && matchAny(forTests, imported) {
					out = append(out, findingf(t.pos(spec), "%s imports %s", p.Path, strings.TrimPrefix(imported, t.Module+"/")))
				}
			}
		}
	}
	return sorted(out)
}
