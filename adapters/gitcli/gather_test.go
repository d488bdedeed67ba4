package gitcli_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

const (
	w1 = witness.BootIdentity
	w2 = witness.UpdateJournal
	w3 = witness.FileProof
)

func TestUpdateBetweenBootAndDeath(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	broke := s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.clock(-15 * time.Minute)
	s.repo.Commit("unrelated", "acme/other.py", "x = 1\n")
	s.dies(-10 * time.Minute)
	// Also without a reading at the death: the reflog knows.
	f := s.expect(w1, w3)
	s.culprit(f, broke)
	s.because(f, w2, "no update of this root")

	s.diesReading(-10 * time.Minute)
	f = s.expect(w1, w3)
	s.culprit(f, broke)
	c := f.Culprit()
	if c.Subject != "drop Frame" || c.Path != "acme/wire.py" || c.Name != "acme.wire:Frame" || c.Root != "acme" {
		t.Errorf("culprit is %+v", c)
	}
}

// From what the interpreter printed to the commit that did it.
func TestFromTheTextToTheCulprit(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	broke := s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.dies(-10 * time.Minute)
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New()}})
	if err != nil {
		t.Fatal(err)
	}
	s.req.Verdict = judge.Classify(classify.Input{
		Text: []byte(fmt.Sprintf("Traceback (most recent call last):\n  File \"%[1]s/acme/cli.py\", line 1, in <module>\n    from acme.wire import Frame\n"+
			"ImportError: cannot import name 'Frame' from 'acme.wire' (%[1]s/acme/wire.py)\n", s.repo.Dir)),
		Exit: classify.Exit{Code: 1}, Roots: []classify.Root{s.root.Root},
	})
	s.culprit(s.expect(w1, w3), broke)
}

func TestNothingChanged(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.dies(-10 * time.Minute)
	s.because(s.expect(), w1, "the root held")
	s.diesReading(-10 * time.Minute)
	f := s.expect()
	s.because(f, w1, "at the boot and at the death")
	s.because(f, w3, "existed at the boot and at the death")
}

func TestUpdateAfterAnOrdinaryCrashIsNoWitness(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.dies(-10 * time.Minute)
	s.clock(-5 * time.Minute)
	s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.req.Rows = []journal.Row{s.row(-6*time.Minute, -5*time.Minute, journal.Updated, "a", "b")}
	f := s.expect()
	s.because(f, w1, "came after the death")
	s.because(f, w2, "began after the death")
}

func TestUpdateThatSpansTheDeath(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	// The files change about now; the run dies a minute on, HEAD moves after that.
	s.clock(2 * time.Minute)
	broke := s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.dies(time.Minute)
	f := s.expect(w1, w3)
	s.culprit(f, broke)
	if !strings.Contains(f.Evidence[0].Detail, "had begun to change files when the run died") {
		t.Errorf("detail is %q", f.Evidence[0].Detail)
	}
}

func TestDeletionThatSpansTheDeathIsToldByItsFolder(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.missing("acme.wire", "")
	s.boots(-30 * time.Minute)
	s.repo.Git("rm", "-q", "acme/wire.py")
	s.clock(2 * time.Minute)
	broke := s.repo.Commit("drop wire")
	s.dies(time.Minute)
	s.culprit(s.expect(w1, w3), broke)
}

func TestPullCaughtHalfWay(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	// The reading at the death sees new files on the old commit.
	s.repo.Write("acme/wire.py", withoutFrame)
	s.diesReading(time.Minute)
	s.clock(2 * time.Minute)
	broke := s.repo.Commit("drop Frame")
	s.culprit(s.expect(w1, w3), broke)
}

func TestDifferenceInTheDirtyPartAlone(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.repo.Write("acme/other.py", "x = 1\n", "README", "changed")
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(), w1, "is not on the failing stack")

	s.repo.Write("acme/cli.py", "from acme.wire import Frame, Codec\n")
	s.diesReading(-10 * time.Minute)
	f := s.expect(w1)
	if !strings.Contains(f.Evidence[0].Detail, "acme/cli.py") {
		t.Errorf("detail is %q, want the file named", f.Evidence[0].Detail)
	}
}

func TestUncommittedRemovalIsProofWithoutCulprit(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.missing("acme.wire", "")
	s.boots(-30 * time.Minute)
	s.repo.Remove("acme/wire.py")
	s.diesReading(-10 * time.Minute)
	f := s.expect(w1, w3)
	if f.Culprit() != nil || !strings.Contains(f.Evidence[1].Detail, "not committed") {
		t.Errorf("findings are %s", dump(f))
	}
}

