package witness

import "github.com/mulligan-dev/mulligan/ledger/stamp"

// Kind is a kind of proof that an update happened under a run.
type Kind string

// The witnesses of the design. The probe (W4) is not a witness of the update but of the new tree's health; it lives in
// package probe.
const (
	BootIdentity  Kind = "boot_identity"  // W1: the tree at the death is not the tree at the boot
	UpdateJournal Kind = "update_journal" // W2: a journal row meets the run's life and changed the root
	FileProof     Kind = "file_proof"     // W3: the missing name existed on one side only
)

// Evidence is one witness that holds.
type Evidence struct {
	Kind Kind   `json:"kind"`
	Root string `json:"root"`
	// From and To are identity keys.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	// When is the span in which the update is known to have happened.
	When stamp.Window `json:"when"`
	// Update is the journal row's id (W2).
	Update string `json:"update,omitempty"`
	// Culprit is the commit that changed the missing name's presence (W3).
	Culprit *Culprit `json:"culprit,omitempty"`
	// Detail is one plain sentence for people.
	Detail string `json:"detail"`
}

// Culprit is the newest commit between boot and death that changed the presence of the missing name.
type Culprit struct {
	Root    string     `json:"root"`
	Commit  string     `json:"commit"`
	Subject string     `json:"subject,omitempty"`
	When    stamp.Time `json:"when"`
	// Path is the file whose change removed or added the name.
	Path string `json:"path,omitempty"`
	// Name is the module or module:symbol that changed.
	Name string `json:"name,omitempty"`
}

// Absence says why a witness does not hold, for reports.
type Absence struct {
	Kind Kind   `json:"kind"`
	Root string `json:"root,omitempty"`
	Why  string `json:"why"`
}

// Findings is the outcome of a search for witnesses.
type Findings struct {
	Evidence []Evidence `json:"evidence"`
	Absent   []Absence  `json:"absent,omitempty"`
	// ClockJump is set when the window from boot to death runs backwards, so that nothing can be a witness.
	ClockJump bool `json:"clock_jump,omitempty"`
}

// Holds reports whether at least one witness holds.
func (f Findings) Holds() bool { return len(f.Evidence) > 0 }

// Culprit is the first culprit that any evidence names, or nil.
func (f Findings) Culprit() *Culprit {
	for _, e := range f.Evidence {
		if e.Culprit != nil {
			return e.Culprit
		}
	}
	return nil
}
