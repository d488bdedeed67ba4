package effect_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// world is one session with a counter of how often the effect happened.
type world struct {
	store *memory.Sessions
	guard *effect.Guard
	turns int
	ran   atomic.Int64
}

func newWorld(t *testing.T) *world {
	w := &world{store: memory.NewSessions(memory.SessionsConfig{})}
	w.next(t)
	return w
}

// next begins another turn of the same invocation, as after a crash.
func (w *world) next(t *testing.T) {
	t.Helper()
	w.turns++
	g, err := effect.New(effect.Config{Turn: openTurn(w.store, fmt.Sprint("turn-", w.turns)), Now: clock,
		Tools: effect.Tools{"read": session.ReadOnly, "spawn": session.Spawning}})
	if err != nil {
		t.Fatal(err)
	}
	w.guard = g
}

func (w *world) do(id, tool, args string, err error) (effect.Result, error) {
	return w.guard.Do(context.Background(), effect.Call{ID: id, Tool: tool, Args: json.RawMessage(args)},
		func(context.Context) (effect.Result, error) {
			n := w.ran.Add(1)
			return effect.Result{Value: json.RawMessage(fmt.Sprint(n))}, err
		})
}

func (w *world) head(t *testing.T) session.Head {
	t.Helper()
	h, err := w.store.Head(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func (w *world) append(t *testing.T, d session.Draft) error {
	t.Helper()
	r, err := w.store.Append(t.Context(), "s1", []session.Draft{d})
	if err != nil {
		t.Fatal(err)
	}
	return r.Err()
}

func wants(t *testing.T, err error, code session.Code) {
	t.Helper()
	if session.CodeOf(err) != code {
		t.Errorf("got %v, want %s", err, code)
	}
}

func TestACompletedKeyReplaysAlsoInALaterTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for round := range 3 {
		r, err := w.do("1", "scale", `{"a":1,"b":2}`, nil)
		if err != nil || string(r.Value) != "1" || r.Replayed != (round > 0) {
			t.Errorf("round %d: %+v %v", round, r, err)
		}
		w.next(t)
	}
	// The same arguments, written otherwise.
	if r, err := w.do("1", "scale", `{"b": 2, "a": 1}`, nil); err != nil || !r.Replayed {
		t.Errorf("%+v %v", r, err)
	}
	if n := w.ran.Load(); n != 1 {
		t.Errorf("the effect happened %d times", n)
	}
}

func TestAKeyIsOfOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := w.do("1", "scale", `12`, nil); err != nil {
		t.Fatal(err)
	}
	_, err := w.do("1", "scale", `13`, nil)
	wants(t, err, session.ErrEffectKeyConflict)
	_, err = w.do("1", "drop", `12`, nil)
	wants(t, err, session.ErrEffectKeyConflict)
	// Equal arguments under another key are another call.
	if r, err := w.do("2", "scale", `12`, nil); err != nil || r.Replayed {
		t.Errorf("%+v %v", r, err)
	}
}

func TestWhatLeavesACallDangling(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(context.Background())
	for name, run := range map[string]func(w *world){
		"a Go error": func(w *world) { _, _ = w.do("1", "scale", `1`, errors.New("reset by peer")) },
		"a panic": func(w *world) {
			defer func() { _ = recover() }()
			_, _ = w.guard.Do(context.Background(), effect.Call{ID: "1", Tool: "scale", Args: json.RawMessage(`1`)},
				func(context.Context) (effect.Result, error) { w.ran.Add(1); panic("tool") })
		},
		"a cancellation": func(w *world) {
			_, _ = w.guard.Do(cancelled, effect.Call{ID: "1", Tool: "scale", Args: json.RawMessage(`1`)},
				func(ctx context.Context) (effect.Result, error) {
					w.ran.Add(1)
					cancel()
					return effect.Result{}, ctx.Err()
				})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			run(w)
			if w.ran.Load() != 1 {
				t.Fatal("the call did not run")
			}
			_, err := w.do("1", "scale", `1`, nil)
			wants(t, err, session.ErrInProgress)
			// In this turn other calls go on: the mode was decided when it began.
			if _, err := w.do("2", "scale", `1`, nil); err != nil {
				t.Error(err)
			}
			w.next(t)
			for i, tool := range []string{"scale", "spawn", "unheard of"} {
				_, err := w.do(fmt.Sprint("new", i), tool, `1`, nil)
				wants(t, err, session.ErrAmbiguous)
			}
			_, err = w.do("1", "scale", `1`, nil)
			wants(t, err, session.ErrAmbiguous)
			if _, err := w.do("3", "read", `1`, nil); err != nil {
				t.Error("a read-only call:", err)
			}
			// What was completed before replays in ambiguous mode too: that runs nothing.
			if r, err := w.do("2", "scale", `1`, nil); err != nil || !r.Replayed {
				t.Error(r, err)
			}
		})
	}
}