func TestMoveThatOverwroteWhatWasDirty(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.missing("acme.wire", "")
	s.repo.Write("acme/wire.py", "local = 1\n")
	s.boots(-30 * time.Minute)
	s.repo.Remove("acme/wire.py")
	s.clock(-20 * time.Minute)
	broke := s.repo.Commit("drop wire")
	s.dies(-10 * time.Minute)
	s.culprit(s.expect(w1, w3), broke)
}

func TestOldFileOnTheNewCommitIsKnown(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	first := s.repo.Head()
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame, "acme/other.py", "x = 1\n")
	s.repo.Git("checkout", "-q", first, "--", "acme/wire.py")
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(w1), w3, "existed at the boot and at the death")
}

func TestSymbolInUncommittedFileIsNotGuessed(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.repo.Write("acme/wire.py", withoutFrame+"# local\n")
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(w1), w3, "held changes at the death that no commit holds")
}

func TestBindingOnTheStack(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.root.Bindings = []string{"acme._native", "acme._unused"}
	s.req.Roots = []witness.Root{s.root}
	s.repo.Write(".gitignore", "*.so\n")
	s.clock(-40 * time.Minute)
	s.repo.Commit("ignore", "acme/_native.cpython-312-x86_64-linux-gnu.so", "1", "acme/_unused.so", "1")
	s.boots(-30 * time.Minute)
	if n := len(s.req.Boot[0].Bindings); n != 2 {
		t.Fatalf("the identity holds %d bindings, want 2: %+v", n, s.req.Boot[0])
	}
	s.repo.Write("acme/_unused.so", "22")
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(), w1, "is not on the failing stack")

	// One that is gone is known by its dotted name, which begins like every module's.
	s.repo.Remove("acme/_unused.so")
	s.req.Verdict.ManagedModules = []string{"acme", "acme.cli"}
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(), w1, "is not on the failing stack")

	s.missing("acme._native", "")
	s.repo.Write("acme/_native.cpython-312-x86_64-linux-gnu.so", "22")
	s.diesReading(-10 * time.Minute)
	s.expect(w1)
}

func TestCommitOfWhatTheRunBootedWithChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.repo.Write("acme/wire.py", withoutFrame)
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	s.repo.Commit("what was there")
	s.dies(-10 * time.Minute)
	s.because(s.expect(), w1, "the root held")
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(), w1, "no file of the root differs")
}

func TestCommitElsewhereInTheRepositoryChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.root.Dirs = []string{filepath.Join(s.repo.Dir, "acme")}
	s.req.Roots = []witness.Root{s.root}
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	s.repo.Commit("docs", "README", "new")
	s.dies(-10 * time.Minute)
	s.expect()
	s.diesReading(-10 * time.Minute)
	s.because(s.expect(), w1, "no file of the root differs")
}

func TestRootThatIsThePackageItself(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.root.Dirs = []string{filepath.Join(s.repo.Dir, "acme")}
	s.req.Roots = []witness.Root{s.root}
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	broke := s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.dies(-10 * time.Minute)
	s.culprit(s.expect(w1, w3), broke)
	s.req.Verdict.Frames = nil
	s.culprit(s.expect(w1, w3), broke)
}

func TestWindowThatRunsBackwards(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.clock(-20 * time.Minute)
	s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.diesReading(-40 * time.Minute)
	f := s.expect()
	if !f.ClockJump {
		t.Error("ClockJump is not set")
	}
	s.because(f, w1, "the clock jumped")
}

func TestUnknownBootAndLostPast(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.dies(-10 * time.Minute)
	boot := s.req.Boot
	s.req.Boot = nil
	f := s.expect()
	s.because(f, w1, "at the boot was not recorded")
	s.because(f, w3, "at the boot was not recorded")

	s.req.Boot = boot
	s.clock(-20 * time.Minute)
	s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.repo.Remove(".git/logs")
	s.because(s.expect(), w1, "the history does not reach back")
}

// row is one update of the story's root, with keys that are not revisions.
func (s *story) row(begun, closed time.Duration, status journal.Status, from, to string) journal.Row {
	r := journal.Row{ID: "u-" + string(status), Status: status, Begun: s.at(begun), Closed: s.at(closed), Command: []string{"git", "pull"},
		Roots: []journal.Root{{Name: "theirs", Kind: s.root.Kind, Dirs: s.root.Dirs, From: from, To: to}}}
	if status == journal.Begun {
		r.Closed = stamp.Time{}
	}
	return r
}

