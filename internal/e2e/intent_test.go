package e2e

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// ana is the person of these stories.
var ana = managed.Person{By: "ana", Note: "it is known"}

// intents are what a person may do, with the code that it has everywhere.
var intents = map[run.IntentKind]string{run.Killed: "killed", run.Dismissed: "dismissed", run.Relaunched: "manual_relaunch", run.Asked: "asked"}

// meddleProber is the real prober, with something that happens while it is at work: after the claim, before the launch.
type meddleProber struct {
	probe.Prober
	during func()
}

func (m meddleProber) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	m.during()
	return m.Prober.Probe(ctx, p)
}

// meddleLook lets something happen right after a look at a run, so that whoever looked does not know it. armed is how
// many looks are still let pass.
type meddleLook struct {
	run.Store
	run   func() string
	armed *atomic.Int32
	after func()
}

func (m meddleLook) Get(ctx context.Context, id string) (run.Run, error) {
	r, err := m.Store.Get(ctx, id)
	if m.armed.Load() > 0 && id == m.run() && m.armed.Add(-1) == 0 {
		m.after()
	}
	return r, err
}

// moment is when a person does something about a run that died of an update, and where its record ends.
type moment struct {
	name string
	// stage changes the world so that act is called at that moment; scout is known by then.
	stage func(t *testing.T, o *options, scout func() *agent, act func())
	ends  string // "STATE ", to be followed by the intent's code
}

var moments = []moment{
	{"while the new code is tried", func(t *testing.T, o *options, _ func() *agent, act func()) {
		py, err := process.NewPython(process.PythonConfig{})
		if err != nil {
			t.Fatal(err)
		}
		o.prober = meddleProber{py, act}
	}, "declined "},
	{"after the healer looked for the last time before the launch", func(_ *testing.T, o *options, scout func() *agent, act func()) {
		armed := &atomic.Int32{}
		o.stores = func(s restart.Stores) restart.Stores {
			s.Evidence = meddleEvidence{s.Evidence, func() { armed.Store(1) }} // the next look is the last one
			s.Runs = meddleLook{s.Runs, func() string { return scout().run().ID }, armed, act}
			return s
		}
	}, "declined "},
	{"with the launch begun", func(_ *testing.T, o *options, _ func() *agent, act func()) {
		o.launcher = func(p *parts) restart.Launcher { return meddleRunner{p.runs.Launcher(context.Background()), act} }
	}, "settled_failed "},
	{"after the runner looked for the last time before the gate", func(t *testing.T, o *options, scout func() *agent, act func()) {
		o.launcher = func(p *parts) restart.Launcher {
			s := p.home.Stores()
			armed := &atomic.Int32{}
			armed.Store(2)
			s.Runs = meddleLook{s.Runs, func() string { return scout().run().ID }, armed, act}
			h, err := managed.New(managed.Config{Stores: s, Sources: p.sources, Dir: filepath.Join(p.home.Dir(), "runs"),
				Programs: process.Programs{NoSignals: true, NoTerminal: true}})
			if err != nil {
				t.Fatal(err)
			}
			return h.Launcher(context.Background())
		}
	}, "settled_failed "},
	{"with the launch begun and the program held", func(_ *testing.T, o *options, _ func() *agent, act func()) {
		o.launcher = func(p *parts) restart.Launcher { return meddleRunner{held(p), act} }
	}, "settled_failed "},
}

// TestIntentWinsAtEveryMoment: whatever a person does about a run, between the claim of its do-over and the start of its
// replacement, nothing is launched. The record ends quietly with what they did, and says who it was and why.
func TestIntentWinsAtEveryMoment(t *testing.T) {
	t.Parallel()
	for _, m := range moments {
		for kind, code := range intents {
			t.Run(m.name+"/"+code, func(t *testing.T) {
				t.Parallel()
				var w *world
				var scout *agent
				acted := 0
				o := options{settings: slow}
				m.stage(t, &o, func() *agent { return scout }, func() {
					if acted++; acted > 1 {
						return
					}
					if rec := w.record(scout); rec == nil || rec.Launch != nil && rec.Launch.Bound != nil {
						t.Errorf("the story acts at another moment: the record is %+v", rec)
					}
					if err := w.runs.Intend(w.ctx, scout.run().ID, kind, ana); err != nil {
						t.Error(err)
					}
				})
				w = newWorld(t, o)
				scout = w.after("scout", "count:starts", "wait:update", "encode", "count:worked")
				w.clock.forward(hourAndMore)
				w.passUntil("a decision", func() bool { return w.record(scout) != nil && w.record(scout).State.Final() })
				if acted == 0 {
					t.Fatal("nothing happened at the moment of the story")
				}
				w.wantStands(scout, m.ends+code)
				w.wantLoud()
				w.healer.Wait()
				if w.times("starts") != 1 || w.times("worked") != 0 {
					t.Errorf("the program was started %d times, want once", w.times("starts"))
				}
				w.wantToldOf(scout, code)
				before := w.record(scout).Revision
				for range 3 {
					w.pass()
				}
				if w.record(scout).Revision != before || w.bells() != 0 {
					t.Errorf("later passes changed the record, or left %d doorbells", w.bells())
				}
			})
		}
	}
}

