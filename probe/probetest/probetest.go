// Package probetest is the promise of a [probe.Prober] as checks that any implementation can be run through. It starts
// real interpreters and writes only into the test's own temporary folders.
//
// Call [Run] with a [Subject]: the prober, the interpreter and a [Language] in which the suite writes the modules it
// needs. [Python], [Node], [Ruby], [PHP], [JVM] and [Shell] are there, [C] for a compiler that the caller names; another
// runtime brings its own. A language that cannot do something (fork, say) leaves it
// out, and the checks that need it are skipped with a line that says so.
//
// It refuses a subject without a prober or an interpreter. What is promised: each check stands alone, and its failure
// names the promise that was broken, not only the value that was wrong. [Verify] gives the failures as values, for
// tests of the suite itself.
package probetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
)

// Subject is what is tested.
type Subject struct {
	Prober probe.Prober
	// Interpreter, Args and Env are the setting of every plan. Env is the environment of a run, from which the prober
	// may pass on what it needs.
	Interpreter string
	Args        []string
	Env         []string
	Language    Language
}

// Language writes modules for one runtime.
type Language struct {
	// Write puts a module into a folder of the search path. does says what it does when it is loaded, with arg as its
	// argument. It returns [ErrCannot] for what the language cannot do.
	Write func(dir, module string, does Behaviour, arg string) error
	// PathVariable is the variable that adds folders to the search path, such as PYTHONPATH.
	PathVariable string
	// Inert is set where loading runs no code of a module, as with classes and native objects that are only looked
	// through. Then a module that is loaded leaves no trace, and every module that leaves one is a promise broken.
	Inert bool
}

// ErrCannot means that a language has no way to do something.
var ErrCannot = errors.New("this language cannot do that")

// Behaviour is what a module does when it is loaded.
type Behaviour string

// The behaviours. Those that write a file create it whole before anything else can go wrong.
const (
	Note      Behaviour = "note"       // appends its own name and a line end to the file arg
	Raise     Behaviour = "raise"      // fails with the message arg
	Load      Behaviour = "load"       // loads the module arg
	Exit      Behaviour = "exit"       // ends the program as a program does, with success
	ExitHard  Behaviour = "exit_hard"  // ends the process at once with exit code 0
	Crash     Behaviour = "crash"      // dies of SIGABRT or SIGSEGV
	Loop      Behaviour = "loop"       // writes its process id to the file arg, then never returns
	Child     Behaviour = "child"      // starts a process that lives on with every descriptor, and writes its id to arg
	ChildLoop Behaviour = "child_loop" // does the same and then never returns
	Fork      Behaviour = "fork"       // forks; the child goes on loading, the parent waits for it and exits with code 0
	Thread    Behaviour = "thread"     // leaves a thread running that never ends
	Flood     Behaviour = "flood"      // prints 4 MiB to stdout and stderr, arg last
	FloodFail Behaviour = "flood_fail" // prints 4 MiB, then fails with the message arg
	Complain  Behaviour = "complain"   // prints to stderr what looks like a failure, and goes on
	Input     Behaviour = "input"      // fails unless stdin is at its end at once
	Place     Behaviour = "place"      // writes its working folder and the names in it to arg, a line each
	Environ   Behaviour = "environ"    // writes its environment to arg, each variable with a NUL at its end
	Chatter   Behaviour = "chatter"    // writes words of success to every open descriptor and ends with code 0
)

// Failure is a promise that a prober broke.
type Failure struct {
	Check   string
	Promise string
	Got     string
}

func (f Failure) String() string {
	return fmt.Sprintf("%s: the promise %q is broken: %s", f.Check, f.Promise, f.Got)
}

// Run checks every promise, each in a subtest of its own, in parallel.
func Run(t *testing.T, s Subject) {
	t.Helper()
	s.mustBeWhole(t)
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			switch err := c.try(t, s); {
			case errors.Is(err, ErrCannot):
				t.Skipf("%s: %v", c.name, err)
			case err != nil:
				t.Error(Failure{Check: c.name, Promise: c.promise, Got: err.Error()})
			}
		})
	}
}

// Verify checks the named promises, all without names, one after the other, and returns those that are broken. It is
// for tests that a broken prober is caught.
func Verify(t testing.TB, s Subject, names ...string) []Failure {
	t.Helper()
	s.mustBeWhole(t)
	var out []Failure
	known := map[string]bool{}
	for _, c := range checks {
		known[c.name] = true
		if len(names) > 0 && !contains(names, c.name) {
			continue
		}
		if err := c.try(t, s); err != nil && !errors.Is(err, ErrCannot) {
			out = append(out, Failure{Check: c.name, Promise: c.promise, Got: err.Error()})
		}
	}
	for _, n := range names {
		if !known[n] {
			t.Fatalf("probetest has no check %q", n)
		}
	}
	return out
}

// Names are the checks, in the order in which they run.
func Names() []string {
	var out []string
	for _, c := range checks {
		out = append(out, c.name)
	}
	return out
}

func (s Subject) mustBeWhole(t testing.TB) {
	t.Helper()
	if s.Prober == nil || s.Interpreter == "" || s.Language.Write == nil {
		t.Fatal("probetest: the subject needs a prober, an interpreter and a language")
	}
}

// check is one promise.
type check struct {
	name    string
	promise string
	run     func(b *bench) error
}

func (c check) try(t testing.TB, s Subject) error {
	b := &bench{Subject: s, tree: t.TempDir(), notes: t.TempDir(), begun: time.Now()}
	defer b.cleanUp()
	return c.run(b)
}

// bench is one check's workplace: a tree of modules and a folder for what they write down.
type bench struct {
	Subject
	tree, notes string
	begun       time.Time
	started     []string // files that hold ids of processes that a module started
}

// short bounds a probe that is meant to run out of time, long one that is not.
const (
	short = 700 * time.Millisecond
	long  = 40 * time.Second
)

func (b *bench) file(name string) string { return filepath.Join(b.notes, name) }

func (b *bench) write(module string, does Behaviour, arg string) error {
	return b.Language.Write(b.tree, module, does, arg)
}

func (b *bench) plan(modules ...string) probe.Plan {
	return probe.Plan{
		Interpreter: b.Interpreter, Args: b.Args, Env: b.Env, Path: []string{b.tree}, Modules: modules, Timeout: long,
	}
}

// probe runs a plan that is not expected to return an error.
func (b *bench) probe(p probe.Plan) (probe.Result, error) {
	r, err := b.Prober.Probe(context.Background(), p)
	if err != nil {
		return r, fmt.Errorf("Probe returned the error %v; the error is for a context that ended", err)
	}
	return r, nil
}

// want probes modules and compares the outcome.
func (b *bench) want(outcome probe.Outcome, modules ...string) (probe.Result, error) {
	r, err := b.probe(b.plan(modules...))
	if err != nil {
		return r, err
	}
	return r, expect(r, outcome)
}

func expect(r probe.Result, outcome probe.Outcome) error {
	if r.Outcome != outcome {
		return fmt.Errorf("the outcome is %q, want %q (failed %q, detail %q)", r.Outcome, outcome, r.Failed, clip(r.Detail))
	}
	return nil
}

func clip(s string) string {
	if len(s) > 300 {
		return "..." + s[len(s)-300:]
	}
	return s
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// read is a file that a module wrote, empty if it did not.
func (b *bench) read(name string) string {
	data, err := os.ReadFile(b.file(name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}
