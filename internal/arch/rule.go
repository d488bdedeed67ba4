package arch

import (
	"fmt"
	"sort"
)

// Rule is one promise about the source.
type Rule struct {
	// Name is short and stable; the broken example in testdata bears it.
	Name string
	// Why is what the rule protects. It is printed with every finding.
	Why string
	// Check returns what breaks the rule.
	Check func(*Tree) []Finding
}

// Finding is one place that breaks a rule.
type Finding struct {
	Where string // file and line, file, or folder
	What  string
}

func (f Finding) String() string { return f.Where + ": " + f.What }

func findingf(where, format string, args ...any) Finding {
	return Finding{Where: where, What: fmt.Sprintf(format, args...)}
}

// Rules are all of them.
func Rules() []Rule {
	return []Rule{
		{"layout", "a visitor finds the eight words of the design and nothing else in the root; `restart` is the front " +
			"door and the README the landing page", layout},
		{"packagemap", "a package without a place on the map has no rules about its imports; decide its place first and " +
			"write it into Layers", packageMap},
		{"layers", "imports point one way, so that a host that wants the classifier is not given the engine, and the " +
			"core can be tested without any adapter", layers},
		{"modules", "a heavy or optional dependency lives in its own module, so that a host that wants a classifier is " +
			"not moved to our database driver", modules},
		{"nodoor", "a nested module and an example use public packages only: what our own command line can do, a " +
			"stranger's can do", noPrivateDoor},
		{"pureimports", "the core gets values and returns values; what it decides can be replayed, and tested in all " +
			"interleavings, only without a disk, a network, a log, a lock or chance", pureImports},
		{"purecalls", "time is an argument of the core and it returns work instead of doing it: a core that reads a clock, " +
			"waits or starts a goroutine cannot be replayed", pureCalls},
		{"testonly", "code made for tests is never linked into a program: it registers flags, weighs much, and is free " +
			"to panic", testOnly},
		{"packagedoc", "a reader begins at the package comment: what it is, which call first, what it refuses, what is " +
			"promised, how failure shows; two of them contradict each other sooner or later", packageDoc},
		{"exporteddoc", "an exported name is a promise, and a promise is a sentence", exportedDoc},
		{"examples", "an example that runs is the only documentation that cannot go stale", examples},
		{"filelength", "a file has one subject; past 700 lines it has two", fileLength},
		{"diskwrites", "only internal/durable writes files: what must survive a power cut is written in one place, " +
			"where the power is cut on purpose in tests", diskWrites},
		{"noexit", "the library never ends its host's process; only a main package does", noExit},
		{"noinit", "there is no package state: nothing registers itself, starts or reads the environment because it was " +
			"imported, and a dot import hides whose name is called", noInit},
	}
}

// sorted puts findings in a stable order, by place.
func sorted(in []Finding) []Finding {
	sort.SliceStable(in, func(i, j int) bool {
		if in[i].Where != in[j].Where {
			return in[i].Where < in[j].Where
		}
		return in[i].What < in[j].What
	})
	return in
}