func TestASpawningCallThatDanglesIsNotAmbiguous(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, _ = w.do("1", "spawn", `1`, errors.New("lost"))
	w.next(t)
	if _, err := w.do("2", "scale", `1`, nil); err != nil {
		t.Error(err)
	}
	_, err := w.do("1", "spawn", `1`, nil)
	wants(t, err, session.ErrAmbiguous)
}

func TestNotAppliedMayBeTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 3 {
		_, err := w.do("1", "scale", `1`, fmt.Errorf("dial: %w: refused", effect.NotApplied))
		if !errors.Is(err, effect.NotApplied) {
			t.Fatal(err)
		}
	}
	if _, err := w.do("1", "scale", `2`, nil); session.CodeOf(err) != session.ErrEffectKeyConflict {
		t.Error("a try with other arguments:", err)
	}
	w.next(t)
	r, err := w.do("1", "scale", `1`, nil)
	if err != nil || string(r.Value) != "4" {
		t.Error(r, err)
	}
	if r, err = w.do("1", "scale", `1`, nil); err != nil || !r.Replayed || string(r.Value) != "4" {
		t.Error(r, err)
	}
}

func TestAnErrorOfTheToolCompletes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 2 {
		r, err := w.guard.Do(t.Context(), effect.Call{ID: "1", Tool: "scale"}, func(context.Context) (effect.Result, error) {
			w.ran.Add(1)
			return effect.Result{Failed: true, Value: json.RawMessage(`"quota"`)}, nil
		})
		if err != nil || !r.Failed {
			t.Error(r, err)
		}
	}
	if w.ran.Load() != 1 || len(w.head(t).Calls) != 0 {
		t.Error("it ran", w.ran.Load(), "times", w.head(t).Calls)
	}
}

func TestTheCompletionIsWrittenAlthoughTheRequestIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	_, err := w.guard.Do(ctx, effect.Call{ID: "1", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		cancel()
		return effect.Result{Value: json.RawMessage(`1`)}, nil
	})
	if err != nil || len(w.head(t).Calls) != 0 {
		t.Error(err, w.head(t).Calls)
	}
	// A request that was gone before runs nothing and leaves nothing.
	_, err = w.guard.Do(ctx, effect.Call{ID: "2", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		panic("not reached")
	})
	if !errors.Is(err, context.Canceled) || len(w.head(t).Calls) != 0 {
		t.Error(err, w.head(t).Calls)
	}
}

