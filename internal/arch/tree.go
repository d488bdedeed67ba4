package arch

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

// Tree is the parsed source of a repository.
type Tree struct {
	// Module is the path of the module in the root folder.
	Module string
	// Modules are the folders that hold a go.mod, with its text; the root's is ".".
	Modules map[string]string
	// Work is the text of the go.work file, empty when there is none.
	Work string
	// Top are the folders and files of the root, folders with a trailing slash.
	Top []string
	// Packages are the folders with Go files, ordered by path.
	Packages []*Package

	fset *token.FileSet
}

// Package is one folder of Go files.
type Package struct {
	// Path is the folder below the root, with slashes; the root itself is ".".
	Path string
	// Name is the name in the package clause.
	Name string
	// Module is the folder of the module it belongs to.
	Module string
	// Files are its files, tests too.
	Files []*File
}

// File is one Go file.
type File struct {
	// Path is where it lies below the root.
	Path string
	// Test is set for _test.go files.
	Test bool
	// Lines is how long it is.
	Lines int
	// Syntax is what the parser made of it, comments included.
	Syntax *ast.File
}

// Load parses every Go file below the root of fsys. It leaves out what the go command leaves out: folders named
// testdata or vendor, and those that begin with a dot or an underscore.
func Load(fsys fs.FS) (*Tree, error) {
	t := &Tree{Modules: map[string]string{}, fset: token.NewFileSet()}
	top, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("load the tree: %w", err)
	}
	for _, e := range top {
		if e.IsDir() {
			t.Top = append(t.Top, e.Name()+"/")
		} else {
			t.Top = append(t.Top, e.Name())
		}
	}
	packages := map[string]*Package{}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && ignored(name):
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		return t.add(fsys, name, packages)
	})
	if err != nil {
		return nil, fmt.Errorf("load the tree: %w", err)
	}
	for _, p := range packages {
		p.Module = t.moduleOf(p.Path)
		t.Packages = append(t.Packages, p)
	}
	sort.Slice(t.Packages, func(i, j int) bool { return t.Packages[i].Path < t.Packages[j].Path })
	t.Module = modulePath(t.Modules["."])
	return t, nil
}

// add takes in one file, when it is of a kind that the rules look at.
func (t *Tree) add(fsys fs.FS, name string, packages map[string]*Package) error {
	base, dir := path.Base(name), path.Dir(name)
	if base != "go.mod" && name != "go.work" && path.Ext(base) != ".go" {
		return nil
	}
	text, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	switch {
	case base == "go.mod":
		t.Modules[dir] = string(text)
		return nil
	case name == "go.work":
		t.Work = string(text)
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	p := packages[dir]
	if p == nil {
		p = &Package{Path: dir}
		packages[dir] = p
	}
	f := &File{Path: name, Test: strings.HasSuffix(name, "_test.go"), Lines: lines(text), Syntax: syntax}
	p.Files = append(p.Files, f)
	if p.Name == "" || !f.Test {
		p.Name = strings.TrimSuffix(syntax.Name.Name, "_test")
	}
	return nil
}

func ignored(dir string) bool {
	base := path.Base(dir)
	if base == "." {
		return false
	}
	return base == "testdata" || base == "vendor" || base == "node_modules" ||
		strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

func lines(text []byte) int {
	n := strings.Count(string(text), "\n")
	if len(text) > 0 && text[len(text)-1] != '\n' {
		n++
	}
	return n
}

func modulePath(mod string) string {
	for line := range strings.Lines(mod) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(p)
		}
	}
	return ""
}

// moduleOf is the innermost module that a folder belongs to.
func (t *Tree) moduleOf(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := t.Modules[dir]; ok {
			return dir
		}
	}
	return "."
}

// pos is where a node begins, as file and line.
func (t *Tree) pos(n ast.Node) string {
	p := t.fset.Position(n.Pos())
	return p.Filename + ":" + strconv.Itoa(p.Line)
}

// own is the path below the root of an import of ours; ok is false for everybody else's packages.
func (t *Tree) own(importPath string) (dir string, ok bool) {
	if importPath == t.Module {
		return ".", true
	}
	return strings.CutPrefix(importPath, t.Module+"/")
}

// Suite reports whether a package is made for tests: a conformance suite, a simulated host. Its name ends in "test".
func (p *Package) Suite() bool { return suite(p.Path) }

// suite is told by the name of the package alone, so that an import can be judged without its source.
func suite(dir string) bool {
	return strings.HasSuffix(path.Base(dir), "test") && path.Base(dir) != "test"
}

// Public reports whether a stranger can import the package.
func (p *Package) Public() bool {
	return p.Name != "main" && !below(p.Path, "examples") && !internal(p.Path)
}

func internal(dir string) bool {
	for part := range strings.SplitSeq(dir, "/") {
		if part == "internal" {
			return true
		}
	}
	return false
}

// shipped are the files that end up in a program: no tests.
func (p *Package) shipped() []*File { return p.pick(false) }

func (p *Package) tests() []*File { return p.pick(true) }

func (p *Package) pick(test bool) (out []*File) {
	for _, f := range p.Files {
		if f.Test == test {
			out = append(out, f)
		}
	}
	return out
}

// imports are the import paths of a file with the node of each.
func (f *File) imports() map[string]*ast.ImportSpec {
	out := make(map[string]*ast.ImportSpec, len(f.Syntax.Imports))
	for _, s := range f.Syntax.Imports {
		if p, err := strconv.Unquote(s.Path.Value); err == nil {
			out[p] = s
		}
	}
	return out
}

// below reports whether dir is root or lies in it.
func below(dir, root string) bool { return dir == root || strings.HasPrefix(dir, root+"/") }
