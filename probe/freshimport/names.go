package freshimport

import (
	"path"
	"strings"
)

// Names knows where the units of a runtime may lie and whether a source names something, for runtimes whose units are
// files, features or classes: [Node], [Ruby], [PHP], [JVM], and scripts in Perl, Lua, Tcl and shells. It fulfils
// witness.Modules. The zero value is ready to use.
//
// It goes by the conventions of all of them at once: a path is a path, "Acme::Wire" may be Acme/Wire.pm or acme/wire.rb,
// `Acme\Wire` Acme/Wire.php or, below a folder for its first part, Wire.php. A unit of one runtime that lies where
// another's would be does no harm: who asks looks which of the files exist.
type Names struct{}

// extensions are of files that hold a unit, the likeliest of each language first.
var extensions = []string{".js", ".mjs", ".cjs", ".node", ".rb", ".pm", ".pl", ".lua", ".tcl", ".php", ".class", ".java", ".kt", ".sh", ".so"}

// Files implements witness.Modules.
func (Names) Files(module string) []string {
	if strings.HasPrefix(module, "/") {
		return []string{strings.TrimPrefix(path.Clean(module), "/")}
	}
	if module == "" || strings.HasPrefix(module, "..") {
		return nil
	}
	var out []string
	add := func(stem string) {
		for _, e := range extensions {
			out = append(out, stem+e)
		}
	}
	stem := strings.NewReplacer("::", "/", `\`, "/", ".", "/", "$", "/").Replace(module)
	out = append(out, module) // a file's own name, relative to the folder that is searched: "acme/wire.js", "libacme.so"
	if strings.Contains(module, "/") {
		add(module) // a feature or a package's file, whose dots belong to the name
		if module[0] == '@' || !strings.Contains(path.Base(module), ".") {
			out = append(out, "node_modules/"+module+"/package.json", module+"/index.js")
		}
		return out
	}
	add(stem)
	if low := snake(stem); low != stem {
		add(low) // a constant's file, as Ruby's loaders name it
	}
	if _, rest, ok := strings.Cut(stem, "/"); ok && strings.Contains(module, `\`) {
		add(rest) // the first part of a namespace is often the folder that is declared
	}
	return append(out, stem+"/init.lua", "node_modules/"+module+"/package.json")
}

// snake is the name of the file of a constant: "Acme/FrameReader" is "acme/frame_reader".
func snake(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'A' && c <= 'Z' {
			if i > 0 && s[i-1] != '/' && (s[i-1] < 'A' || s[i-1] > 'Z') {
				b.WriteByte('_')
			}
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return b.String()
}

// Binds implements witness.Modules: a source binds a name if the name stands in it as a word, outside of lines that are a
// comment as a whole. That is more than binding: a name that is only used counts, so a proof that the name went away
// is missed rather than made up.
func (Names) Binds(src []byte, name string) bool {
	if name == "" {
		return false
	}
	for line := range strings.SplitSeq(string(src), "\n") {
		trimmed := strings.TrimSpace(line)
		if strings.HasPrefix(trimmed, "//") || strings.HasPrefix(trimmed, "#") || strings.HasPrefix(trimmed, "* ") || strings.HasPrefix(trimmed, "--") {
			continue
		}
		for from := 0; ; {
			at := strings.Index(line[from:], name)
			if at < 0 {
				break
			}
			at += from
			end := at + len(name)
			if (at == 0 || !word(line[at-1])) && (end == len(line) || !word(line[end])) {
				return true
			}
			from = end
		}
	}
	return false
}

func word(c byte) bool {
	return c == '_' || c == '$' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
