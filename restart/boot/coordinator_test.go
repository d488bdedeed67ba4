package boot

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// agents is a host in this process. Its turns end at once, unless do says otherwise.
type agents struct {
	mu     sync.Mutex
	turns  []string
	gaveUp []string
	closed map[string]bool // sessions that it cannot run yet
	do     func(ctx context.Context, turn *sessions.Turn) error
}

func (a *agents) Workload(st session.Status) (workload, unsupported string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed[st.Head.Session] {
		return "agent", "it is not loaded"
	}
	return "agent", ""
}

func (a *agents) Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error {
	way := "none"
	if notice != nil {
		way = string(notice.Way)
	}
	a.mu.Lock()
	a.turns = append(a.turns, turn.Session()+" "+way)
	do := a.do
	a.mu.Unlock()
	if do != nil {
		return do(ctx, turn)
	}
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

func (a *agents) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.gaveUp = append(a.gaveUp, n.Session)
	return nil
}

func (a *agents) ran() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.turns)
}

// machine is a folder and a store over several instances of a service in this process.
type machine struct {
	t     *testing.T
	dir   string
	home  *memory.Home
	store session.Store
}

func newMachine(t *testing.T) *machine {
	return &machine{t: t, dir: t.TempDir(), home: memory.New(memory.Config{}), store: memory.NewSessions(memory.SessionsConfig{})}
}

// instance is one of them. Its Run goes on until stop, which waits for it.
type instance struct {
	*Coordinator
	*agents
	s    *sessions.Service
	self ledger.Instance
	over chan error
}

func (m *machine) start(change func(*CoordinatorConfig, *sessions.Config), a *agents) *instance {
	m.t.Helper()
	i := &instance{agents: a, self: m.home.Spawn(), over: make(chan error, 1)}
	sc := sessions.Config{Store: m.store, Instances: memory.As(m.home, i.self)}
	c := CoordinatorConfig{Dir: m.dir, Host: a, Startup: []string{"main"}, Notice: noWait, Rescan: 20 * time.Millisecond}
	if change != nil {
		change(&c, &sc)
	}
	var err error
	i.s, err = sessions.New(sc)
	must(m.t, err)
	c.Sessions = i.s
	i.Coordinator, err = NewCoordinator(m.t.Context(), c)
	must(m.t, err)
	return i
}

func (i *instance) run() { go func() { i.over <- i.Run(context.Background()) }() }

// kill ends an instance without a word: its marker stays as it is.
func (m *machine) kill(i *instance) {
	m.t.Helper()
	m.home.Kill(i.self)
	i.keeper.halt()
	i.keeper.work.Wait()
	i.keeper.idle = true
	must(m.t, errors.Join(i.keeper.Close(), i.s.Close()))
}

// midTurn is an instance that is killed in the middle of a turn of each session.
func (m *machine) midTurn(names ...string) {
	m.t.Helper()
	i := m.start(nil, &agents{})
	for _, name := range names {
		h, err := i.s.Open(m.t.Context(), name)
		must(m.t, err)
		_, err = h.Begin(m.t.Context(), sessions.Start{})
		must(m.t, err)
	}
	m.kill(i)
}

// idle is an instance that is killed, with requests for the restart noted by each session.
func (m *machine) idle(names ...string) {
	m.t.Helper()
	i := m.start(nil, &agents{})
	for _, name := range names {
		must(m.t, i.s.Say(m.t.Context(), name, json.RawMessage(`"hello"`)))
		must(m.t, i.keeper.outbox.Request(m.t.Context(), bootnotice.Request{ID: name, Session: name, Reason: "a build"}))
	}
	m.kill(i)
}

// settled waits until nobody is left to be told and no turn is open.
func (m *machine) settled(i *instance) {
	m.t.Helper()
	m.until("nobody is left", func() bool {
		open, err := i.pending(m.t.Context())
		return err == nil && len(open) == 0 && len(i.s.Turns()) == 0
	})
}

func (m *machine) until(what string, f func() bool) {
	m.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatalf("not within half a minute: %s", what)
		}
	}
}

func (m *machine) stop(i *instance) {
	m.t.Helper()
	must(m.t, errors.Join(i.Close(), <-i.over, i.s.Close()))
	m.home.Kill(i.self)
}

// texts are the notices in a session's log.
func (m *machine) texts(name string) (out []string) {
	m.t.Helper()
	events, err := m.store.Read(m.t.Context(), name, 0, 0)
	must(m.t, err)
	for _, e := range events {
		var text string
		if e.Kind == session.KindMessage && e.Into(&text) == nil && strings.HasPrefix(text, "[Mulligan") {
			out = append(out, text)
		}
	}
	return out
}

