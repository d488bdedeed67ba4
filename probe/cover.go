package probe

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Need is what one death asks of the current tree.
type Need struct {
	// Tree is the identity keys of the roots, joined by the caller in a fixed order. Empty means that the identity is
	// unknown: such a need is probed alone and its result is not remembered.
	Tree string
	// Interpreter, Args, Path and Env are as in [Plan]. A result for one setting says nothing of another.
	Interpreter     string
	Args, Path, Env []string
	// Modules are asked for in this order. A need without modules is never met.
	Modules []string
}

// Plan is the probe of the need alone.
func (n Need) Plan(timeout time.Duration, noWrite bool) Plan {
	return Plan{Interpreter: n.Interpreter, Args: n.Args, Path: n.Path, Env: n.Env, Modules: n.Modules,
		Timeout: timeout, NoWrite: noWrite}
}

// Covers reports whether a healthy result for n answers m: the tree is known and the same, the setting is the same, and
// n loads every module of m. Nothing covers a need without modules.
func (n Need) Covers(m Need) bool {
	return n.Tree != "" && len(m.Modules) > 0 && n.setting() == m.setting() && subset(m.Modules, n.Modules)
}

// setting is everything but the modules, as a text that is different for different settings. The order of the
// environment means nothing.
func (n Need) setting() string {
	env := slices.Clone(n.Env)
	slices.Sort(env)
	var b strings.Builder
	for _, list := range [][]string{{n.Tree, n.Interpreter}, n.Args, n.Path, env} {
		for _, s := range list {
			b.WriteString(strconv.Quote(s)) // a quoted text holds no bare quote and no line end
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func subset(small, large []string) bool {
	for _, s := range small {
		if !slices.Contains(large, s) {
			return false
		}
	}
	return true
}

func sameSet(a, b []string) bool { return subset(a, b) && subset(b, a) }

// Union is needs that one probe can answer.
type Union struct {
	// Need asks for the modules of all sets, in the order in which they first appear.
	Need
	// Sets are the distinct sets of modules in the union, at least one.
	Sets []Set
}

// Set is one distinct set of modules, and which needs ask for it.
type Set struct {
	Need
	// Members are indexes into the list that was grouped.
	Members []int
}

// Members are the indexes of all needs in the union, in no particular order.
func (u Union) Members() []int {
	var out []int
	for _, s := range u.Sets {
		out = append(out, s.Members...)
	}
	return out
}

// Alone is what is probed after the union has failed: each distinct set by itself, because one broken module says
// nothing of the others. A union of one set has nothing left to try, and Alone is nil.
func (u Union) Alone() []Union {
	if len(u.Sets) < 2 {
		return nil
	}
	out := make([]Union, 0, len(u.Sets))
	for _, s := range u.Sets {
		out = append(out, Union{Need: s.Need, Sets: []Set{s}})
	}
	return out
}

// Group makes the fewest probes that can answer all needs when the tree is healthy: one for each tree and setting. A
// need without modules is in no union, and so has no result: empty is no pass. The order of the needs is kept.
func Group(needs []Need) []Union {
	var out []Union
	at := map[string]int{}
	for i, n := range needs {
		if len(n.Modules) == 0 {
			continue
		}
		key := n.setting()
		u, ok := at[key]
		if !ok || n.Tree == "" {
			u = len(out)
			at[key] = u
			joint := n
			joint.Modules = nil
			out = append(out, Union{Need: joint})
		}
		out[u].add(i, n)
	}
	return out
}

func (u *Union) add(i int, n Need) {
	for _, m := range n.Modules {
		if !slices.Contains(u.Modules, m) {
			u.Modules = append(u.Modules, m)
		}
	}
	for j := range u.Sets {
		if sameSet(u.Sets[j].Modules, n.Modules) {
			u.Sets[j].Members = append(u.Sets[j].Members, i)
			return
		}
	}
	u.Sets = append(u.Sets, Set{Need: n, Members: []int{i}})
}
