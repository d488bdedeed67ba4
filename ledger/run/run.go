// Package run is what is known of one execution of an agent: its name, lineage, recipe, phase and end, and what a
// person did to it. It is the registry's vocabulary, shared by the process that runs, the healer that may run it again
// and the stores between them.
//
// A run is created by [Store.Start], which takes the project's name for it in the same step. Phases only ever rise: ask
// [High] for the mark that counts.
package run

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// Schema is the version of the run format that this package writes.
const Schema = 1

// Marking says how a run's phases are known.
type Marking string

// The markings.
const (
	Unmarked   Marking = ""           // nobody marks: the phase is unknown
	Phases     Marking = "phases"     // the program marks its phases
	Idempotent Marking = "idempotent" // the whole run counts as before work
)

// Recipe is how to start a run again, unchanged. Its JSON form keeps every byte: what is not valid UTF-8 is an object with
// the bytes in base64.
type Recipe struct {
	Command []string `json:"command"`
	Dir     string   `json:"dir"`
	// Env is the whole environment, "KEY=value", less Mulligan's own run and launch variables.
	Env     []string `json:"env"`
	Marking Marking  `json:"marking,omitempty"`
}

// Runtime is the interpreter a run booted with, as the prober needs it.
type Runtime struct {
	Name        string `json:"name"`        // "python"
	Interpreter string `json:"interpreter"` // absolute path
	// Args are the interpreter's own flags that change what it imports.
	Args []string `json:"args,omitempty"`
	// Path is the search path that the program adds before the interpreter's own.
	Path []string `json:"path,omitempty"`
}

// Run is one execution.
type Run struct {
	Schema   int    `json:"schema"`
	ID       string `json:"id"`
	Revision uint64 `json:"revision"`
	Project  string `json:"project"`
	Name     string `json:"name"`
	// Lineage is the first run's id for it and all its replacements.
	Lineage string `json:"lineage"`
	// Replaces and Launch are set for a replacement: the run that died and the launch id that made this one.
	Replaces string `json:"replaces,omitempty"`
	Launch   string `json:"launch,omitempty"`
	// After is the run that had the name before this one took it by hand, and Next the run that was started by hand in
	// this one's place. Together with the ledger, which knows the replacement, they tell a waiter whom to follow.
	After string `json:"after,omitempty"`
	Next  string `json:"next,omitempty"`

	Recipe   Recipe          `json:"recipe"`
	Runtime  *Runtime        `json:"runtime,omitempty"`
	Instance ledger.Instance `json:"instance"`
	// PID is the program's process, zero before it was started.
	PID int `json:"pid,omitempty"`
	// PIDStart is the program's start time in clock ticks since boot; with PID it names the one process.
	PIDStart uint64     `json:"pid_start,omitempty"`
	Started  stamp.Time `json:"started"`
	Phase    Phase      `json:"phase"`
	// PhaseFile is where the program marks its phases, empty when it does not.
	PhaseFile string `json:"phase_file,omitempty"`

	Roots      []witness.Root     `json:"roots,omitempty"`
	Boot       []witness.Identity `json:"boot,omitempty"` // the roots' identities at boot
	Workspaces []string           `json:"workspaces,omitempty"`
	// WaitsFor are run names of the same project that this run waits for; they are decided first.
	WaitsFor []string `json:"waits_for,omitempty"`
	Log      string   `json:"log,omitempty"`
	// Supervised names whatever restarts this run by itself (a unit); such a run is never relaunched.
	Supervised string `json:"supervised,omitempty"`
	// Silenced says that whoever runs this holds its failure notice back until the healer has decided.
	Silenced bool `json:"silenced,omitempty"`

	Ended  *End    `json:"ended,omitempty"`
	Intent *Intent `json:"intent,omitempty"`
}

// Key is the ledger key of the run's lineage.
func (r Run) Key() ledger.Key { return ledger.Key{Project: r.Project, Lineage: r.Lineage} }