// givenBack is a store that calls while a session has just been given back, and who gave it back does not know yet.
type givenBack struct {
	session.Store
	meanwhile func(name string)
}

func (g givenBack) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	receipt, err := g.Store.Append(ctx, name, batch)
	var p session.Lease
	if err == nil && batch[0].Kind == session.KindLease && batch[0].Into(&p) == nil && p.Release {
		g.meanwhile(name)
	}
	return receipt, err
}

// TestCoordinatorWaitsForWhatIsGivenBack: a session that had only to be cleared is free in the log a moment before its handle
// is closed. Whoever looks then must not take it for one that cannot be woken: it is woken a moment later.
func TestCoordinatorWaitsForWhatIsGivenBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	before := m.start(nil, &agents{})
	h, err := before.s.Open(t.Context(), "s")
	must(t, err)
	turn, err := h.Begin(t.Context(), sessions.Start{})
	must(t, err)
	_, err = turn.Append(t.Context(), session.Reply(before.s.Now(), "reply", session.ModelTurn{}))
	must(t, err)
	m.kill(before)

	a := &agents{}
	var i *instance
	var seen []bootnotice.Fate
	i = m.start(func(_ *CoordinatorConfig, c *sessions.Config) {
		c.Store = givenBack{m.store, func(name string) { seen = append(seen, i.rule(context.Background(), name).Fate) }}
	}, a)
	i.run()
	m.until("it is woken", func() bool { return slices.Contains(a.ran(), "s wake") })
	m.settled(i)
	m.stop(i)
	if len(seen) == 0 || seen[0] != later.Fate {
		t.Errorf("while it was given back it was to be told as %q", seen)
	}
	if got := a.ran(); len(got) != 1 || len(m.texts("s")) != 1 {
		t.Errorf("turns %v, notices %v", got, m.texts("s"))
	}
}

// TestCoordinatorCap: what is resumed and what is woken share one cap, and auto-resume comes first.
func TestCoordinatorCap(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("a", "b")
	m.idle("c", "d")
	i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Limits.PerBoot = 3 }, &agents{})
	i.run()
	m.settled(i)
	ran := i.ran()
	slices.Sort(ran)
	if len(ran) != 3 || !strings.HasPrefix(ran[0], "a ") || !strings.HasPrefix(ran[1], "b ") || !strings.HasSuffix(ran[2], " wake") {
		t.Errorf("the turns are %v", ran)
	}
	var held []string
	for _, name := range []string{"c", "d"} {
		text := strings.Join(m.texts(name), "\n")
		if strings.Contains(text, "this instance has resumed 3 sessions, which is its limit. To go on: mulligan sessions resume "+name+".") {
			held = append(held, name)
		}
	}
	if len(held) != 1 {
		t.Errorf("held are %v", held)
	}
	m.stop(i)
}

// TestCoordinatorResumesFirst: what is resumed has the places of this instance before who is woken, and a turn that takes
// long holds up nobody who is told.
func TestCoordinatorResumesFirst(t *testing.T) {
	t.Parallel()
	for places := 1; places <= 2; places++ {
		m := newMachine(t)
		m.midTurn("a")
		m.idle("main")
		synctest.Test(t, func(t *testing.T) {
			told := -1
			i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Limits.PerBoot = places },
				&agents{do: func(ctx context.Context, turn *sessions.Turn) error {
					if turn.Session() == "a" {
						time.Sleep(time.Minute)
						told = len(m.texts("main"))
					}
					return turn.End(ctx, session.TurnEnded{End: session.EndDone})
				}})
			i.run()
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			ran := i.ran()
			slices.Sort(ran)
			same(t, "the turns", ran, []string{"a turn", "main wake"}[:places])
			if after := len(m.texts("main")); told != 1 || after != 1 {
				t.Errorf("with %d places, %d notices were told during the other turn, and %d in the end", places, told, after)
			}
			must(t, errors.Join(i.Close(), <-i.over, i.s.Close()))
		})
	}
}

