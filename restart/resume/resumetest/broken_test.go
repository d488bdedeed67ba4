package resumetest

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

func open(dir string) (Process, error) {
	home, err := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
	if err != nil {
		return Process{}, err
	}
	store, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "sessions.log")})
	if err != nil {
		return Process{}, errors.Join(err, home.Close())
	}
	return Process{Store: store, Instances: home.Instances(), Close: func() error { return errors.Join(store.Close(), home.Close()) }}, nil
}

// forgetful acknowledges events of one kind and does not write them.
type forgetful struct {
	session.Store
	kind session.Kind
}

func (f forgetful) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	if len(batch) != 1 || batch[0].Kind != f.kind {
		return f.Store.Append(ctx, name, batch)
	}
	h, err := f.Head(ctx, name)
	return session.Receipt{Outcomes: []session.Outcome{{Seq: h.Last + 1}}, Head: h}, err
}

// life says the same of everybody.
type life struct {
	ledger.Instances
	says ledger.Liveness
}

func (l life) Liveness(ledger.Instance) ledger.Liveness { return l.says }

// broken are ways to break a promise, the step at which the suite must see it, and what it must say.
var broken = map[string]struct {
	step, says string
	spoil      func(*Process)
}{
	"an intent that is not written": {"write 1 has happened", "what was acknowledged",
		func(p *Process) { p.Store = forgetful{p.Store, session.KindCall} }},
	"a completion that is not written": {"write 1 is completed", "what was acknowledged",
		func(p *Process) { p.Store = forgetful{p.Store, session.KindResult} }},
	"a model turn that is not written": {"the model has spoken", "what was acknowledged",
		func(p *Process) { p.Store = forgetful{p.Store, session.KindModelTurn} }},
	"a death that nobody sees": {"the turn has begun", "the state is derived",
		func(p *Process) { p.Instances = life{p.Instances, ledger.Alive} }},
}

func TestBrokenProcessesAreCaught(t *testing.T) {
	for how, b := range broken {
		t.Run(strings.ReplaceAll(how, " ", "_"), func(t *testing.T) {
			if become(t, func(dir string) (Process, error) {
				p, err := open(dir)
				if err == nil {
					b.spoil(&p)
				}
				return p, err
			}) {
				return
			}
			for _, s := range steps {
				if s.name != b.step {
					continue
				}
				err := arena{name: t.Name(), dir: t.TempDir()}.killedAt(t.Context(), s)
				if err == nil || !strings.Contains(err.Error(), b.says) {
					t.Errorf("the suite said %v, and should have spoken of %q", err, b.says)
				}
			}
		})
	}
}

// A call that runs again although nobody was told is what the suite is for, so it is tried on reports as well.
func TestACallThatRanTwiceIsCaught(t *testing.T) {
	t.Parallel()
	if err := (report{Effects: []string{"s1 r write-1", "s1 r write-2"}}).once(); err != nil {
		t.Error(err)
	}
	if err := (report{Effects: []string{"s1 r write-1", "s1 r write-2", "s1 r write-1"}}).once(); err == nil {
		t.Error("a call that ran twice was not seen")
	}
}
