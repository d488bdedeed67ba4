package freshimport

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Dialect is how the command lines of one runtime are read, and what a probe keeps of them: [Node], [Ruby], [PHP] and
// [JVM]. Python has rules of its own, see [Parse].
//
// A flag of the interpreter is kept where it changes what is found or how it is loaded, and is dropped where it only
// reports, listens (a debugger's port), or runs something else. What the dialect does not know is dropped: then the
// probe fails where the run would not have, which costs a relaunch and never makes a wrong one.
type Dialect struct {
	// Name is the runtime's name in boot records and root declarations.
	Name string
	// Ask are arguments that make an interpreter print its own path, for a version manager's script in front of it.
	Ask []string

	programs []string // base names of the interpreter; a version may follow
	// managers are scripts that start another program: it is the run's, and which file it is no command line says. A probe
	// that took it for a module would run it.
	managers []string
	flags    []rule
	env      []string // variables that are kept besides those of [Env] that are no language's
	// pathVariable holds a search path that the plan's Path carries; where said is set it counts only when no flag gave
	// one, and the working folder when neither did.
	pathVariable string
	said         bool
	classes      bool // the program is named by a class, not by a file
}

// value is how a flag takes its value.
type value int

const (
	none  value = iota
	next        // "--flag value" or "--flag=value"
	join        // "-fvalue" or "-f value"
	glued       // "-fvalue" alone
	begin       // every flag that begins like this; whatever follows belongs to it
)

// use is what becomes of a flag.
type use int

const (
	drop    use = iota
	keep        // passed on to the probe, as one argument
	preload     // the same, and the value may be a file
	search      // the value is a list of folders to search
	modules     // the value is a list of archives, folders of classes, and folders of both
	code        // the value is the program
	script      // the value is the program's file
	archive     // the value is an archive with the program, and all that is searched
	class       // the value is the program's class
	refuse      // the command line cannot be read
)

// rule is one flag.
type rule struct {
	name  string
	value value
	use   use
	as    string // how it is passed on, where not by its own name
}

// IsInterpreter reports whether a command's name is that of the dialect's interpreter: ruby, ruby3.1, ruby-3.1.
func (d Dialect) IsInterpreter(command string) bool {
	name := path.Base(command)
	for _, p := range d.programs {
		if rest, ok := strings.CutPrefix(name, p); ok && strings.Trim(rest, "0123456789.-") == "" && !strings.HasSuffix(rest, "-") {
			return true
		}
	}
	return false
}

// Parse reads a command line as [Parse] does for Python. Folders and files in the result are as written; see
// [Dialect.Runtime].
func (d Dialect) Parse(argv []string) (Command, bool) {
	c, ok := d.parse(argv)
	if ok && c.Entry.Kind == Script && d.manager(c.Entry.Name) {
		return Command{}, false
	}
	return c, ok
}

// manager reports whether a script starts the program that its arguments or a project file name.
func (d Dialect) manager(script string) bool {
	base := path.Base(script)
	return contains(d.managers, strings.TrimSuffix(base, path.Ext(base)))
}

func (d Dialect) parse(argv []string) (c Command, ok bool) {
	argv, ok = c.unwrap(argv)
	if !ok || len(argv) == 0 || !d.IsInterpreter(argv[0]) {
		return Command{}, false
	}
	c.Interpreter, c.Entry = argv[0], Entry{Kind: Code}
	for i := 1; i < len(argv); i++ {
		a := argv[i]
		switch {
		case a == "-":
			return c, true // the program comes on stdin
		case a == "--":
			if i+1 < len(argv) && c.Entry.Name == "" && !d.classes {
				c.Entry = Entry{Kind: Script, Name: argv[i+1]}
			}
			return c, true
		case strings.HasPrefix(a, "@") && d.classes:
			return Command{}, false // a file of arguments: not read, so not guessed
		case !strings.HasPrefix(a, "-"):
			d.enter(&c, a)
			return c, true
		}
		r, val, rest, has := d.rule(a)
		switch {
		case rest != "":
			argv = slices.Clone(argv)
			argv[i] = rest // a cluster of letters: the others are looked at next
			i--
		case r.value == next && !has || r.value == join && val == "":
			if i++; i == len(argv) {
				return c, true // the interpreter refuses it
			}
			val = argv[i]
		}
		switch r.use {
		case keep, preload:
			if val == "" && (r.value == next || r.value == join) {
				continue // it says nothing, and could not be told from a flag whose value stands behind it
			}
			c.Args = append(c.Args, r.write(val))
		case search:
			c.path = append(c.path, val)
		case modules:
			c.path = append(c.path, withModules(val))
		case script:
			c.Entry = Entry{Kind: Script, Name: val}
		case archive:
			c.path = []string{val}
			return c, true
		case code, class:
			return c, true
		case refuse:
			return Command{}, false
		}
	}
	return c, true
}