// TestCoordinatorTellsTheHandoff: a session that its notice starts may not restart the process again by itself, and one
// that was resumed may.
func TestCoordinatorTellsTheHandoff(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("resumed")
	m.idle("woken")
	budget, err := handoff.OpenHistory(filepath.Join(m.dir, "restarts"))
	must(t, err)
	asked := make(chan struct{}, 2)
	ho, err := handoff.New(handoff.Config{History: budget, Delay: time.Hour,
		Restarter: handoff.Custom{Do: func(context.Context) error { return nil }}})
	must(t, err)
	var mu sync.Mutex
	got := map[string]handoff.Code{}
	i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Woken = ho.Woken }, &agents{do: func(ctx context.Context, turn *sessions.Turn) error {
		res := ho.Ask(ctx, handoff.Asker{Turn: turn}, handoff.Request{})
		mu.Lock()
		got[turn.Session()] = res.Code
		mu.Unlock()
		asked <- struct{}{}
		return nil
	}})
	i.run()
	<-asked
	<-asked
	mu.Lock()
	if got["woken"] != handoff.CodeUnconfirmed || got["resumed"] != "" {
		t.Errorf("the answers are %q", got)
	}
	mu.Unlock()
	must(t, ho.Close())
	m.stop(i)
	must(t, budget.Close())
}

// TestCoordinatorOwnSessions: one that this process has open is woken by its own handle, and one in a turn of its own is
// told without another.
func TestCoordinatorOwnSessions(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("open", "working")
	i := m.start(nil, &agents{})
	kept, err := i.s.Open(t.Context(), "open")
	must(t, err)
	h, err := i.s.Open(t.Context(), "working")
	must(t, err)
	turn, err := h.Begin(t.Context(), sessions.Start{})
	must(t, err)
	i.run()
	m.until("both are told", func() bool { return len(m.texts("open")) == 1 && len(m.texts("working")) == 1 })
	must(t, turn.End(t.Context(), session.TurnEnded{End: session.EndDone}))
	m.settled(i)
	same(t, "the turns", i.ran(), []string{"open wake"})
	if text := m.texts("working")[0]; strings.Contains(text, "not continued") {
		t.Errorf("one that works is told %q", text)
	}
	_, err = kept.Begin(t.Context(), sessions.Start{})
	must(t, err) // it is still held by its handle
	m.stop(i)
}

// TestCoordinatorLate: a session that its host cannot run yet gets its notice when it appears, within the wait; one that
// does not gets none, and the target is told and names it.
func TestCoordinatorLate(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{14 * time.Second, 16 * time.Second} {
		m := newMachine(t)
		m.midTurn("lazy")
		synctest.Test(t, func(t *testing.T) {
			a := &agents{closed: map[string]bool{"lazy": true}}
			i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) {
				c.Notice, c.Rescan = bootnotice.Config{}, time.Hour
			}, a)
			i.run()
			time.Sleep(late)
			synctest.Wait()
			early := i.ran()
			a.mu.Lock()
			a.closed = nil
			a.mu.Unlock()
			i.Appeared("lazy")
			synctest.Wait()
			if late < bootnotice.DefaultWait {
				same(t, "before", early, nil)
				same(t, "the turns", i.ran(), []string{"lazy turn"})
			} else {
				same(t, "before", early, []string{"main wake"})
				same(t, "the turns", i.ran(), []string{"main wake", "lazy none"})
				if text := strings.Join(m.texts("main"), "\n"); !strings.Contains(text, "Also interrupted: lazy.") {
					t.Errorf("the target is told %q", text)
				}
			}
			must(t, errors.Join(i.Close(), <-i.over, i.s.Close()))
		})
	}
}

// TestCoordinatorUnsupported: one that appears and still cannot be run is told why.
func TestCoordinatorUnsupported(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("lazy")
	i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Startup = nil; c.Notice = bootnotice.Config{} },
		&agents{closed: map[string]bool{"lazy": true}})
	i.run()
	i.Appeared("lazy")
	m.settled(i)
	same(t, "the turns", i.ran(), nil)
	if text := strings.Join(m.texts("lazy"), "\n"); !strings.Contains(text, "the host cannot run it: it is not loaded. To go on: mulligan sessions show lazy.") {
		t.Errorf("it is told %q", text)
	}
	m.stop(i)
}

