package freshimport

import (
	"path"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe"
)

// Setting is how a run was set up, from its boot record.
type Setting struct {
	Runtime Runtime
	// Env is the run's whole environment; the plan keeps what [Env] allows.
	Env []string
	// Roots and Workspaces decide which folders of the search path are user code.
	Roots      []classify.Root
	Workspaces []string
	// Real resolves symlinks for that decision; the plan's path is left as the run had it, so that a release that is
	// switched by a symlink is probed where it leads now. Nil compares the folders as written.
	Real func(dir string) string
}

// Plan is the probe of modules in a setting. ok is false without modules: empty is no pass.
func Plan(s Setting, modules []string) (p probe.Plan, ok bool) {
	if len(modules) == 0 {
		return probe.Plan{}, false
	}
	p = probe.Plan{Interpreter: s.Runtime.Interpreter, Args: s.Runtime.Args, Modules: modules, Env: Env(s.Env)}
	for _, d := range s.Runtime.Path {
		if s.workspace(d) || s.Real != nil && s.workspace(s.Real(d)) {
			continue
		}
		p.Path = append(p.Path, d)
	}
	return p, true
}

// Plan is the probe of modules in a setting, as [Plan] is for Python. What the run loaded before its program (node
// --require) is left out where it is user code.
func (d Dialect) Plan(s Setting, modules []string) (p probe.Plan, ok bool) {
	if p, ok = Plan(s, modules); !ok {
		return p, false
	}
	p.Env, p.Args = d.Env(s.Env), nil
	for _, a := range s.Runtime.Args {
		if f := d.File(a); f == "" || !s.workspace(f) && (s.Real == nil || !s.workspace(s.Real(f))) {
			p.Args = append(p.Args, a)
		}
	}
	return p, true
}

// workspace reports whether a folder is user code: it lies in a workspace, and in no root whose folder is longer than
// the workspace's. At equal length it is the workspace's.
func (s Setting) workspace(dir string) bool {
	ws := longest(dir, s.Workspaces)
	if ws < 0 {
		return false
	}
	for _, r := range s.Roots {
		if longest(dir, r.Dirs) > ws {
			return false
		}
	}
	return true
}

// Managed reports whether a file or folder lies in a root, and in no workspace whose folder is as long or longer.
func (s Setting) Managed(path string) bool {
	for _, r := range s.Roots {
		if n := longest(path, r.Dirs); n >= 0 && n > longest(path, s.Workspaces) {
			return true
		}
	}
	return false
}

// longest is the length of the longest of the folders that hold dir, -1 for none. Only whole components count.
func longest(dir string, folders []string) int {
	dir = path.Clean(dir)
	most := -1
	for _, f := range folders {
		if f == "" {
			continue
		}
		f = path.Clean(f)
		if dir == f || f == "/" || strings.HasPrefix(dir, f+"/") {
			most = max(most, len(f))
		}
	}
	return most
}
