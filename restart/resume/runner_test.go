package resume_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// world is a store and the processes that use it.
type world struct {
	t     *testing.T
	ctx   context.Context
	home  *memory.Home
	store *memory.Sessions
}

func newWorld(t *testing.T) *world {
	return &world{t: t, ctx: t.Context(), home: memory.New(memory.Config{}), store: memory.NewSessions(memory.SessionsConfig{})}
}

// plain is a store without leases: all instances are on one machine.
type plain struct{ session.Store }

// process is another process, with its drain.
func (w *world) process(admit func(string) (func(), error)) (*sessions.Service, ledger.Instance) {
	w.t.Helper()
	self := w.home.Spawn()
	s, err := sessions.New(sessions.Config{Store: plain{w.store}, Instances: memory.As(w.home, self), Admit: admit})
	if err != nil {
		w.t.Fatal(err)
	}
	return s, self
}

// crash is a process that dies in the middle of a turn in each of the sessions, after what during does.
func (w *world) crash(during func(*sessions.Turn), names ...string) {
	w.t.Helper()
	s, self := w.process(nil)
	for _, name := range names {
		h, err := s.Open(w.ctx, name)
		if err != nil {
			w.t.Fatal(err)
		}
		turn, err := h.Begin(w.ctx, sessions.Start{Invocation: "request of " + name})
		if err != nil {
			w.t.Fatal(err)
		}
		if during != nil {
			during(turn)
		}
	}
	w.home.Kill(self)
	if err := s.Close(); err != nil {
		w.t.Fatal(err)
	}
}

// host is a Resumer and Metrics.
type host struct {
	mu          sync.Mutex
	unsupported string
	looked      func() // when the session has been looked at
	run         func(ctx context.Context, turn *sessions.Turn) error
	ran         []string
	counted     []string
}

func (h *host) Workload(session.Status) (string, string) {
	if h.looked != nil {
		h.looked()
	}
	return "agent", h.unsupported
}

func (h *host) Resume(ctx context.Context, turn *sessions.Turn) error {
	h.mu.Lock()
	h.ran = append(h.ran, turn.Session()+" for "+turn.Invocation())
	h.mu.Unlock()
	if h.run != nil {
		return h.run(ctx, turn)
	}
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

func (h *host) AutoResume(workload string, o resume.Outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.counted = append(h.counted, workload+" "+string(o))
}

// times is how many turns were run so far.
func (h *host) times() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ran)
}

