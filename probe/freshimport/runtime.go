package freshimport

import (
	"path"
	"strings"
)

// Name is the runtime's name in a run's boot record and in a root's declaration.
const Name = "python"

// Runtime is how a run's Python is set up, as the boot record keeps it.
type Runtime struct {
	// Interpreter is an absolute path. In a virtual environment it is a symlink, and stays one.
	Interpreter string
	// Args are the interpreter's own flags that change what it imports, one flag an argument.
	Args []string
	// Path is what the program has on its search path before the interpreter's own entries.
	Path []string
}

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
func (c Command) Runtime(interpreter string, env []string, at Place) Runtime {
	rt := Runtime{Interpreter: interpreter, Args: c.Args}
	safe := c.safePath
	if !c.ignoreEnv && lookup(env, "PYTHONSAFEPATH") != "" {
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
	list := lookup(env, "PYTHONPATH")
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

func lookup(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], key+"="); ok {
			return v
		}
	}
	return ""
}
