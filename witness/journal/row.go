package journal

import "github.com/mulligan-dev/mulligan/ledger/stamp"

// Status is how an update ended.
type Status string

// The statuses of a row. A row without a closing is Begun.
const (
	Begun   Status = "begun"
	Updated Status = "updated" // the command succeeded and a root changed
	Partial Status = "partial" // the command failed, a root changed all the same
	Failed  Status = "failed"  // the command failed, nothing changed
	Skipped Status = "skipped" // the command succeeded, nothing changed
)

// Row is one update. It is written twice under one ID: when the update begins, and when it is closed.
type Row struct {
	Schema int        `json:"schema"`
	ID     string     `json:"id"`
	Status Status     `json:"status"`
	Begun  stamp.Time `json:"begun"`
	// Closed is zero while the update is under way.
	Closed  stamp.Time `json:"closed,omitzero"`
	Command []string   `json:"command,omitempty"`
	// Boot, PIDNS, PID and Start name the update's process: while it lives the tree is not quiet, even when the writer
	// of the row was killed.
	Boot  string `json:"boot,omitempty"`
	PIDNS string `json:"pid_ns,omitempty"`
	PID   int    `json:"pid,omitempty"`
	Start uint64 `json:"start,omitempty"` // in clock ticks since boot, as in /proc/PID/stat
	Roots []Root `json:"roots"`
	Exit  int    `json:"exit"`
	// Stdout and Stderr are bounded tails of what the command printed.
	Stdout string `json:"stdout,omitempty"`
	Stderr string `json:"stderr,omitempty"`
	// ClosedBy says who closed the row when it was not its writer.
	ClosedBy string `json:"closed_by,omitempty"`
}

// Root is what one update did to one root.
type Root struct {
	Name string `json:"name"`
	// Kind, Dirs and Package say which tree it is: a name alone may mean another tree elsewhere.
	Kind    string   `json:"kind"`
	Dirs    []string `json:"dirs,omitempty"`
	Package string   `json:"package,omitempty"`
	// Declared are the folders as they were declared, where a symlink leads to one of them.
	Declared []string `json:"declared,omitempty"`
	// Modules and Bindings are as the root declares them, so that whoever closes the row reads the same identity.
	Modules  []string `json:"modules,omitempty"`
	Bindings []string `json:"bindings,omitempty"`
	// From and To are identity keys; empty when the identity could not be read.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// FromRevision and ToRevision are the revision parts of the keys.
	FromRevision string `json:"from_revision,omitempty"`
	ToRevision   string `json:"to_revision,omitempty"`
}

// Changed reports that both identities were read and differ.
func (r Root) Changed() bool { return r.From != "" && r.To != "" && r.From != r.To }

// Open reports that the update has not been closed.
func (r Row) Open() bool { return r.Status == Begun }

// Span is the row's interval; its end is zero while the row is open.
func (r Row) Span() stamp.Window { return stamp.Window{From: r.Begun, To: r.Closed} }
