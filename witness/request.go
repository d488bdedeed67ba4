package witness

import (
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Request is what is known of one death. A field that is not known is left at its zero value; the findings then say
// which witness that costs.
type Request struct {
	// Verdict is what the failure text said: which name is missing, which root owns it, which roots asked for it.
	Verdict classify.Verdict
	// Roots are the roots that the run declared.
	Roots []Root
	// Boot and Death are the identities that the run's side recorded, at most one per root. A death identity is often
	// missing: the process may have had no time to read it.
	Boot  []Identity
	Death []Identity
	// Window spans from the boot to the death.
	Window stamp.Window
	// Rows are those of the update journal, in any order.
	Rows []journal.Row
	// Sources read the roots, by kind. A kind without one costs the witnesses that must read the tree.
	Sources map[string]Source
	// Modules knows, by runtime, where a module lives and what it binds: for "python", package classify/python. The
	// verdict's runtime is looked up, or else that of the root.
	Modules map[string]Modules
}

// Modules is what the search for a missing name must know of a runtime.
type Modules interface {
	// Files are the paths at which a module can live, relative to an entry of the search path, with slashes.
	Files(module string) []string
	// Binds reports whether the source of a module binds a name at its top level.
	Binds(src []byte, name string) bool
}

// relevant are the roots that a witness may belong to: the owner of the module that lacks the name first, then those
// whose code asked for it.
func (q *Request) relevant() []Root {
	var out []Root
	seen := map[string]bool{}
	for _, name := range append([]string{q.Verdict.Root}, q.Verdict.Asked...) {
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		for _, r := range q.Roots {
			if r.Name == name {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// modules is what is known of the runtime that the failure or the root belongs to, or nil.
func (q *Request) modules(r Root) Modules {
	if m := q.Modules[q.Verdict.Runtime]; m != nil {
		return m
	}
	return q.Modules[r.Runtime]
}

func find(ids []Identity, root string) (Identity, bool) {
	for _, id := range ids {
		if id.Root == root {
			return id, true
		}
	}
	return Identity{}, false
}
