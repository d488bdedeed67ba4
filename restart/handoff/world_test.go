package handoff_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// restarter is a manager that answers as the test says.
type restarter struct {
	mu      sync.Mutex
	check   error
	answer  error
	needs   bool
	asked   []string
	at      []time.Time
	checked int
}

func (r *restarter) NeedsUnit() bool { return r.needs }
func (r *restarter) Check(context.Context, string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.checked++
	return r.check
}
func (r *restarter) Restart(_ context.Context, unit string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked, r.at = append(r.asked, unit), append(r.at, time.Now())
	return r.answer
}
func (r *restarter) count() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.asked) }

// The outbox of restart/boot is where notices go.
var _ handoff.Notices = (*boot.Outbox)(nil)

// outbox keeps notices in memory, and notes what was in the log when one was written.
type outbox struct {
	mu   sync.Mutex
	kept []bootnotice.Request
	fail error
	all  int
}

func (o *outbox) Request(_ context.Context, n bootnotice.Request) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return o.fail
	}
	o.kept, o.all = append(o.kept, n), o.all+1
	return nil
}
func (o *outbox) Withdraw(_ context.Context, id string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.kept = slices.DeleteFunc(o.kept, func(n bootnotice.Request) bool { return n.ID == id })
	return nil
}
func (o *outbox) sessions() (out []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.kept {
		out = append(out, n.Session)
	}
	slices.Sort(out)
	return out
}

// history is a budget in memory with the rules of the file.
type history struct {
	mu      sync.Mutex
	entries []handoff.Entry
	read    error
}

func (h *history) Entries(context.Context) ([]handoff.Entry, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries), h.read
}
func (h *history) list() []handoff.Entry {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.entries)
}
func (h *history) Reserve(_ context.Context, e handoff.Entry) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if handoff.Recent(h.entries, e.At) >= handoff.Limit {
		return handoff.ErrBudget
	}
	h.entries = append(h.entries, e)
	return nil
}
func (h *history) Withdraw(_ context.Context, id string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.entries {
		h.entries[i].Withdrawn = h.entries[i].Withdrawn || h.entries[i].ID == id
	}
	return nil
}

// world is a process with sessions and a handoff.
type world struct {
	t        *testing.T
	h        *handoff.Handoff
	s        *sessions.Service
	r        *restarter
	box      *outbox
	hist     *history
	failures chan handoff.Failure
	handles  map[string]*sessions.Handle
	home     *memory.Home
}

func newWorld(t *testing.T, change func(*handoff.Config)) *world {
	t.Helper()
	w := &world{t: t, r: &restarter{}, box: &outbox{}, hist: &history{}, failures: make(chan handoff.Failure, 8), handles: map[string]*sessions.Handle{}}
	c := handoff.Config{Restarter: w.r, History: w.hist, Notices: w.box, Failed: func(f handoff.Failure) { w.failures <- f }}
	if change != nil {
		change(&c)
	}
	h, err := handoff.New(c)
	w.must(err)
	home := memory.New(memory.Config{})
	w.h, w.home = h, home
	w.s, err = sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}), Instances: home.Instances(), Admit: h.Admit})
	w.must(err)
	h.Attach(w.s)
	return w
}

// bubble runs a test on fake time with a world of its own.
func bubble(t *testing.T, change func(*handoff.Config), f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, change)
		f(t, w)
		w.must(w.h.Close())
		w.must(w.s.Close())
	})
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) begin(name string) *sessions.Turn {
	w.t.Helper()
	turn, err := w.try(name)
	w.must(err)
	return turn
}

func (w *world) try(name string) (*sessions.Turn, error) {
	h := w.handles[name]
	if h == nil {
		var err error
		if h, err = w.s.Open(w.t.Context(), name); err != nil {
			return nil, err
		}
		w.handles[name] = h
	}
	return h.Begin(w.t.Context(), sessions.Start{})
}

func (w *world) done(turn *sessions.Turn) {
	w.t.Helper()
	w.must(turn.End(context.Background(), session.TurnEnded{End: session.EndDone}))
}

func (w *world) status(name string) session.Status {
	w.t.Helper()
	st, err := w.s.Status(context.Background(), name)
	w.must(err)
	return st
}

// ask asks through the tool, inside the effect guard, as an agent does.
func (w *world) ask(turn *sessions.Turn, args string) handoff.Result {
	g, err := effect.New(effect.Config{Turn: turn, Now: w.s.Now})
	if err != nil {
		w.t.Error(err)
		return handoff.Result{}
	}
	id := sessions.NewID()
	res, err := g.Do(turn.Context(), effect.Call{ID: id, Tool: "self_restart", Args: json.RawMessage(args)}, func(ctx context.Context) (effect.Result, error) {
		return effect.Result{Value: w.h.Tool().Call(ctx, handoff.Asker{Turn: turn, Call: id}, json.RawMessage(args))}, nil
	})
	if err != nil {
		w.t.Error("the completion is not what was written:", err)
	}
	var out handoff.Result
	if err := json.Unmarshal(res.Value, &out); err != nil {
		w.t.Error(err)
	}
	return out
}

func (w *world) later(turn *sessions.Turn, args string) <-chan handoff.Result {
	c := make(chan handoff.Result, 1)
	go func() { c <- w.ask(turn, args) }()
	return c
}

// restarted checks that a session's log is as a requested restart leaves it.
func (w *world) restarted(name string) {
	w.t.Helper()
	st := w.status(name)
	if st.Headline != session.Idle || st.Ambiguous || st.Interruption != nil || st.Head.Turn != nil || st.Head.Ended != session.EndRestarting {
		w.t.Errorf("%s is %+v", name, st)
	}
}