func TestUpdateJournal(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	s.dies(-10 * time.Minute)
	in := func(status journal.Status, from, to string) journal.Row {
		return s.row(-20*time.Minute, -15*time.Minute, status, from, to)
	}
	with := func(r journal.Row, change func(*journal.Root)) journal.Row {
		change(&r.Roots[0])
		return r
	}
	tests := []struct {
		name string
		row  journal.Row
		why  string // empty when the row is a witness
	}{
		{"an update in the run's life", in(journal.Updated, "a", "b"), ""},
		{"a failed one that changed half the tree", in(journal.Partial, "a", "b"), ""},
		{"a skipped one", in(journal.Skipped, "a", "a"), "changed nothing in this root"},
		{"a failed one that changed nothing", in(journal.Failed, "a", "a"), "changed nothing in this root"},
		{"one that could not read the identity", in(journal.Updated, "a", ""), "could not read"},
		{"one that began before the death and closed after it", s.row(-11*time.Minute, -5*time.Minute, journal.Updated, "a", "b"), ""},
		{"one that began before the boot and closed after it", s.row(-40*time.Minute, -29*time.Minute, journal.Updated, "a", "b"), ""},
		{"one after the death", s.row(-9*time.Minute, -8*time.Minute, journal.Updated, "a", "b"), "began after the death"},
		{"one before the boot", s.row(-50*time.Minute, -40*time.Minute, journal.Updated, "a", "b"), "ended before the boot"},
		{"one that is open", s.row(-20*time.Minute, 0, journal.Begun, "a", ""), "has not been closed"},
		{"another root of the same name", with(in(journal.Updated, "a", "b"), func(r *journal.Root) { r.Name, r.Dirs = "acme", []string{"/elsewhere"} }), "no update of this root"},
		{"a folder with the same beginning", with(in(journal.Updated, "a", "b"), func(r *journal.Root) { r.Dirs = []string{s.repo.Dir + "-2"} }), "no update of this root"},
		{"another kind in the same folder", with(in(journal.Updated, "a", "b"), func(r *journal.Root) { r.Kind = "folder" }), "no update of this root"},
		{"a tree around this one", with(in(journal.Updated, "a", "b"), func(r *journal.Root) { r.Dirs = []string{filepath.Dir(s.repo.Dir)} }), ""},
	}
	for _, tt := range tests {
		s.req.Rows = []journal.Row{tt.row}
		if tt.why == "" {
			f := s.gather()
			if len(f.Evidence) != 1 || f.Evidence[0].Kind != w2 || f.Evidence[0].Update != tt.row.ID {
				t.Errorf("%s is no witness: %s", tt.name, dump(f))
			}
			continue
		}
		f := s.gather()
		if f.Holds() {
			t.Errorf("%s is a witness: %s", tt.name, dump(f))
		}
		s.because(f, w2, tt.why)
	}
}

func TestUpdateOfTheTreeAroundThatLeftThisRootAlone(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.root.Dirs = []string{filepath.Join(s.repo.Dir, "acme")}
	s.req.Roots = []witness.Root{s.root}
	s.boots(-30 * time.Minute)
	from := s.repo.Head()
	s.clock(-18 * time.Minute)
	to := s.repo.Commit("docs", "README", "new")
	s.dies(-10 * time.Minute)
	row := s.row(-20*time.Minute, -15*time.Minute, journal.Updated, from, to)
	row.Roots[0].Dirs = []string{s.repo.Dir}
	row.Roots[0].FromRevision, row.Roots[0].ToRevision = from, to
	s.req.Rows = []journal.Row{row}
	s.because(s.expect(), w2, "changed nothing inside")
}

func TestJournalGivesTheFileProofItsSide(t *testing.T) {
	t.Parallel()
	s := newStory(t)
	s.boots(-30 * time.Minute)
	from := s.repo.Head()
	s.clock(-18 * time.Minute)
	broke := s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.repo.Remove(".git/logs")
	s.dies(-10 * time.Minute)
	row := s.row(-20*time.Minute, -15*time.Minute, journal.Updated, from, broke)
	row.Roots[0].FromRevision, row.Roots[0].ToRevision = from, broke
	s.req.Rows = []journal.Row{row}
	s.culprit(s.expect(w2, w3), broke)
}
