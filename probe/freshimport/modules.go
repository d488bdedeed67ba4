package freshimport

import (
	"path"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// mainPrefix marks what is started as a program.
const mainPrefix = "main:"

// Main is the name under which a plan asks for a module or a script that the run starts as its program: it is checked
// and never run. A name that ends in ".__main__" needs no mark.
func Main(module string) string { return mainPrefix + module }

// IsMain splits a plan's name: target is a module, or a file if it holds a slash.
func IsMain(name string) (target string, is bool) {
	if target, is = strings.CutPrefix(name, mainPrefix); is {
		return target, true
	}
	return name, name == "__main__" || strings.HasSuffix(name, ".__main__")
}

// Death is what a plan is made from.
type Death struct {
	Verdict classify.Verdict
	// Entry is the run's program, from its command line. Its File is compared with the frames. Where it has no kind, as
	// behind a wrapper that says nothing, or is not on the stack, as where it started the program that died, the program is
	// the module or script at the bottom of the stack.
	Entry Entry
	// Dir is the run's working folder; relative file names in frames are below it.
	Dir string
	// Exists says whether the current tree has a module. For a script it is asked with the absolute path, which holds a
	// slash. Nil means that everything exists.
	Exists func(module string) bool
}

// Modules are what must be imported, in order, each once. It is empty when nothing of the failing stack is left, and
// then there is no proof to be had: empty is no pass.
func Modules(d Death) []string {
	managed := slices.Clone(d.Verdict.ManagedModules)
	if m := d.Verdict.Module; m != "" && !slices.Contains(managed, m) {
		managed = append(managed, m) // last: it was about to be imported when the stack broke
	}
	scripts := d.scripts()
	bottom, asMain := d.bottom()
	var out []string
	for _, m := range managed {
		name, asked := m, m
		switch {
		case m == "":
			continue
		case slices.Contains(scripts, m):
			name, asked = Main(d.Entry.File), d.Entry.File
		case d.Entry.Kind == Module && m == d.Entry.Name:
			name = Main(m)
		case m == bottom:
			name, asked = Main(asMain), asMain
		}
		if (d.Exists == nil || d.Exists(asked)) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// scripts are the names that the classifier gave the program's own file: as a script it has no module name, and
// importing the file under one would run the program.
func (d Death) scripts() (names []string) {
	if d.Entry.Kind != Script || d.Entry.File == "" {
		return nil
	}
	written := d.absolute(d.Entry.Name)
	for _, f := range d.Verdict.Frames {
		if f.Module == "" || f.File == "" {
			continue
		}
		if file := d.absolute(f.File); file == path.Clean(d.Entry.File) || file == written {
			names = append(names, f.Module)
		}
	}
	// A program also goes by the name of its file, where the text gives no frame.
	stem := strings.TrimSuffix(path.Base(d.Entry.File), ".py")
	if len(d.Verdict.Frames) == 0 && slices.Contains(d.Verdict.ManagedModules, stem) {
		names = append(names, stem)
	}
	return names
}

// bottom is the module in which the failing thread began, and the name under which it is asked for as the run's
// program; empty when the stack has the program of the command line, or does not begin with code that a file or module
// runs at its top. Such code may be an import whose importer is cut off: then a little less is proven, while the other
// mistake would run the program once more.
func (d Death) bottom() (module, asMain string) {
	if d.Entry.Kind != "" && (d.entered() || d.cut()) {
		return "", ""
	}
	byName := false
	for _, f := range d.Verdict.Frames {
		top := d.Verdict.Runtime == PHP.Name // its frames name what they call, and the trace begins with the program
		switch f.Function {
		case "_run_module_as_main", "_run_code": // Python's runpy, for -m
			byName = true
			continue
		case "<module>", "<main>", "Object.<anonymous>": // Python, Ruby, Node.js
			top = true
		}
		switch {
		case top && f.Module != "" && (byName || f.File == ""):
			return f.Module, f.Module
		case top && f.Module != "":
			return f.Module, d.absolute(f.File)
		case f.Origin != classify.OriginRuntime:
			return "", ""
		}
	}
	return "", ""
}

// entered reports whether the program of the command line is on the stack.
func (d Death) entered() bool {
	written := d.absolute(d.Entry.Name)
	return slices.ContainsFunc(d.Verdict.Frames, func(f classify.Frame) bool {
		if d.Entry.Kind == Module {
			return f.Module == d.Entry.Name || f.Module == d.Entry.Name+".__main__"
		}
		file := d.absolute(f.File)
		return f.File != "" && d.Entry.Kind == Script && (file == path.Clean(d.Entry.File) || file == written)
	})
}

// cut reports whether the bottom of the stack may be missing: Node.js prints ten frames, and begins with its own where
// there were no more.
func (d Death) cut() bool {
	return d.Verdict.Runtime == Node.Name && (len(d.Verdict.Frames) == 0 || !strings.Contains(d.Verdict.Frames[0].File, "internal/main/"))
}

func (d Death) absolute(file string) string {
	if !path.IsAbs(file) {
		file = path.Join(d.Dir, file)
	}
	return path.Clean(file)
}
