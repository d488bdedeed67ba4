package gitcli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// story is one run in a real repository: it boots, the tree changes, it dies of a missing name.
type story struct {
	t     testing.TB
	repo  *require.Repo
	root  witness.Root
	start time.Time // what the times of the story count from; the disk's change times are about now
	req   witness.Request
}

const (
	withFrame    = "class Frame: pass\nclass Codec: pass\n"
	withoutFrame = "class Codec: pass\n"
)

// newStory has a tree with acme.wire that binds Frame, and acme.cli that asks for it. HEAD got there an hour before the
// start.
func newStory(t testing.TB) *story {
	t.Helper()
	s := &story{t: t, repo: require.NewRepo(t), start: time.Now()}
	s.root = rootOf(s.repo)
	s.clock(-time.Hour)
	s.repo.Commit("first", "acme/__init__.py", "", "acme/wire.py", withFrame, "acme/cli.py", "from acme.wire import Frame\n", "acme/other.py", "", "README", "")
	s.req = witness.Request{
		Roots:   []witness.Root{s.root},
		Sources: map[string]witness.Source{gitcli.Kind: newSource(t)},
		Modules: map[string]witness.Modules{"python": python.New()},
	}
	s.missing("acme.wire", "Frame")
	return s
}

func (s *story) clock(d time.Duration) { s.repo.Clock = s.start.Add(d) }

func (s *story) at(d time.Duration) stamp.Time { return stamp.Wall(s.start.Add(d), 0) }

// missing sets what the failure text said: acme.cli asked for the name.
func (s *story) missing(module, symbol string) {
	s.req.Verdict = classify.Verdict{
		Disposition: classify.Skew, Family: classify.TornImport, Runtime: "python", Module: module, Symbol: symbol,
		Root: "acme", Asked: []string{"acme"}, ManagedModules: []string{"acme.cli", "acme.wire"},
		Frames: []classify.Frame{{File: s.repo.Dir + "/acme/cli.py", Line: 1, Module: "acme.cli", Root: "acme"}},
	}
}

// boots records the identity now as that of a boot at the given time.
func (s *story) boots(d time.Duration) {
	s.t.Helper()
	s.req.Boot = []witness.Identity{s.stored(identify(s.t, s.root))}
	s.req.Window.From = s.at(d)
}

// dies sets the time of the death, without a reading of the tree.
func (s *story) dies(d time.Duration) { s.req.Window.To = s.at(d) }

// diesReading sets the time of the death and records the identity now as its own.
func (s *story) diesReading(d time.Duration) {
	s.t.Helper()
	s.dies(d)
	s.req.Death = []witness.Identity{s.stored(identify(s.t, s.root))}
}

// stored is the identity as it comes back from a file.
func (s *story) stored(id witness.Identity) witness.Identity {
	s.t.Helper()
	text, err := json.Marshal(id)
	if err != nil {
		s.t.Fatal(err)
	}
	var back witness.Identity
	if err := json.Unmarshal(text, &back); err != nil {
		s.t.Fatal(err)
	}
	if back.Key() != id.Key() {
		s.t.Fatalf("key %s became %s when the identity was stored", id.Key(), back.Key())
	}
	return back
}

func (s *story) gather() witness.Findings {
	s.t.Helper()
	f, err := witness.Gather(context.Background(), s.req)
	if err != nil {
		s.t.Fatal(err)
	}
	return f
}

// expect checks which witnesses hold, by their kinds in order, and returns the findings.
func (s *story) expect(kinds ...witness.Kind) witness.Findings {
	s.t.Helper()
	f := s.gather()
	var got []witness.Kind
	for _, e := range f.Evidence {
		got = append(got, e.Kind)
	}
	if len(got) != len(kinds) {
		s.t.Fatalf("witnesses are %v, want %v\n%s", got, kinds, dump(f))
	}
	for i := range got {
		if got[i] != kinds[i] {
			s.t.Fatalf("witnesses are %v, want %v\n%s", got, kinds, dump(f))
		}
	}
	// Each kind has said something, for or against.
	for _, k := range []witness.Kind{witness.BootIdentity, witness.UpdateJournal, witness.FileProof} {
		if !strings.Contains(dump(f), string(k)) {
			s.t.Errorf("nothing is said of %s\n%s", k, dump(f))
		}
	}
	return f
}

// culprit checks the commit that the findings name.
func (s *story) culprit(f witness.Findings, commit string) {
	s.t.Helper()
	c := f.Culprit()
	if c == nil {
		s.t.Fatalf("no culprit is named, want %s\n%s", commit, dump(f))
	}
	if c.Commit != commit {
		s.t.Fatalf("culprit is %s (%s), want %s\n%s", c.Commit, c.Subject, s.repo.Git("log", "-1", "--format=%h %s", commit), dump(f))
	}
}

// because checks the reason why a witness does not hold.
func (s *story) because(f witness.Findings, k witness.Kind, want string) {
	s.t.Helper()
	for _, a := range f.Absent {
		if a.Kind == k && strings.Contains(a.Why, want) {
			return
		}
	}
	s.t.Errorf("%s is not absent because %q\n%s", k, want, dump(f))
}

func dump(f witness.Findings) string {
	text, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