// TestCoordinatorWhileDraining: a process that admits nothing wakes nobody and uses up no attempt; once it admits again
// the notice is delivered.
func TestCoordinatorWhileDraining(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("s")
	var mu sync.Mutex
	refused, draining := 0, true
	i := m.start(func(_ *CoordinatorConfig, sc *sessions.Config) {
		sc.Admit = func(string) (func(), error) {
			mu.Lock()
			defer mu.Unlock()
			if draining {
				refused++
				return nil, errors.New("about to restart")
			}
			return func() {}, nil
		}
	}, &agents{})
	i.run()
	m.until("it was refused several times", func() bool { mu.Lock(); defer mu.Unlock(); return refused >= 3 })
	all, err := i.pending(t.Context())
	must(t, err)
	if len(all) != 1 || len(all[0].Attempts) != 0 || len(m.texts("s")) != 0 || len(i.ran()) != 0 {
		t.Errorf("while draining: %+v, %v", all, i.ran())
	}
	mu.Lock()
	draining = false
	mu.Unlock()
	m.settled(i)
	same(t, "the turns", i.ran(), []string{"s wake"})
	m.stop(i)
}

// TestCoordinatorEndsWithADrain: Run returns when the process drains, without a session that would be refused.
func TestCoordinatorEndsWithADrain(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	d, err := drain.New(drain.Config{})
	must(t, err)
	i := m.start(func(_ *CoordinatorConfig, sc *sessions.Config) {
		sc.Admit, sc.Draining = d.Admit, d.Begun()
	}, &agents{})
	i.run()
	_, err = d.Drain(t.Context(), drain.Order{Sessions: i.s})
	must(t, err)
	select {
	case err := <-i.over:
		must(t, err)
		i.over <- nil
	case <-time.After(time.Minute):
		t.Error("the process has drained, and it goes on")
	}
	m.stop(i)
}

// blind is a store in which one session's events cannot be found.
type blind struct {
	session.Store
	name string
}

func (s blind) Find(ctx context.Context, name, id string) (session.Event, bool, error) {
	if name == s.name {
		return session.Event{}, false, errors.New("its log is damaged")
	}
	return s.Store.Find(ctx, name, id)
}

// TestCoordinatorOneBadLog: one session whose log cannot be searched keeps no other from being resumed or told.
func TestCoordinatorOneBadLog(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("bad", "good")
	first := m.start(nil, &agents{})
	_, ok, err := first.keeper.attempt(t.Context(), "bad", bootnotice.Ruling{})
	if err != nil || !ok {
		t.Fatal(ok, err) // delivered, as far as is known
	}
	m.kill(first)
	m.midTurn("cut")
	i := m.start(func(_ *CoordinatorConfig, sc *sessions.Config) { sc.Store = blind{m.store, "bad"} }, &agents{})
	i.run()
	m.until("the others are looked after", func() bool {
		select {
		case err := <-i.over:
			t.Fatalf("the run ended: %v", err)
		default:
		}
		ran := i.ran()
		return slices.Contains(ran, "cut turn") && slices.Contains(ran, "good wake")
	})
	m.stop(i)
}

// TestCoordinatorModes: with the mode inject nobody is woken; switched off nobody is told, and sessions are resumed.
func TestCoordinatorModes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("s")
	i := m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Notice.Mode = bootnotice.Inject }, &agents{})
	i.run()
	m.settled(i)
	if texts := m.texts("s"); len(i.ran()) != 0 || len(texts) != 1 || strings.Contains(texts[0], "not continued") {
		t.Errorf("%v, %q", i.ran(), texts)
	}
	m.stop(i)
	m.midTurn("t")
	i = m.start(func(c *CoordinatorConfig, _ *sessions.Config) { c.Notice.Disabled = true }, &agents{})
	i.run()
	m.until("it is resumed", func() bool { return len(i.ran()) == 1 && len(i.s.Turns()) == 0 })
	same(t, "the turns", i.ran(), []string{"t none"})
	m.stop(i)
}

// TestCoordinatorSecondInstance: beside a living one only auto-resume runs.
func TestCoordinatorSecondInstance(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.midTurn("s")
	first := m.start(nil, &agents{})
	second := m.start(nil, &agents{})
	if second.Boot().Kind != bootnotice.SecondInstance {
		t.Fatalf("%+v", second.Boot())
	}
	second.run()
	m.until("it is resumed", func() bool { return len(second.ran()) == 1 && len(second.s.Turns()) == 0 })
	same(t, "the second's turns", second.ran(), []string{"s none"})
	m.stop(second)
	first.run()
	m.settled(first)
	same(t, "the first's turns", first.ran(), []string{"s wake"})
	m.stop(first)
}

