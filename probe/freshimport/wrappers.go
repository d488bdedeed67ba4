package freshimport

import (
	"path"
	"strings"
)

// wrapper is a program that becomes the command that follows its own arguments, or waits for it, and changes nothing
// that an import sees: coreutils' nice(1), nohup(1), stdbuf(1) and timeout(1), util-linux' setsid(1), ionice(1) and
// taskset(1). Those that change the user, the folder or the root are none.
type wrapper struct {
	short string   // options of one letter that take a value, joined or as the next argument
	long  []string // long options that take one, joined by "=" or as the next argument
	first int      // arguments that come before the command
	alone string   // options of one letter with which there is no command
}

var wrappers = map[string]wrapper{
	"nice":    {short: "n", long: []string{"adjustment"}},
	"nohup":   {},
	"setsid":  {},
	"stdbuf":  {short: "ioe", long: []string{"input", "output", "error"}},
	"timeout": {short: "ks", long: []string{"kill-after", "signal"}, first: 1},
	"ionice":  {short: "cn", long: []string{"class", "classdata"}, alone: "pPu"},
	"taskset": {first: 1, alone: "p"},
}

// managers are programs in Python that run a command ("poetry run python agent.py") with the interpreter of an environment
// that they choose. Their own interpreter loads none of the command's code.
var managers = []string{"poetry", "pipenv", "pdm", "hatch", "rye", "uv", "pipx", "conda", "mamba"}

// manager reports whether a program is such a manager, told to run a command.
func (e Entry) manager(argv []string) bool {
	return (e.Kind == Script || e.Kind == Module) && contains(managers, path.Base(e.Name)) && contains(argv, "run")
}

// Unwrap is the command that a command line comes to: without env(1) and what it is told, and without those wrappers that
// start their last arguments as they are (nice, nohup, setsid, stdbuf, timeout, ionice, taskset), which may be nested.
// around has what env(1) was told, for [Command.Over]. ok is false when there is no command, or an option is not read;
// then nothing is guessed.
func Unwrap(argv []string) (around Command, command []string, ok bool) {
	command, ok = around.unwrap(argv)
	return around, command, ok
}

func (c *Command) unwrap(argv []string) (command []string, ok bool) {
	for ok = len(argv) > 0; ok; {
		base := path.Base(argv[0])
		w, is := wrappers[base]
		switch {
		case base == "env":
			argv, ok = c.throughEnv(argv)
		case is:
			argv, ok = w.strip(argv[1:])
		default:
			return argv, true
		}
	}
	return nil, false
}

// strip takes away the wrapper's own arguments.
func (w wrapper) strip(args []string) ([]string, bool) {
	skip := func(n int) bool {
		if len(args) < n {
			return false
		}
		args = args[n:]
		return true
	}
	for len(args) > 0 && strings.HasPrefix(args[0], "-") && args[0] != "-" {
		a := args[0]
		args = args[1:]
		if a == "--" {
			break
		}
		if name, isLong := strings.CutPrefix(a, "--"); isLong {
			switch bare, _, _ := strings.Cut(name, "="); bare {
			case "pid", "pgid", "uid", "help", "version":
				return nil, false
			}
			if contains(w.long, name) && !skip(1) {
				return nil, false
			}
			continue
		}
		for i := 1; i < len(a); i++ {
			if strings.IndexByte(w.alone, a[i]) >= 0 {
				return nil, false
			}
			if strings.IndexByte(w.short, a[i]) >= 0 {
				if i == len(a)-1 && !skip(1) {
					return nil, false
				}
				break
			}
		}
	}
	ok := skip(w.first) && len(args) > 0
	return args, ok
}