// withModules is a list of a module path as a class path needs it: of a folder also the archives in it. An empty entry says
// nothing, where in a class path it would be the working folder.
func withModules(list string) string {
	var out []string
	for p := range strings.SplitSeq(list, ":") {
		if p != "" {
			out = append(out, p)
		}
		if p != "" && path.Ext(p) != ".jar" {
			out = append(out, path.Join(p, "*"))
		}
	}
	return strings.Join(out, ":")
}

// enter takes the first argument that is no flag.
func (d Dialect) enter(c *Command, arg string) {
	if c.Entry.Kind != Script && !d.classes {
		c.Entry = Entry{Kind: Script, Name: arg}
	}
}

// rule finds the rule of a flag as written, and its value where that is in the same argument. A cluster of short flags
// ("-wI") is split: rest is what is left of it.
func (d Dialect) rule(arg string) (r rule, val, rest string, has bool) {
	name, long, cut := strings.Cut(arg, "=")
	for _, r := range d.flags {
		switch {
		case arg == r.name:
			return r, "", "", false
		case r.value == begin && strings.HasPrefix(arg, r.name):
			return r, strings.TrimPrefix(arg, r.name), "", true
		case r.value == next && cut && name == r.name:
			return r, long, "", true
		case (r.value == join || r.value == glued) && strings.HasPrefix(arg, r.name):
			return r, strings.TrimPrefix(arg, r.name), "", true
		}
	}
	if len(arg) > 2 && arg[1] != '-' {
		for _, r := range d.flags {
			if r.value == none && r.name == arg[:2] {
				return r, "", "-" + arg[2:], false
			}
		}
	}
	return rule{}, "", "", false
}

// write is a kept flag with its value, in one argument.
func (r rule) write(val string) string {
	name := r.name
	if r.as != "" {
		name = r.as
	}
	if r.value == next {
		return name + "=" + val
	}
	return name + val
}

// CheckFlags refuses flags that would make a probe run something else: only what [Dialect.Parse] keeps may stand in a
// plan, one flag an argument.
func (d Dialect) CheckFlags(args []string) error {
	for _, a := range args {
		r, val, rest, has := d.rule(a)
		if rest != "" || r.use != keep && r.use != preload || r.value == next && !has || r.value == join && val == "" {
			return fmt.Errorf("%q is no flag that a probe passes on: give only the interpreter's own flags that change what is loaded", a)
		}
	}
	return nil
}

// Runtime is the interpreter as a prober needs it. interpreter is its absolute path, env the environment the program is
// started with ([Command.Over]), dir the working folder. Path comes out absolute, in the order in which it is searched; a
// workspace in it is left out only when a plan is made.
func (d Dialect) Runtime(c Command, interpreter string, env []string, dir string) Runtime {
	rt := Runtime{Interpreter: interpreter}
	for _, a := range c.Args {
		r, val, _, _ := d.rule(a)
		if r.use == preload && (strings.HasPrefix(val, "./") || strings.HasPrefix(val, "../")) {
			a = r.write(path.Join(dir, val))
		}
		rt.Args = append(rt.Args, a)
	}
	lists := c.path
	inherited := lookup(env, d.pathVariable)
	switch {
	case inherited != "" && (!d.said || len(lists) == 0):
		lists = append(slices.Clone(lists), inherited)
	case d.said && len(lists) == 0:
		lists = []string{"."}
	}
	for _, list := range lists {
		for _, p := range strings.Split(list, ":") {
			switch {
			case p == "" && !d.classes:
				continue // only a class path takes an empty entry for the working folder
			case !path.IsAbs(p):
				p = path.Join(dir, p)
			}
			if !slices.Contains(rt.Path, p) {
				rt.Path = append(rt.Path, p)
			}
		}
	}
	return rt
}

// File is the file that a kept flag loads before the program, empty where it names none.
func (d Dialect) File(arg string) string {
	if r, val, _, _ := d.rule(arg); r.use == preload && path.IsAbs(val) {
		return val
	}
	return ""
}

// Env is the part of a run's environment that a probe in this dialect keeps: what [Env] keeps for every language, and
// the dialect's own variables that change what is found. Options in variables (NODE_OPTIONS, RUBYOPT, JAVA_TOOL_OPTIONS)
// are never kept: they may name agents, debuggers and files of a workspace.
func (d Dialect) Env(env []string) []string {
	return filterEnv(env, func(key string) bool { return allowed[key] || slices.Contains(d.env, key) })
}
