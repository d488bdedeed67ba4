package freshimport

import (
	"path"
	"strings"
)

// Kind is how a Python command line names its program.
type Kind string

// The kinds.
const (
	Script Kind = "script" // a file, or a folder or archive with a __main__
	Module Kind = "module" // -m
	Code   Kind = "code"   // -c, or a program on stdin
)

// Entry is the program that a command line runs: what a probe must never run.
type Entry struct {
	Kind Kind
	// Name is the script's path as written, the module's dotted name, or empty for Code.
	Name string
	// File is the script's absolute path with symlinks resolved. [Parse] leaves it empty; who can read the file system
	// fills it in.
	File string
}

// Command is a parsed Python command line.
type Command struct {
	// Interpreter is the interpreter as written, with or without a folder.
	Interpreter string
	// Args are the interpreter's own flags that change what it imports.
	Args  []string
	Entry Entry
	// Env is what the command itself sets (env NAME=value python3), to be laid over the run's environment.
	Env []string
	// Clear says that the command drops the run's environment first (env -i), Unset which variables it drops.
	Clear bool
	Unset []string

	ignoreEnv, safePath bool
	path                []string // the search path that the flags of a dialect give, as written
}

// Parse reads a command line. ok is false when it does not name a Python interpreter, directly or behind what [Unwrap] takes
// away, and when its program runs another with an interpreter of its choice (poetry run); a script that is started by its
// own path is expanded with [Shebang] beforehand.
func Parse(argv []string) (c Command, ok bool) {
	argv, ok = c.unwrap(argv)
	if !ok || len(argv) == 0 || !IsPython(argv[0]) {
		return Command{}, false
	}
	c.Interpreter = argv[0]
	var flags flagSet
	c.Entry = flags.parse(argv[1:])
	c.Args, c.ignoreEnv, c.safePath = flags.kept, flags.ignoreEnv, flags.safePath
	if c.Entry.manager(argv) {
		return Command{}, false
	}
	return c, true
}

// parse folds the interpreter's arguments up to the one that names the program.
func (f *flagSet) parse(args []string) Entry {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-" || a == "":
			return Entry{Kind: Code}
		case a == "--":
			if i+1 < len(args) {
				return Entry{Kind: Script, Name: args[i+1]}
			}
			return Entry{Kind: Code}
		case strings.HasPrefix(a, "--"):
			if a == "--check-hash-based-pycs" {
				i++
			}
			continue
		case a[0] != '-':
			return Entry{Kind: Script, Name: a}
		}
		// Flags may be joined (-Bu), and the last of them may take the rest as its value (-Wignore, -macme).
		for j := 1; j < len(a); j++ {
			letter, value := a[j], a[j+1:]
			if letter == 'c' {
				return Entry{Kind: Code}
			}
			if letter != 'm' && !strings.ContainsRune(withValue, rune(letter)) {
				f.take(letter, "")
				continue
			}
			if value == "" {
				if i++; i == len(args) {
					return Entry{Kind: Code} // the interpreter refuses it
				}
				value = args[i]
			}
			if letter == 'm' {
				return Entry{Kind: Module, Name: value}
			}
			f.take(letter, value)
			break
		}
	}
	return Entry{Kind: Code}
}

// throughEnv strips env(1) and what it is told, which may be nested.
func (c *Command) throughEnv(argv []string) ([]string, bool) {
	for len(argv) > 0 && path.Base(argv[0]) == "env" {
		argv = argv[1:]
	options:
		for len(argv) > 0 {
			a := argv[0]
			switch {
			case a == "-" || a == "-i" || a == "--ignore-environment":
				c.Clear, c.Unset, c.Env = true, nil, nil
			case a == "--":
				argv = argv[1:]
				break options
			case a == "-u" || a == "--unset":
				if len(argv) < 2 {
					return nil, false
				}
				c.unset(argv[1])
				argv = argv[1:]
			case strings.HasPrefix(a, "--unset="):
				c.unset(strings.TrimPrefix(a, "--unset="))
			case strings.HasPrefix(a, "-u"):
				c.unset(a[2:])
			case a == "-S" || a == "--split-string":
				if len(argv) < 2 {
					return nil, false
				}
				argv = append(append([]string{""}, strings.Fields(argv[1])...), argv[2:]...)
			case strings.HasPrefix(a, "-S"):
				argv = append(append([]string{""}, strings.Fields(a[2:])...), argv[1:]...)
			case strings.HasPrefix(a, "--split-string="):
				argv = append(append([]string{""}, strings.Fields(strings.TrimPrefix(a, "--split-string="))...), argv[1:]...)
			case strings.HasPrefix(a, "-"):
				return nil, false // a change of folder or signals: not read, so not guessed
			default:
				break options
			}
			argv = argv[1:]
		}
		for len(argv) > 0 && strings.Contains(argv[0], "=") {
			c.Env = append(c.Env, argv[0])
			argv = argv[1:]
		}
	}
	return argv, len(argv) > 0
}

func (c *Command) unset(key string) {
	c.Unset = append(c.Unset, key)
	kept := c.Env[:0]
	for _, kv := range c.Env {
		if !strings.HasPrefix(kv, key+"=") {
			kept = append(kept, kv)
		}
	}
	c.Env = kept
}

// Over is the environment that the program gets when the command is started with env.
func (c Command) Over(env []string) []string {
	var out []string
	if !c.Clear {
		for _, kv := range env {
			if key, _, _ := strings.Cut(kv, "="); !contains(c.Unset, key) {
				out = append(out, kv)
			}
		}
	}
	return append(out, c.Env...)
}

// IsPython reports whether a command's name is that of a Python interpreter: python, python3, python3.12, pypy3 and
// the like. Tools around it (python3-config) are not.
func IsPython(command string) bool {
	name := path.Base(command)
	rest, ok := strings.CutPrefix(name, "python")
	if !ok {
		rest, ok = strings.CutPrefix(name, "pypy")
	}
	if !ok {
		return false
	}
	rest = strings.TrimRight(rest, "tdmu") // builds: free-threaded, debug
	return strings.Trim(rest, "0123456789.") == "" && !strings.HasPrefix(rest, ".")
}

// Shebang reads the first line of a script as the kernel does and gives the command line that starting the script with
// argv comes to. ok is false when the file does not begin with "#!".
func Shebang(head []byte, script string, argv []string) (expanded []string, ok bool) {
	rest, ok := strings.CutPrefix(string(head), "#!")
	if !ok {
		return nil, false
	}
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	rest = strings.Trim(rest, " \t\r")
	interpreter, arg := rest, ""
	if i := strings.IndexAny(rest, " \t"); i >= 0 {
		interpreter, arg = rest[:i], strings.Trim(rest[i:], " \t") // the kernel passes the rest as one argument
	}
	if interpreter == "" {
		return nil, false
	}
	expanded = []string{interpreter}
	if arg != "" {
		expanded = append(expanded, arg)
	}
	expanded = append(expanded, script)
	if len(argv) > 1 {
		expanded = append(expanded, argv[1:]...)
	}
	return expanded, true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
