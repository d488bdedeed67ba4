package ledger

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Errors of stores that callers branch on.
var (
	// ErrExists means that the lineage has its record already: its one do-over is someone's.
	ErrExists = errors.New("the lineage has a record")
	// ErrNotFound means that there is no such record.
	ErrNotFound = errors.New("no such record")
)

// DamageError is a record that is there and cannot be used. It keeps its lineage: nothing is launched for it.
type DamageError struct {
	Key  Key    // zero when not even the key can be told
	Path string // where it lies
	Why  string
	// Torn is set when the content fails its checksum, as after a power cut before the claimer was told that it won.
	Torn bool
	// Newer is set when a later version of Mulligan wrote it.
	Newer bool
}

func (e *DamageError) Error() string {
	if e.Newer {
		return fmt.Sprintf("record %s was written by a newer version (%s): update mulligan to read it", e.Path, e.Why)
	}
	return fmt.Sprintf("record %s is damaged: %s", e.Path, e.Why)
}

// Store keeps one record per lineage. Every method is durable when it returns: what it reported survives a power cut.
type Store interface {
	// Create writes a lineage's first record, exclusively: exactly one caller ever gets nil for a key, all others
	// ErrExists, for good.
	Create(ctx context.Context, r Record) error
	// Get is the record of a key, ErrNotFound, or a *DamageError.
	Get(ctx context.Context, k Key) (Record, error)
	// Update reads, lets f decide and writes, as one step against every other process. now is the store's clock, read
	// inside the step. What f returns with a nil error is written and returned, unless its revision is the present one:
	// then nothing is written; another key or an earlier revision is refused. f may apply several changes and must not
	// block. An error of f is returned, wrapped, and nothing is written; with any other error the change may be written
	// or not: read again.
	Update(ctx context.Context, k Key, f func(cur Record, now stamp.Time) (Record, error)) (Record, error)
	// List yields every record in no particular order; one that cannot be used is yielded as its *DamageError and does
	// not end the list.
	List(ctx context.Context) iter.Seq2[Record, error]
}

// Newest is an optional power of a Store: the n records that changed last, newest first, without reading the others.
type Newest interface {
	Newest(ctx context.Context, n int) ([]Record, error)
}

// Working is an optional power of a Store: the records that still need work, without reading those at rest.
type Working interface {
	// Working yields every open record, every other one for which wants says so, and, as its error, every one that cannot
	// be used, in no particular order. wants must depend on the record alone, and rule is a name for it: the store keeps
	// the answers under that name, also between processes, and asks again only for records that were written since.
	//
	// A record that was put into the store from outside may be missing, for an hour at the most.
	Working(ctx context.Context, rule string, wants func(Record) bool) iter.Seq2[Record, error]
}

// Untold is an optional power of Answers: the last entries that are loud and not told, without going through the others.
type Untold interface {
	// Untold yields what Answers would, less everything that nobody has to be told any more.
	Untold(ctx context.Context) iter.Seq2[Answer, error]
}

// Answer is what was decided about a death that gets no record.
type Answer struct {
	Schema  int        `json:"schema"`
	Run     string     `json:"run"`
	Key     Key        `json:"key"`
	Name    string     `json:"name"`
	At      stamp.Time `json:"at"`
	Died    stamp.Time `json:"died"`
	Verdict string     `json:"verdict"` // skip or leave_alone
	Reason  string     `json:"reason"`
	Text    string     `json:"text"` // one plain sentence
	// Death is what is known of it.
	Death *Death `json:"death,omitempty"`
	// Signature is what the text said, where it said something.
	Signature *Signature `json:"signature,omitempty"`
	// Loud is set for an answer whose failure was silenced elsewhere, so that it has to be told here.
	Loud bool `json:"loud,omitempty"`
	// Told is set on the repeated entry that is appended once the notice was acknowledged.
	Told bool `json:"told,omitempty"`
}

// Answers is the append-only log of answers, keyed by run; the last entry of a run counts.
type Answers interface {
	// Append adds an entry. It is durable when Append returns.
	Append(ctx context.Context, a Answer) error
	// Answer is a run's last entry; ok is false when it has none.
	Answer(ctx context.Context, run string) (a Answer, ok bool, err error)
	// Answers yields the last entry of every run, oldest first.
	Answers(ctx context.Context) iter.Seq2[Answer, error]
}

// Syncer is an optional power of a Store that makes a record visible to others before its creator has flushed it.
// Sync returns when the present record of a key is durable; whoever relies on a record that it has only read (to remove
// a doorbell, say) calls it first. A Store without it shows nothing that is not durable.
type Syncer interface {
	Sync(ctx context.Context, k Key) error
}

// Reclaimer is an optional power of a Store whose first revision can be torn by a power cut before its creator was told
// that it won.
type Reclaimer interface {
	// Reclaim puts r in the place of a torn record, exclusively: of any number of callers at most one gets nil. A record
	// that is sound is ErrExists. One whose lineage has a storm slot or evidence was more than a claim: it stays damaged,
	// a *DamageError that is not torn.
	Reclaim(ctx context.Context, r Record) error
}

// Evidence keeps what a decision was based on, one set of files for a lineage, written once.
type Evidence interface {
	// Put writes the files and a manifest of their SHA-256 hashes, and returns where they lie, relative to the state
	// root. All of it is durable when Put returns, and all of it appears at once. A lineage that has evidence already
	// keeps it: the same files again are no error, others are ErrExists together with the path of what is there.
	Put(ctx context.Context, k Key, files map[string][]byte) (path string, err error)
	// Get is the evidence of a lineage, checked against its manifest: ErrNotFound when there is none, a *DamageError when
	// a file is missing or differs.
	Get(ctx context.Context, k Key) (files map[string][]byte, err error)
}

// EvidenceDiscarder is an optional power of Evidence, for what a tombstone leaves behind.
type EvidenceDiscarder interface {
	// DiscardEvidence removes the evidence of a lineage, durably; gone is false when there was none.
	DiscardEvidence(ctx context.Context, k Key) (gone bool, err error)
}

// ReportDiscarder is an optional power of Reports.
type ReportDiscarder interface {
	// DiscardReport removes the report of an episode, durably; gone is false when there was none.
	DiscardReport(ctx context.Context, episode string) (gone bool, err error)
}

// AnswerPruner is an optional power of Answers.
type AnswerPruner interface {
	// PruneAnswers drops the runs for whose last entry old says so, and returns how many. Entries that cannot be read
	// stay, and so does everything when the process is killed on the way.
	PruneAnswers(ctx context.Context, old func(Answer) bool) (int, error)
}

// Reports keeps the rendered report of each episode, by format ("report.json", "report.md"); a later one replaces it.
type Reports interface {
	// PutReport replaces the report's files; each is whole at every moment, and durable when PutReport returns.
	PutReport(ctx context.Context, episode string, files map[string][]byte) error
	// GetReport is the present report, ErrNotFound when the episode has none.
	GetReport(ctx context.Context, episode string) (files map[string][]byte, err error)
}
