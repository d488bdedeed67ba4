package arch

import (
	"go/ast"
	"go/doc"
	"go/token"
	"slices"
	"strings"
)

func packageDoc(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		files := p.shipped()
		if len(files) == 0 {
			files = p.tests() // a package of tests alone is documented there
		}
		var documented []*File
		for _, f := range files {
			if strings.TrimSpace(f.Syntax.Doc.Text()) != "" {
				documented = append(documented, f)
			}
		}
		switch {
		case len(documented) == 0:
			out = append(out, findingf(p.Path, "package %s has no comment", p.Name))
		case len(documented) > 1:
			var where []string
			for _, f := range documented {
				where = append(where, f.Path)
			}
			out = append(out, findingf(p.Path, "package %s has %d comments: %s", p.Name, len(where), strings.Join(where, ", ")))
		case p.Name != "main" && !strings.HasPrefix(documented[0].Syntax.Doc.Text(), "Package "+p.Name):
			out = append(out, findingf(documented[0].Path, `the comment does not begin with "Package %s"`, p.Name))
		}
	}
	return out
}

// wellKnown are methods whose meaning is that of an interface everyone knows.
var wellKnown = []string{"Error", "String", "Unwrap", "MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText",
	"MarshalYAML", "UnmarshalYAML", "LogValue"}

// exportedDoc wants a comment for each exported function, method, type, constant and variable, and for each method of
// an exported interface. Constants and variables may share the comment of their block, or have theirs at the end of the
// line; the one method of an interface is its type's promise. Fields of structs are left to the writer: many are said by
// their names.
func exportedDoc(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if !p.Public() {
			continue
		}
		for _, f := range p.shipped() {
			for _, d := range f.Syntax.Decls {
				switch d := d.(type) {
				case *ast.FuncDecl:
					out = append(out, undocumentedFunc(t, d)...)
				case *ast.GenDecl:
					for _, s := range d.Specs {
						out = append(out, undocumentedSpec(t, d, s)...)
					}
				}
			}
		}
	}
	return sorted(out)
}

func undocumentedFunc(t *Tree, d *ast.FuncDecl) []Finding {
	if !d.Name.IsExported() || said(d.Doc) {
		return nil
	}
	if d.Recv == nil {
		return []Finding{findingf(t.pos(d), "func %s has no comment", d.Name.Name)}
	}
	receiver := receiverName(d.Recv.List[0].Type)
	if !ast.IsExported(receiver) || slices.Contains(wellKnown, d.Name.Name) {
		return nil
	}
	return []Finding{findingf(t.pos(d), "method %s.%s has no comment", receiver, d.Name.Name)}
}

func undocumentedSpec(t *Tree, d *ast.GenDecl, s ast.Spec) (out []Finding) {
	switch s := s.(type) {
	case *ast.TypeSpec:
		if !s.Name.IsExported() {
			return nil
		}
		// A block of types has one comment for its idea; each type still says what it is.
		if !said(s.Doc) && !said(s.Comment) && (d.Lparen.IsValid() || !said(d.Doc)) {
			out = append(out, findingf(t.pos(s), "type %s has no comment", s.Name.Name))
		}
		if i, ok := s.Type.(*ast.InterfaceType); ok && len(i.Methods.List) > 1 {
			for _, m := range i.Methods.List {
				if len(m.Names) == 1 && m.Names[0].IsExported() && !said(m.Doc) && !said(m.Comment) {
					out = append(out, findingf(t.pos(m), "method %s.%s has no comment", s.Name.Name, m.Names[0].Name))
				}
			}
		}
	case *ast.ValueSpec:
		if said(d.Doc) || said(s.Doc) || said(s.Comment) {
			return nil
		}
		for _, n := range s.Names {
			if n.IsExported() {
				out = append(out, findingf(t.pos(n), "%s %s has no comment", kindOf(d.Tok), n.Name))
			}
		}
	}
	return out
}

func said(c *ast.CommentGroup) bool { return strings.TrimSpace(c.Text()) != "" }

func kindOf(tok token.Token) string {
	if tok == token.CONST {
		return "constant"
	}
	return "variable"
}

// receiverName is the type of a receiver without pointer and type parameters.
func receiverName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

// notRun are packages whose example is compiled and shown, and not run, with what it needs that not every machine has.
var notRun = map[string]string{
	"adapters/postgres": "a database server",
	"adapters/systemd":  "a service manager on the bus",
	"adapters/desktop":  "a desktop session",
}

// examples wants a runnable example of each public package. A suite's user is a test, and an example has none to give:
// there it is enough that the three lines which a stranger has to write are shown and compile.
func examples(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if !p.Public() || len(p.shipped()) == 0 {
			continue
		}
		var tests []*ast.File
		for _, f := range p.tests() {
			tests = append(tests, f.Syntax)
		}
		all := doc.Examples(tests...)
		runs := slices.ContainsFunc(all, func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput })
		switch {
		case len(all) == 0:
			out = append(out, findingf(p.Path, "package %s has no example", p.Name))
		case !runs && !p.Suite() && notRun[p.Path] == "":
			out = append(out, findingf(p.Path, "no example of package %s is run: it needs an // Output comment", p.Name))
		}
	}
	return out
}