// TestCoordinatorCloseEndsTurns: Close ends Run and the turns that it began, and what was not told stays for the next boot.
func TestCoordinatorCloseEndsTurns(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.idle("s")
	i := m.start(nil, &agents{do: func(ctx context.Context, _ *sessions.Turn) error {
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	i.run()
	m.until("its turn runs", func() bool { return len(i.ran()) == 1 })
	m.stop(i)
	st, err := m.store.Head(t.Context(), "s")
	must(t, err)
	if st.Turn != nil || st.Ended != session.EndFailed || st.Attempts != 1 {
		t.Errorf("the session is %+v", st)
	}
	must(t, i.Run(t.Context())) // a closed one does nothing
}

func TestNewCoordinatorSaysAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewCoordinator(t.Context(), CoordinatorConfig{Turn: -1, Beat: -1, Limits: resume.Limits{Attempts: -1}, Notice: bootnotice.Config{Mode: "shout"}})
	for _, want := range []string{"Dir", "Host", "Sessions", "Turn", "Attempts", "Beat", "shout"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %s", err, want)
		}
	}
}

// TestRulings gives each outcome its way of being told.
func TestRulings(t *testing.T) {
	t.Parallel()
	head := session.Head{Last: 9, Gates: []session.Open{{Interrupt: "it's"}},
		Calls: []session.Dangling{{Seq: 4, Class: session.Spawning}, {Seq: 5, Class: session.Mutating}}}
	const resolve = "mulligan sessions resolve s1 5 (happened | did-not-happen | compensated), or mulligan sessions ack s1 --through 9"
	if r := rulingOf(resume.Decision{Outcome: resume.Owned}, session.Status{Headline: session.Running}, "s1", true); r.Fate != bootnotice.Attended {
		t.Errorf("a turn of ours: %+v", r)
	}
	for _, c := range []struct {
		outcome resume.Outcome
		live    ledger.Liveness
		ours    bool
		fate    bootnotice.Fate
		way     string
	}{
		{resume.Woken, "", false, bootnotice.Free, ""},
		{resume.Resumed, "", false, bootnotice.Resumed, ""},
		{resume.Cleared, "", false, bootnotice.Resumed, ""},
		{resume.Draining, "", false, bootnotice.Resumed, ""},
		{resume.Aborted, "", false, bootnotice.Aborted, ""},
		{resume.Owned, ledger.Alive, true, bootnotice.Resumed, ""},
		{resume.Owned, ledger.LifeUnknown, false, bootnotice.Resumed, ""},
		{resume.Owned, ledger.Alive, false, bootnotice.Held, "mulligan sessions show s1"},
		{resume.Paused, "", false, bootnotice.Held, `mulligan sessions answer s1 'it'\''s' --text TEXT`},
		{resume.SkippedAmbiguous, "", false, bootnotice.Held, resolve},
		{resume.SkippedLoopbreak, "", false, bootnotice.Held, "mulligan sessions release s1"},
		{resume.SkippedStale, "", false, bootnotice.Held, "mulligan sessions resume s1"},
		{resume.Capped, "", false, bootnotice.Held, "mulligan sessions resume s1"},
		{resume.Tried, "", false, bootnotice.Held, "mulligan sessions resume s1"},
		{resume.SkippedUnsupported, "", false, bootnotice.Held, "mulligan sessions show s1"},
		{resume.Failed, "", false, bootnotice.Held, "mulligan sessions show s1"},
	} {
		r := rulingOf(resume.Decision{Outcome: c.outcome, Text: "why"}, session.Status{Head: head, Liveness: c.live}, "s1", c.ours)
		if r.Fate != c.fate || r.Way != c.way || (r.Reason == "why") != (r.Fate == bootnotice.Held) {
			t.Errorf("%s: %+v", c.outcome, r)
		}
	}
}

// TestWaysAreCommands: what the texts tell people to type is there to be typed.
func TestWaysAreCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../adapters/cli/sessions_*.go")
	must(t, err)
	var cli []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		cli = append(cli, b...)
	}
	source, err := os.ReadFile("coordinator_rule.go")
	must(t, err)
	found := regexp.MustCompile(`command\("([a-z]+)"`).FindAllStringSubmatch(string(source), -1)
	if len(found) < 6 {
		t.Fatalf("only %d commands were found", len(found))
	}
	for _, f := range found {
		if !strings.Contains(string(cli), `Use:   "`+f[1]+" ") {
			t.Errorf("there is no mulligan sessions %s", f[1])
		}
	}
	for _, flag := range []string{`"through"`, `"text"`} {
		if !strings.Contains(string(cli), flag) {
			t.Errorf("there is no flag %s", flag)
		}
	}
}