func (w *world) runner(s *sessions.Service, h *host, c resume.Config) *resume.Runner {
	w.t.Helper()
	c.Sessions, c.Resumer, c.Metrics = s, h, h
	r, err := resume.New(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func (w *world) pass(r *resume.Runner) string {
	w.t.Helper()
	dry, err := r.DryRun(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	items, err := r.Pass(w.ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(dry) < len(items) {
		w.t.Errorf("the dry run said %v, and the pass %v", dry, items)
	}
	return outcomes(items)
}

func outcomes(items []resume.Item) string {
	var out []string
	for _, i := range items {
		out = append(out, i.Session+" "+string(i.Outcome))
	}
	return strings.Join(out, ", ")
}

func (w *world) wants(got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("the pass said %q, want %q", got, want)
	}
}

func (w *world) status(name string) session.Status {
	w.t.Helper()
	h, err := w.store.Head(w.ctx, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return h.Status(ledger.Dead)
}

func (w *world) append(name string, d session.Draft) {
	w.t.Helper()
	r, err := w.store.Append(w.ctx, name, []session.Draft{d})
	if err = errors.Join(err, r.Err()); err != nil {
		w.t.Fatal(err)
	}
}

func failing(context.Context, *sessions.Turn) error { return errors.New("the provider is down") }

func TestAnInterruptedTurnIsRunUnderItsOwnInvocation(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(nil, "s1")
	s, _ := w.process(nil)
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 resumed")
	w.wants(w.pass(r), "")
	if st := w.status("s1"); st.Headline != session.Idle || st.Head.Owner.ID != "" || st.Head.Attempts != 0 {
		t.Errorf("the session is %s, owned by %q", st, st.Head.Owner.ID)
	}
	if !slices.Equal(h.ran, []string{"s1 for request of s1"}) || !slices.Equal(h.counted, []string{"agent resumed"}) {
		t.Errorf("ran %v, counted %v", h.ran, h.counted)
	}
}

func TestATurnThatFailedUnderAMarkIsRunUnderItsOwnInvocation(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(func(turn *sessions.Turn) {
		w.append("s1", session.NewMark(w.now(), "mark", turn.ID(), "drain"))
		if err := turn.End(w.ctx, session.TurnEnded{End: session.EndFailed}); err != nil {
			t.Fatal(err)
		}
	}, "s1")
	s, _ := w.process(nil)
	w.wants(w.pass(w.runner(s, h, resume.Config{})), "s1 resumed")
	if !slices.Equal(h.ran, []string{"s1 for request of s1"}) {
		t.Errorf("ran %v", h.ran)
	}
}

func TestALogThatEndsCleanIsClearedAndNoTurnIsRun(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(func(turn *sessions.Turn) {
		if _, err := turn.Append(w.ctx, session.Reply(w.now(), "reply", session.ModelTurn{})); err != nil {
			t.Fatal(err)
		}
	}, "s1")
	s, _ := w.process(nil)
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 cleared")
	if st := w.status("s1"); st.Headline != session.Idle || len(h.ran) != 0 || st.Head.Owner.ID != "" {
		t.Errorf("the session is %s, ran %v", st, h.ran)
	}
	// What the model said in the turn before leaves the next one undone.
	w.crash(nil, "s1")
	w.wants(w.pass(r), "s1 resumed")
}

func TestAnUnknownEffectIsLeftToAPerson(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(func(turn *sessions.Turn) {
		call := session.NewCall(w.now(), session.Call{Invocation: turn.Invocation(), Call: "1", Tool: "scale", Class: session.Mutating})
		if _, err := turn.Append(w.ctx, call); err != nil {
			t.Fatal(err)
		}
	}, "s1")
	s, _ := w.process(nil)
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 skipped_ambiguous")
	w.wants(w.pass(r), "s1 skipped_ambiguous")
	if len(h.counted) != 1 {
		t.Errorf("a skip is counted once, not %v", h.counted)
	}
	if err := s.Ack(w.ctx, "s1", w.status("s1").Head.Last, "ada"); err != nil {
		t.Fatal(err)
	}
	w.wants(w.pass(r), "s1 resumed")
}

func TestThreeAttemptsWithoutACompletedTurnAreTheLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.crash(nil, "s1")
	boot := func(h *host) string {
		s, self := w.process(nil)
		defer w.home.Kill(self)
		r := w.runner(s, h, resume.Config{})
		first := w.pass(r)
		if again := w.pass(r); first == "s1 error" && again != "s1 tried" && again != "s1 skipped_loopbreak" {
			t.Errorf("one instance tries once: %q", again)
		}
		return first
	}
	for range session.DefaultAttempts {
		w.wants(boot(&host{run: failing}), "s1 error")
	}
	w.wants(boot(&host{}), "s1 skipped_loopbreak")
	w.append("s1", session.Release(w.now(), "release", "ada"))
	w.wants(boot(&host{run: failing}), "s1 error")
	w.wants(boot(&host{}), "s1 resumed") // a completed turn lifts it
	w.crash(nil, "s1")
	w.wants(boot(&host{run: failing}), "s1 error")
	if n := w.status("s1").Head.Attempts; n != 1 {
		t.Errorf("%d attempts are counted after a completed turn and one more", n)
	}
}

// givenBack is a store that calls at one moment around the giving back of a session: before it is in the log, or when its
// owner does not know yet that it is.
type givenBack struct {
	session.Store
	before, after func()
}

func (g *givenBack) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	var p session.Lease
	if batch[0].Kind != session.KindLease || batch[0].Into(&p) != nil || !p.Release {
		return g.Store.Append(ctx, name, batch)
	}
	g.before()
	r, err := g.Store.Append(ctx, name, batch)
	g.after()
	return r, err
}

// What a person says while a session is given back after a failed turn is new to the next pass, which takes it up.
func TestAWordAsTheSessionIsGivenBackIsHeard(t *testing.T) {
	t.Parallel()
	for moment := range 2 {
		w, h := newWorld(t), &host{run: failing}
		w.crash(nil, "s1")
		said := 0
		say := func(at int) func() {
			return func() {
				if at == moment && said == 0 {
					said++
					w.append("s1", session.Say(w.now(), "said", json.RawMessage(`"the key is renewed"`)))
				}
			}
		}
		s, err := sessions.New(sessions.Config{Store: &givenBack{plain{w.store}, say(0), say(1)}, Instances: memory.As(w.home, w.home.Spawn())})
		if err != nil {
			t.Fatal(err)
		}
		r := w.runner(s, h, resume.Config{})
		w.wants(w.pass(r), "s1 error")
		w.wants(w.pass(r), "s1 error") // taken up again
		w.wants(w.pass(r), "s1 tried")
		if said != 1 || h.times() != 2 {
			t.Errorf("at moment %d: %d words, %d turns", moment, said, h.times())
		}
	}
}

func TestWhatIsNotOursIsLeftAlone(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(nil, "aborted", "paused")
	w.append("aborted", session.NewAbort(w.now(), "abort", "enough"))
	w.append("paused", session.NewGate(w.now(), session.Pause{Interrupt: "gate"}))
	other, _ := w.process(nil)
	for _, name := range []string{"idle", "running", "failed under a mark"} {
		hd, err := other.Open(w.ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		turn, err := hd.Begin(w.ctx, sessions.Start{})
		if err != nil {
			t.Fatal(err)
		}
		end := session.EndDone
		if name == "failed under a mark" {
			w.append(name, session.NewMark(w.now(), "mark", turn.ID(), "drain"))
			end = session.EndFailed
		}
		if name != "running" {
			if err := turn.End(w.ctx, session.TurnEnded{End: end}); err != nil {
				t.Fatal(err)
			}
		}
	}
	s, _ := w.process(nil)
	items, err := w.runner(s, h, resume.Config{}).Pass(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(outcomes(items), ", ")
	slices.Sort(got)
	w.wants(strings.Join(got, ", "), "aborted aborted, failed under a mark owned, paused paused")
	if len(h.counted) != 0 || len(h.ran) != 0 {
		t.Errorf("counted %v, ran %v", h.counted, h.ran)
	}
}

func TestSupersededBetweenTheLookAndTheTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.crash(nil, "s1")
	meddle := true
	s, _ := w.process(func(name string) (func(), error) {
		if meddle { // between the decision and the turn a message comes
			w.append(name, session.Say(w.now(), sessions.NewID(), json.RawMessage(`"wait"`)))
			meddle = false
		}
		return func() {}, nil
	})
	r := w.runner(s, &host{}, resume.Config{})
	w.wants(w.pass(r), "s1 skipped_superseded")
	if n := w.status("s1").Head.Attempts; n != 0 {
		t.Errorf("%d attempts were counted, and none was made", n)
	}
	w.wants(w.pass(r), "s1 resumed")
}

func TestAClearThatIsSuperseded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.crash(func(turn *sessions.Turn) {
		if _, err := turn.Append(w.ctx, session.Reply(w.now(), "reply", session.ModelTurn{})); err != nil {
			t.Fatal(err)
		}
	}, "s1")
	s, _ := w.process(nil)
	looks := 0
	h := &host{looked: func() {
		if looks++; looks == 2 { // the first is the dry run's
			w.append("s1", session.Say(w.now(), "late", json.RawMessage(`"one thing more"`)))
		}
	}}
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 skipped_superseded")
	w.wants(w.pass(r), "s1 resumed")
}

func TestOfManyInstancesOneResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const sessionsN = 30
	for i := range sessionsN {
		w.crash(nil, fmt.Sprint("s", i))
	}
	hosts := make([]*host, 4)
	var all sync.WaitGroup
	for i := range hosts {
		hosts[i] = &host{}
		s, _ := w.process(nil)
		r := w.runner(s, hosts[i], resume.Config{})
		all.Go(func() {
			if _, err := r.Pass(w.ctx); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ran := 0
	for _, h := range hosts {
		ran += h.times()
	}
	for i := range sessionsN {
		if st := w.status(fmt.Sprint("s", i)); st.Headline != session.Idle {
			t.Errorf("session %d is %s", i, st)
		}
	}
	if ran != sessionsN {
		t.Errorf("%d turns were run for %d sessions", ran, sessionsN)
	}
}

func TestUnsupportedAndCapped(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{unsupported: "no such agent here"}
	for i := range 4 {
		w.crash(nil, fmt.Sprint("s", i))
	}
	s, _ := w.process(nil)
	w.wants(w.pass(w.runner(s, h, resume.Config{})), "s0 skipped_unsupported, s1 skipped_unsupported, s2 skipped_unsupported, s3 skipped_unsupported")
	h = &host{}
	r := w.runner(s, h, resume.Config{Limits: resume.Limits{PerBoot: 3}})
	w.wants(w.pass(r), "s0 resumed, s1 resumed, s2 resumed, s3 capped")
	w.wants(w.pass(r), "s3 capped")
	if len(h.counted) != 3 {
		t.Errorf("counted %v", h.counted)
	}
}

func TestADrainingProcessResumesNothingAndLeavesNoTrace(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(nil, "s1", "s2")
	d, err := drain.New(drain.Config{})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := w.process(d.Admit)
	if _, err := d.Drain(w.ctx, drain.Order{Sessions: s}); err != nil {
		t.Fatal(err)
	}
	before := w.status("s1").Head.Last
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 draining")
	r.Run(w.ctx) // and Run ends by itself
	if after := w.status("s1").Head.Last; after != before || len(h.counted)+len(h.ran) != 0 {
		t.Errorf("the log went from %d to %d, counted %v, ran %v", before, after, h.counted, h.ran)
	}
}

// TestRunEndsWhenTheProcessDrains: it ends with the drain's beginning, where there is no session to be refused.
func TestRunEndsWhenTheProcessDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		d, err := drain.New(drain.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := sessions.New(sessions.Config{Store: plain{w.store}, Instances: memory.As(w.home, w.home.Spawn()), Admit: d.Admit, Draining: d.Begun()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(w.ctx)
		defer cancel()
		r, ended := w.runner(s, &host{}, resume.Config{}), make(chan struct{})
		go func() {
			defer close(ended)
			r.Run(ctx)
		}()
		time.Sleep(time.Hour)
		select {
		case <-ended:
			t.Error("it ended before the drain began")
		default:
		}
		if _, err := d.Drain(w.ctx, drain.Order{Sessions: s}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the process has drained, and it goes on")
		}
	})
}

// TestAProcessThatAdmitsNobodyForNow: one that waits for its restart begins no turn. That is no error of the session's, uses
// up nothing, and passes by.
func TestAProcessThatAdmitsNobodyForNow(t *testing.T) {
	t.Parallel()
	w, h := newWorld(t), &host{}
	w.crash(nil, "s1", "s2")
	waits := true
	s, _ := w.process(func(string) (func(), error) {
		if waits {
			return nil, &session.Refusal{Code: "restarting", Text: "this process is about to restart"}
		}
		return func() {}, nil
	})
	before := w.status("s1").Head.Last
	r := w.runner(s, h, resume.Config{})
	w.wants(w.pass(r), "s1 not_admitted, s2 not_admitted")
	if after := w.status("s1").Head.Last; after != before || len(h.counted)+len(h.ran) != 0 {
		t.Errorf("the log went from %d to %d, counted %v, ran %v", before, after, h.counted, h.ran)
	}
	waits = false
	w.wants(w.pass(r), "s1 resumed, s2 resumed")
}

func TestAHostThatLeavesItsTurnOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.crash(nil, "s1")
	s, _ := w.process(nil)
	r := w.runner(s, &host{run: func(context.Context, *sessions.Turn) error { return nil }}, resume.Config{})
	w.wants(w.pass(r), "s1 error")
	if st := w.status("s1"); st.Head.Turn != nil || st.Head.Ended != session.EndFailed || st.Headline != session.Interrupted {
		t.Errorf("the session is %s, ended %s", st, st.Head.Ended)
	}
}

func TestAStuckSessionNeverHoldsUpTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.crash(nil, "a stuck one")
		time.Sleep(time.Second)
		w.crash(nil, "another")
		s, _ := w.process(nil)
		release := make(chan struct{})
		h := &host{}
		h.run = func(_ context.Context, turn *sessions.Turn) error {
			if turn.Session() != "another" {
				<-release
			}
			return turn.End(w.ctx, session.TurnEnded{End: session.EndDone})
		}
		began := time.Now()
		r := w.runner(s, h, resume.Config{Turn: time.Minute})
		items, err := r.Pass(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		w.wants(outcomes(items), "a stuck one error, another resumed")
		if took := time.Since(began); took != 70*time.Second {
			t.Errorf("took %v", took)
		}
		close(release) // when it comes back the session is given up
		synctest.Wait()
		if st := w.status("a stuck one"); st.Headline != session.Idle || st.Head.Owner.ID != "" {
			t.Errorf("the session is %s, owned by %q", st, st.Head.Owner.ID)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestRunLooksAgainWhenAnOwnerHasDied(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, h := newWorld(t), &host{}
		// Two machines on one store: death is a renewal that stands still.
		machine := func(name string) *sessions.Service {
			self := ledger.Instance{ID: name, Host: name}
			s, err := sessions.New(sessions.Config{Store: w.store, Instances: memory.As(w.home, self)})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		dying := machine("dying")
		hd, err := dying.Open(w.ctx, "s1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := hd.Begin(w.ctx, sessions.Start{}); err != nil {
			t.Fatal(err)
		}
		s := machine("living")
		ctx, stop := context.WithCancel(w.ctx)
		over := make(chan struct{})
		r := w.runner(s, h, resume.Config{})
		go func() { defer close(over); r.Run(ctx) }()
		time.Sleep(10 * time.Minute)
		if h.times() != 0 {
			t.Error("the session of a living owner was resumed")
		}
		if err := dying.Close(); err != nil { // it renews no more
			t.Fatal(err)
		}
		time.Sleep(session.LeaseTTL + 2*36*time.Second)
		if h.times() != 1 || w.status("s1").Headline != session.Idle {
			t.Errorf("ran %v, the session is %s", h.ran, w.status("s1"))
		}
		stop()
		<-over
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := resume.New(resume.Config{Turn: -1, Limits: resume.Limits{Attempts: -1}})
	for _, part := range []string{"Sessions", "Resumer", "Turn", "Attempts"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not speak of %s", err, part)
		}
	}
}