// wantToldOf checks that what ana did is in the record's history and on its card.
func (w *world) wantToldOf(a *agent, code string) {
	w.t.Helper()
	rec := w.record(a)
	i := slices.IndexFunc(rec.History, func(e ledger.Entry) bool { return e.Event == ledger.Intend })
	if i < 0 || rec.History[i].By != "ana" || rec.History[i].Reason != code || rec.History[i].Note != ana.Note || rec.History[i].Actor == "" {
		w.t.Fatalf("the history does not tell who did it and why: %+v", rec.History)
	}
	if text := report.BuildCard(*rec, report.Options{Now: w.clock.now()}).Text(report.Style{}); !strings.Contains(text, "ana decided") || !strings.Contains(text, ana.Note) {
		w.t.Errorf("the card does not tell it:\n%s", text)
	}
}

// TestIntentBeforeTheDeath: a person said it while the run was alive. It gets an answer, quietly, and no record.
func TestIntentBeforeTheDeath(t *testing.T) {
	t.Parallel()
	for kind, code := range intents {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			w.branch("v2", renamed...)
			scout := w.start("scout", "wait:update", "encode").waits("update")
			if err := w.runs.Intend(w.ctx, scout.run().ID, kind, ana); err != nil {
				t.Fatal(err)
			}
			w.update("v2")
			w.tell("update")
			scout.dies()
			w.pass()
			w.wantStands(scout, "answer "+code)
			w.wantLoud()
			a, _, err := w.home.Answers().Answer(w.ctx, scout.run().ID)
			if err != nil || !strings.Contains(a.Text, ana.Note) {
				t.Errorf("the answer is %q (%v), want with why", a.Text, err)
			}
		})
	}
}

// TestAnsweredQuestion: once its question is answered, a run is one like any other again.
func TestAnsweredQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.broken("scout", "mark:preparing")
	if err := errors.Join(w.runs.Ask(w.ctx, scout.run().ID, ana), w.runs.Answered(w.ctx, scout.run().ID)); err != nil {
		t.Fatal(err)
	}
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to work", func() bool { return w.has("scout-done") })
}

// TestIntentThatCameTooLate: the replacement runs already. The person is told which run it is, their word is on record,
// and the replacement goes on.
func TestIntentThatCameTooLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.start("scout", "count:starts", "wait:update", "encode", "wait:go").waits("update")
	w.update("v2")
	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to work", func() bool { return w.has("scout-waits-for-go") })
	for name, err := range map[string]error{
		"intend":  w.runs.Intend(w.ctx, scout.run().ID, run.Dismissed, ana),
		"dismiss": w.runs.Dismiss(w.ctx, scout.run().ID, ana),
	} {
		var late *managed.SucceededError
		if !errors.As(err, &late) || late.By != scout.replacement().ID {
			t.Errorf("%s: %v, want that run %s has its place", name, err, scout.replacement().ID)
		}
	}
	w.wantToldOf(scout, "dismissed")
	w.tell("go")
	w.passUntil("its end to be settled", func() bool { return w.record(scout).State.Final() })
	w.wantStands(scout, "settled_ok replacement_ok")
	if w.times("starts") != 2 {
		t.Errorf("%d starts, want two", w.times("starts"))
	}
}

// TestStopIsIntent: who stops a run through Mulligan ends it for good; so does who stops the replacement.
func TestStopIsIntent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	w.branch("v2", renamed...)
	scout := w.start("scout", "wait:update", "encode", "wait:never").waits("update")
	other := w.start("other", "wait:never").waits("never")
	w.update("v2")
	stop := func(r run.Run) {
		t.Helper()
		w.until("its process to be known", func() bool {
			r, err := w.home.Runs().Get(w.ctx, r.ID)
			return err == nil && r.PID != 0
		})
		if err := w.runs.Stop(w.ctx, r.ID, patience, ana); err != nil {
			t.Fatal(err)
		}
	}
	stop(other.run())
	other.dies()
	w.pass()
	w.wantStands(other, "answer killed")
	if err := w.runs.Stop(w.ctx, other.run().ID, patience, ana); !errors.Is(err, managed.ErrEnded) {
		t.Errorf("stopped again: %v, want that it has ended", err)
	}

	w.tell("update")
	scout.dies()
	w.passUntil("the replacement to work", func() bool { return w.has("scout-waits-for-never") })
	if err := w.runs.Dismiss(w.ctx, scout.replacement().ID, ana); !errors.Is(err, managed.ErrAlive) {
		t.Errorf("a living run was dismissed: %v", err)
	}
	stop(scout.replacement())
	w.passUntil("its end to be settled", func() bool { return w.record(scout).State.Final() })
	w.wantStands(scout, "settled_failed killed")
	w.wantToldOf(scout, "killed")
	w.wantLoud()
}

// TestSignalIsNoIntent: a signal that came from outside ends a run, and nobody is said to have wanted it. It is told, as
// any failure that was held back is.
func TestSignalIsNoIntent(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{})
			scout := w.start("scout", "mark:preparing", "wait:never").waits("never")
			w.until("its process to be known", func() bool { return scout.run().PID != 0 })
			if err := syscall.Kill(scout.run().PID, sig); err != nil {
				t.Fatal(err)
			}
			scout.dies()
			w.pass()
			r, err := w.home.Runs().Get(w.ctx, scout.run().ID)
			if err != nil || r.Intent != nil {
				t.Errorf("the run's intent is %+v (%v), want none", r.Intent, err)
			}
			a, ok, err := w.home.Answers().Answer(w.ctx, r.ID)
			if err != nil || !ok || a.Verdict != "leave_alone" || !a.Loud || !a.Told {
				t.Errorf("the answer is %+v (%v), want that it was left alone, and told", a, err)
			}
		})
	}
}