// Replacement is the run that takes r's place: the same recipe, name and lineage, unchanged. Its boot identities are
// for the caller to read.
func (r Run) Replacement(id, launch string, by ledger.Instance, now stamp.Time) Run {
	n := r
	n.Schema, n.ID, n.Revision = Schema, id, 0
	n.Replaces, n.Launch, n.Instance = r.ID, launch, by
	n.PID, n.PIDStart, n.Started, n.Phase, n.PhaseFile = 0, 0, now, Booting, ""
	n.Boot, n.Log, n.Ended, n.Intent, n.After, n.Next = nil, "", nil, nil, "", ""
	// Nobody watches a replacement's output.
	n.Silenced = true
	return n
}

// End is how a run ended.
type End struct {
	At   stamp.Time    `json:"at"`
	OK   bool          `json:"ok"`
	Exit classify.Exit `json:"exit"`
	// Cause is what the host knows for certain about a bad end.
	Cause classify.Reason `json:"cause,omitempty"`
	// Identities are the roots' identities at the end, read by the run's side; a root that is missing was not read.
	Identities []witness.Identity `json:"identities,omitempty"`
}

// IntentKind is what a person did to a run.
type IntentKind string

// The intents. A signal from outside is none of them.
const (
	Killed     IntentKind = "killed"
	Dismissed  IntentKind = "dismissed"
	Relaunched IntentKind = "relaunched" // a restart by hand is in progress or done
	Asked      IntentKind = "asked"      // a question about the run is open
)

// Code is the reason code that the ledger, answers and reports have for an intent.
func (k IntentKind) Code() string {
	if k == Relaunched {
		return "manual_relaunch"
	}
	return string(k)
}

// Intent is what a person wants; it is kept apart from the outcome.
type Intent struct {
	Kind IntentKind `json:"kind"`
	At   stamp.Time `json:"at"`
	By   string     `json:"by,omitempty"`
	Note string     `json:"note,omitempty"`
}

// Errors of stores that callers branch on.
var (
	ErrNotFound = errors.New("no such run")
	ErrExists   = errors.New("the run exists")
)

// NameHeldError means that a living run has the name.
type NameHeldError struct {
	Project, Name, Run string
	Instance           ledger.Instance
}

func (e *NameHeldError) Error() string {
	return fmt.Sprintf("the name %q of project %q is held by run %s (pid %d), which is alive: stop it or choose another name",
		e.Name, e.Project, e.Run, e.Instance.PID)
}

// Discarder is an optional power of a Store.
type Discarder interface {
	// Discard removes an ended run for which may says so, asked again under the run's lock, with those of its files that
	// lie in the store's own folder. It is durable when it returns; gone is false when the run stays.
	//
	// The last holder of a name stays while the run that had the name before is there: the name would go back to that one.
	// Otherwise the name is free afterwards.
	Discard(ctx context.Context, id string, may func(Run) bool) (gone bool, err error)
}

// Store keeps runs and who holds each name. Every method is durable when it returns.
type Store interface {
	// Start creates r and takes its name, as one step under the name's lock. allow is given the run that holds the name
	// now, nil when there is none, and refuses with an error, which Start returns; then nothing is written. A run id
	// that exists is ErrExists.
	Start(ctx context.Context, r Run, allow func(holder *Run) error) error
	// Get is a run by id, or ErrNotFound.
	Get(ctx context.Context, id string) (Run, error)
	// Holder is the run that took the name last, alive or not; ErrNotFound when nobody ever did.
	Holder(ctx context.Context, project, name string) (Run, error)
	// Update reads, lets f decide and writes, as one step against every other process. f must not block.
	Update(ctx context.Context, id string, f func(cur Run) (Run, error)) (Run, error)
	// List yields every run in no particular order; one that cannot be read is yielded as an error and does not end the
	// list.
	List(ctx context.Context) iter.Seq2[Run, error]
}

// Skipping is an optional power of a Store: its runs without those of which the caller knows enough, which are not even
// read. A Store without it is listed whole.
type Skipping interface {
	// ListBut is as List, but without the runs of which skip is true. It asks before it reads a run, and may leave runs in
	// of which it cannot ask.
	ListBut(ctx context.Context, skip func(id string) bool) iter.Seq2[Run, error]
}