func TestWaysOut(t *testing.T) {
	t.Parallel()
	resolve := func(o session.Resolution) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			d := session.NewResolve(clock(), session.Resolve{Call: w.head(t).Calls[0].ID, Outcome: o, Value: json.RawMessage(`"op"`)})
			if err := w.append(t, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name   string
		out    func(*testing.T, *world)
		value  string
		refuse session.Code
	}{
		{"happened", resolve(session.Happened), `"op"`, ""},
		{"did not happen", resolve(session.DidNotHappen), `2`, ""},
		{"compensated", resolve(session.Compensated), ``, session.ErrCompensated},
		{"acknowledged", func(t *testing.T, w *world) {
			h := w.head(t)
			if err := w.append(t, session.NewAck(clock(), "ack", session.Ack{Through: h.Last, Dead: h.Fence})); err != nil {
				t.Fatal(err)
			}
		}, ``, session.ErrAcceptedUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			_, _ = w.do("1", "scale", `1`, errors.New("lost"))
			w.next(t)
			c.out(t, w)
			if c.name != "acknowledged" { // an acknowledgement took the owner's fence
				_, err := w.do("other", "scale", `1`, nil)
				wants(t, err, session.ErrAmbiguous) // decided once per turn
			}
			w.next(t)
			if _, err := w.do("other", "scale", `9`, errors.Join(effect.NotApplied)); !errors.Is(err, effect.NotApplied) {
				t.Error("the next turn still refuses:", err)
			}
			w.ran.Store(1)
			r, err := w.do("1", "scale", `1`, nil)
			if session.CodeOf(err) != c.refuse || string(r.Value) != c.value {
				t.Errorf("got %s %v, want %s %s", r.Value, err, c.value, c.refuse)
			}
		})
	}
}

func TestManyOfOneKeyRunOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			_, err := w.do("1", "scale", `1`, nil)
			if err != nil && session.CodeOf(err) != session.ErrInProgress {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.ran.Load(); n != 1 {
		t.Errorf("the effect happened %d times", n)
	}
}

// lossy is a store whose connection breaks after the write.
type lossy struct {
	session.Log
	lose atomic.Bool
}

func (l *lossy) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	r, err := l.Log.Append(ctx, name, batch)
	if err == nil && l.lose.Swap(false) {
		return session.Receipt{}, fmt.Errorf("append: %w", session.ErrOutcomeUnknown)
	}
	return r, err
}

func TestAnUnknownIntentDoesNotRunAndAnUnknownCompletionIsAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	l := &lossy{Log: w.store}
	guard, err := effect.New(effect.Config{Turn: effect.On(l, "s1", w.head(t).Fence, "turn-1", "request-1"), Now: clock})
	if err != nil {
		t.Fatal(err)
	}
	_, err = guard.Do(t.Context(), effect.Call{ID: "1", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		l.lose.Store(true)
		return effect.Result{Value: json.RawMessage(`1`)}, nil
	})
	if err != nil || len(w.head(t).Calls) != 0 {
		t.Error(err, w.head(t).Calls)
	}
	l.lose.Store(true)
	_, err = guard.Do(t.Context(), effect.Call{ID: "2", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		panic("not reached")
	})
	if !errors.Is(err, session.ErrOutcomeUnknown) {
		t.Error(err)
	}
}

func TestNewReportsAllThatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := effect.New(effect.Config{Tools: effect.Tools{"x": "harmless"}})
	for _, want := range []string{"Turn", "Now", "harmless"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not tell of %s", err, want)
		}
	}
}

func TestAReadOnlyCallAllocatesNothing(t *testing.T) {
	w := newWorld(t)
	f := func(context.Context) (effect.Result, error) { return effect.Result{}, nil }
	ctx := context.Background()
	if n := testing.AllocsPerRun(1000, func() { _, _ = w.guard.Do(ctx, effect.Call{ID: "1", Tool: "read"}, f) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if h := w.head(t); h.Last != 2 {
		t.Errorf("the log has %d events: a read-only call is in it", h.Last)
	}
}

// BenchmarkReadOnly is a read-only call through the guard, and the same function called bare.
func BenchmarkReadOnly(b *testing.B) {
	g, err := effect.New(effect.Config{Turn: openTurn(memory.NewSessions(memory.SessionsConfig{}), "turn-1"),
		Tools: effect.Tools{"read": session.ReadOnly, "list": session.ReadOnly, "get": session.ReadOnly}, Now: clock})
	if err != nil {
		b.Fatal(err)
	}
	f := func(context.Context) (effect.Result, error) { return effect.Result{}, nil }
	ctx := context.Background()
	call := effect.Call{ID: "call-1", Tool: "read", Args: json.RawMessage(`{}`)}
	b.Run("bare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = f(ctx)
		}
	})
	b.Run("guarded", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = g.Do(ctx, call, f)
		}
	})
}
