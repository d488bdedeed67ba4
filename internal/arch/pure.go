package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// impure are imports that the core does without. A trailing "/..." takes in what lies below; the exceptions compute
// only.
var impure = []string{
	"os/...", "net/...", "log/...", "sync/...", "math/rand/...", "crypto/rand", "syscall", "io/ioutil", "unsafe", "plugin",
	"runtime/...", "testing/...", "golang.org/x/sys/...", "github.com/gofrs/flock", "github.com/rs/zerolog/...",
	"github.com/google/uuid",
}

var pureExceptions = []string{"net/url", "net/netip", "net/mail", "net/textproto"}

// impureCalls are functions of otherwise harmless packages that read a clock, wait, touch the disk or print.
var impureCalls = map[string][]string{
	"time":          {"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"},
	"path/filepath": {"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"fmt":           {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"context":       {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause", "AfterFunc"},
	"html/template": {"ParseFiles", "ParseGlob"},
	"text/template": {"ParseFiles", "ParseGlob"},
	"go/parser":     {"ParseDir"},
}

// pure are the files of the core that end up in a program.
func pure(t *Tree) (out []*File) {
	for _, p := range t.Packages {
		if layer, ok := layerOf(p.Path); ok && layer.Pure {
			out = append(out, p.shipped()...)
		}
	}
	return out
}

func pureImports(t *Tree) (out []Finding) {
	for _, f := range pure(t) {
		for imported, spec := range f.imports() {
			if matchAny(impure, imported) && !slices.Contains(pureExceptions, imported) {
				out = append(out, findingf(t.pos(spec), "imports %s", imported))
			}
		}
	}
	return sorted(out)
}

func pureCalls(t *Tree) (out []Finding) {
	for _, f := range pure(t) {
		names := f.names()
		ast.Inspect(f.Syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				out = append(out, findingf(t.pos(n), "starts a goroutine"))
			case *ast.SelectorExpr:
				// Taken as a value counts as well: `now := time.Now` is a clock.
				if imported, name, ok := names.qualified(n); ok && slices.Contains(impureCalls[imported], name) {
					out = append(out, findingf(t.pos(n), "uses %s.%s", imported, name))
				}
			}
			return true
		})
	}
	return sorted(out)
}

// names maps the names by which a file knows its imports to their paths.
type names map[string]string

func (f *File) names() names {
	out := names{}
	for imported, spec := range f.imports() {
		switch {
		case spec.Name == nil:
			out[defaultName(imported)] = imported
		case spec.Name.Name != "_" && spec.Name.Name != ".":
			out[spec.Name.Name] = imported
		}
	}
	return out
}

// defaultName is the last part of an import path, or the one before it when the last is a major version. That is right
// for the standard library and for everything the rules ask about.
func defaultName(imported string) string {
	parts := strings.Split(imported, "/")
	last := parts[len(parts)-1]
	if len(parts) > 1 && len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = parts[len(parts)-2]
	}
	return last
}

// qualified resolves pkg.Name. A local variable that shadows a package would be taken for it; nothing worse comes of
// that than a finding which asks for a better name.
func (n names) qualified(sel *ast.SelectorExpr) (imported, name string, ok bool) {
	x, isIdent := sel.X.(*ast.Ident)
	if !isIdent {
		return "", "", false
	}
	imported, ok = n[x.Name]
	return imported, sel.Sel.Name, ok
}
