package freshimport

import (
	"path"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// Name is the runtime's name in [run.Runtime] and in a root's declaration.
const Name = "python"

// Place is what the file system says of a command line, read by the caller.
type Place struct {
	// Dir is the run's working folder, absolute.
	Dir string
	// Script is the script's path, absolute and with symlinks resolved, as Python computes its search path; empty when
	// the command names none.
	Script string
	// ScriptIsTree is set for a folder or an archive that is run by its __main__: it is itself on the search path.
	ScriptIsTree bool
}

// Runtime is the interpreter as a prober needs it. interpreter is its absolute path, env the environment the program is
// started with ([Command.Over]). Path comes out as the program finds it at its start: the folder of the script, or the
// working folder for -m and -c, then PYTHONPATH; a workspace in it is left out only when a plan is made.
func (c Command) Runtime(interpreter string, env []string, at Place) run.Runtime {
	rt := run.Runtime{Name: Name, Interpreter: interpreter, Args: c.Args}
	safe := c.safePath
	if !c.ignoreEnv && value(env, "PYTHONSAFEPATH") != "" {
		safe = true
	}
	switch {
	case c.Entry.Kind == Script && at.ScriptIsTree:
		rt.Path = append(rt.Path, at.Script) // also with -P: there is nowhere else to find its __main__
	case safe:
	case c.Entry.Kind == Script:
		rt.Path = append(rt.Path, path.Dir(at.Script))
	default:
		rt.Path = append(rt.Path, path.Clean(at.Dir))
	}
	if c.ignoreEnv {
		return rt
	}
	list := value(env, "PYTHONPATH")
	if list == "" {
		return rt
	}
	for _, d := range strings.Split(list, ":") {
		if !path.IsAbs(d) {
			d = path.Join(at.Dir, d) // an empty entry is the working folder
		}
		rt.Path = append(rt.Path, d)
	}
	return rt
}

func value(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], key+"="); ok {
			return v
		}
	}
	return ""
}
