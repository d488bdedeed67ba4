package boot

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

func init() {
	roles["first"] = first
	roles["serve"] = serve
}

// die is kill -9 of this very process.
func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// scripted is a host in a process of its own. It prints what it is asked to do, and does what its script says.
type scripted struct{ script string }

func (scripted) Workload(session.Status) (workload, unsupported string) { return "agent", "" }

func (s scripted) Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error {
	way := "none"
	if notice != nil {
		way = string(notice.Way)
	}
	fmt.Println("turn", turn.Session(), way)
	switch s.script {
	case "crash":
		die()
	case "fail":
		return errors.New("the model is down")
	}
	if _, err := turn.Append(ctx, session.Reply(host.Now(), sessions.NewID(), session.ModelTurn{Content: json.RawMessage(`"done"`)})); err != nil {
		return err
	}
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

func (scripted) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	fmt.Println("gave up", n.Session)
	return nil
}

// steps counts everything durable that a process does for its notices and sessions, and ends it before the n-th.
type steps struct {
	mu   sync.Mutex
	n    int
	last int
}

func (s *steps) step() {
	s.mu.Lock()
	s.n++
	if s.n == s.last {
		die()
	}
	s.mu.Unlock()
}

// hook counts what changes a file; a kill between two looks is the same as one before the next change.
func (s *steps) hook(op faultfs.Op) error {
	if op.Kind != faultfs.Look {
		s.step()
	}
	return nil
}

// stepping is the session log with its appends among the steps.
type stepping struct {
	*sessionlog.Store
	steps *steps
}

func (s stepping) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	s.steps.step()
	return s.Store.Append(ctx, name, batch)
}

// coordinated is a process with everything that a host wires.
type coordinated struct {
	service
	handoff *handoff.Handoff
	outbox  *Outbox
	coord   *Coordinator
}

func coordinate(dir, script string, restarter handoff.Restarter, st *steps) (p coordinated, err error) {
	if p.outbox, err = OpenOutbox(filepath.Join(dir, "boot")); err != nil {
		return p, err
	}
	budget, err := handoff.OpenHistory(filepath.Join(dir, "restarts"))
	if err != nil {
		return p, err
	}
	p.handoff, err = handoff.New(handoff.Config{Restarter: restarter, History: budget, Notices: p.outbox, Delay: time.Millisecond,
		Failed: func(f handoff.Failure) { fmt.Println("failed", f.Unknown, f.Err) }})
	if err != nil {
		return p, err
	}
	if p.service, err = open(dir); err != nil {
		return p, err
	}
	p.sessions, err = sessions.New(sessions.Config{Store: stepping{p.log, st}, Instances: p.home.Instances(), Admit: p.handoff.Admit})
	if err != nil {
		return p, err
	}
	p.handoff.Attach(p.sessions)
	p.coord, err = NewCoordinator(context.Background(), CoordinatorConfig{Dir: filepath.Join(dir, "boot"), Sessions: p.sessions,
		Host: scripted{script: script}, Startup: []string{"main"}, Notice: noWait, Rescan: 50 * time.Millisecond, Beat: time.Hour,
		Woken: p.handoff.Woken, fs: faultfs.Tap(durable.System{}, st.hook)})
	return p, err
}

// serve is an instance after a stop. It runs until nobody is left to be told and no turn is open, and then ends in order.
func serve(dir string) error {
	script, n, _ := strings.Cut(os.Getenv(argVar), " ")
	st := &steps{}
	if n != "" {
		last, err := strconv.Atoi(n)
		if err != nil {
			return err
		}
		st.last = last
	}
	p, err := coordinate(dir, script, handoff.Custom{}, st)
	if err != nil {
		return err
	}
	fmt.Println("boot", p.coord.Boot().Kind)
	over := make(chan error, 1)
	go func() { over <- p.coord.Run(context.Background()) }()
	if err := quiet(p); err != nil {
		return err
	}
	if err := errors.Join(p.coord.Close(), <-over, p.service.close()); err != nil {
		return err
	}
	fmt.Println("the end")
	return nil
}

// quiet waits until everybody was told who is to be told, and nothing runs.
func quiet(p coordinated) error {
	for deadline := time.Now().Add(30 * time.Second); ; {
		open, err := p.coord.pending(context.Background())
		if err != nil {
			return err
		}
		switch {
		case len(open) == 0 && len(p.sessions.Turns()) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("not quiet: %+v", open)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// first is the instance before: it leaves session s1 as the argument says, and then waits to be killed.
func first(dir string) error {
	ctx := context.Background()
	what := os.Getenv(argVar)
	// What it becomes when it restarts itself.
	if err := errors.Join(os.Setenv(roleVar, "serve"), os.Setenv(argVar, "finish")); err != nil {
		return err
	}
	restarter := handoff.ExecSelf{}
	p, err := coordinate(dir, "", restarter, &steps{})
	if err != nil {
		return err
	}
	go func() { _ = p.coord.Run(ctx) }()
	h, err := p.sessions.Open(ctx, "s1")
	if err != nil {
		return err
	}
	turn, err := h.Begin(ctx, sessions.Start{ID: "turn-1", Invocation: "request-1"})
	if err != nil {
		return err
	}
	guard, err := effect.New(effect.Config{Turn: turn, Now: p.sessions.Now})
	if err != nil {
		return err
	}
	switch what {
	case "idle":
		err = turn.End(ctx, session.TurnEnded{End: session.EndDone})
	case "clean":
		_, err = turn.Append(ctx, session.Reply(p.sessions.Now(), "said", session.ModelTurn{Content: json.RawMessage(`"all done"`)}))
	case "ambiguous":
		_, _ = guard.Do(ctx, effect.Call{ID: "deploy", Tool: "deploy"}, func(context.Context) (effect.Result, error) {
			return effect.Result{}, errors.New("the answer was lost")
		})
	case "paused":
		_, _, err = p.sessions.Pause(ctx, "s1", "which", json.RawMessage(`"which one?"`))
	case "aborted":
		err = p.sessions.Abort(ctx, "s1", "not needed")
	case "request":
		fmt.Println("ready", p.home.Instances().Self().ID) // before it asks: the restart may come before a word after it
		call := effect.Call{ID: "restart", Tool: "self_restart", Args: json.RawMessage(`{"reason":"a new build"}`)}
		_, err = guard.Do(ctx, call, func(ctx context.Context) (effect.Result, error) {
			return effect.Result{Value: p.handoff.Tool().Call(ctx, handoff.Asker{Turn: turn, Call: call.ID}, call.Args)}, nil
		})
		if err == nil {
			select {}
		}
	}
	if err != nil {
		return err
	}
	fmt.Println("ready", p.home.Instances().Self().ID)
	select {}
}

// story is a state folder over several lives.
type story struct {
	t   *testing.T
	dir string
	// stopped is the instance of the first life.
	stopped string
}

// left begins a story with a first life that is killed.
func left(t *testing.T, what string) *story {
	t.Helper()
	w := &story{t: t, dir: t.TempDir()}
	cmd, out := spawn(t, w.dir, "first", what)
	out.Scan()
	id, ok := strings.CutPrefix(out.Text(), "ready ")
	if !ok {
		t.Fatalf("the first life says %q", out.Text())
	}
	w.stopped = id
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return w
}

// life is one more instance, until it has ended. It returns what it said; in the end "died" when it was killed.
func (w *story) life(script string) []string {
	w.t.Helper()
	cmd, out := spawn(w.t, w.dir, "serve", script)
	said := rest(out)
	_ = cmd.Wait()
	return said
}

func rest(out *bufio.Scanner) (said []string) {
	for out.Scan() {
		if out.Text() == "the end" {
			return said
		}
		said = append(said, out.Text())
	}
	return append(said, "died")
}

// look opens the folder as an operator does.
func (w *story) look(f func(s service, box *Outbox)) {
	w.t.Helper()
	s, err := open(w.dir)
	must(w.t, err)
	box, err := OpenOutbox(filepath.Join(w.dir, "boot"))
	must(w.t, err)
	f(s, box)
	must(w.t, errors.Join(box.Close(), s.close()))
}

// log is what happened in s1 after an event, in words.
func (w *story) log(f func(st session.Status, kinds []string, told []string)) {
	w.t.Helper()
	w.look(func(s service, _ *Outbox) {
		st, err := s.sessions.Status(w.t.Context(), "s1")
		must(w.t, err)
		events, err := s.log.Read(w.t.Context(), "s1", 0, 0)
		must(w.t, err)
		var kinds, told []string
		for _, e := range events {
			kinds = append(kinds, string(e.Kind))
			if e.Kind == session.KindMessage {
				var text string
				must(w.t, json.Unmarshal(e.Payload, &text))
				told = append(told, text)
			}
		}
		f(st, kinds, told)
	})
}

// notice is the state of the notice about the first stop.
func (w *story) notice() (out bootnotice.Notice) {
	w.t.Helper()
	w.look(func(_ service, box *Outbox) {
		all, err := box.List(w.t.Context())
		must(w.t, err)
		for _, n := range all {
			if n.ID == bootnotice.NoticeID(w.stopped, "s1") {
				out = n
			}
		}
	})
	return out
}

const inOrder = "boot process_restart"

// TestKilledMidTurn: the session is resumed, and the notice is the first words of that turn, once.
func TestCoordinatorKilledMidTurn(t *testing.T) {
	t.Parallel()
	w := left(t, "midturn")
	same(t, "the next life", w.life("finish"), []string{inOrder, "turn s1 turn"})
	w.log(func(st session.Status, kinds, told []string) {
		// In one step the attempt and the beginning; nothing comes between that and the notice.
		same(t, "the log", kinds, []string{"lease", "turn_begun", "lease", "attempt", "turn_begun", "message", "model_turn", "turn_ended", "lease"})
		if st.Headline != session.Idle || st.Head.Attempts != 0 || len(told) != 1 || !strings.Contains(told[0], "You were in the middle of a turn") {
			t.Errorf("%s, told %q", st, told)
		}
	})
	if n := w.notice(); n.State != bootnotice.Acknowledged || len(n.Attempts) != 1 || n.Attempts[0].Way != bootnotice.InTurn {
		t.Errorf("the notice is %+v", n)
	}
}

// TestCoordinatorRequested restarts a real process on the wish of its session, by exec.
func TestCoordinatorRequested(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, out := spawn(t, dir, "first", "request")
	out.Scan()
	id, ok := strings.CutPrefix(out.Text(), "ready ")
	if !ok {
		t.Fatalf("the first life says %q", out.Text())
	}
	w := &story{t: t, dir: dir, stopped: id}
	same(t, "the next life", rest(out), []string{"boot exec_in_place", "turn s1 wake"})
	w.log(func(st session.Status, kinds, told []string) {
		same(t, "the log", kinds, []string{"lease", "turn_begun", "call", "result", "turn_ended",
			"lease", "attempt", "turn_begun", "message", "model_turn", "turn_ended", "lease"})
		if st.Headline != session.Idle || st.Ambiguous || st.Interruption != nil || st.Head.Attempts != 0 {
			t.Errorf("the session is %+v", st)
		}
		if len(told) != 1 || !strings.Contains(told[0], "Reason: you asked for it (a new build).") {
			t.Errorf("told %q", told)
		}
	})
	if n := w.notice(); n.State != bootnotice.Acknowledged || n.Why != bootnotice.Requested || n.MidTurn {
		t.Errorf("the notice is %+v", n)
	}
	// One that was told is not told again of that restart: what comes is the notice of the second stop.
	w.life("finish")
	w.log(func(_ session.Status, _, told []string) {
		if len(told) != 2 || strings.Contains(told[1], "you asked for it") {
			t.Errorf("told %q", told)
		}
	})
}

// TestCoordinatorHolds: what may not go on by itself is told without a turn, with the reason and a command that leads on.
func TestCoordinatorHolds(t *testing.T) {
	t.Parallel()
	for what, want := range map[string][]string{
		"ambiguous": {"call 3 (deploy) began and nobody knows whether it happened",
			"To go on: mulligan sessions resolve s1 3 (happened | did-not-happen | compensated), or mulligan sessions ack s1 --through 3."},
		"paused": {"The session was not continued by itself: the session waits for an answer.", "To go on: mulligan sessions answer s1 which --text TEXT."},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := left(t, what)
			same(t, "the next life", w.life("finish"), []string{inOrder})
			w.log(func(_ session.Status, kinds, told []string) {
				if len(told) != 1 || kinds[len(kinds)-1] != "message" {
					t.Fatalf("told %q, %v", told, kinds)
				}
				for _, text := range want {
					if !strings.Contains(told[0], text) {
						t.Errorf("%q is not in %q", text, told[0])
					}
				}
			})
			if n := w.notice(); n.State != bootnotice.Acknowledged || n.Attempts[0].Way != bootnotice.ByInject {
				t.Errorf("the notice is %+v", n)
			}
		})
	}
}

// TestCoordinatorLeavesTheAborted: told nothing, and its notice is over.
func TestCoordinatorLeavesTheAborted(t *testing.T) {
	t.Parallel()
	w := left(t, "aborted")
	same(t, "the next life", w.life("finish"), []string{inOrder})
	w.log(func(_ session.Status, kinds, told []string) { same(t, "told", told, nil) })
	if n := w.notice(); n.State != bootnotice.Withdrawn || len(n.Attempts) != 0 {
		t.Errorf("the notice is %+v", n)
	}
}

// TestCoordinatorClears: nothing was left to do in the turn that was cut off, so that is cleared before the notice wakes.
func TestCoordinatorClears(t *testing.T) {
	t.Parallel()
	w := left(t, "clean")
	same(t, "the next life", w.life("finish"), []string{inOrder, "turn s1 wake"})
	w.log(func(_ session.Status, kinds, _ []string) {
		same(t, "the log", kinds, []string{"lease", "turn_begun", "model_turn", "lease", "mark", "lease",
			"lease", "attempt", "turn_begun", "message", "model_turn", "turn_ended", "lease"})
	})
}

// TestCoordinatorWakeLoop: a session that ends the process each time it is woken, and one whose woken turns all fail, are
// quarantined by the same three attempts as one that is resumed; a release lets it go on.
func TestCoordinatorWakeLoop(t *testing.T) {
	t.Parallel()
	for script, want := range map[string][][]string{
		"crash": {{inOrder, "turn s1 wake", "died"}, {inOrder, "turn s1 turn", "died"}, {inOrder, "turn s1 turn", "died"}},
		"fail":  {{inOrder, "turn s1 wake"}, {inOrder, "turn s1 wake"}, {inOrder, "turn s1 wake"}},
	} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			w := left(t, "idle")
			for i, said := range want {
				same(t, fmt.Sprint("life ", i+2), w.life(script), said)
			}
			for range 2 { // no fourth, also not in the boot after
				same(t, "a life in quarantine", w.life(script), []string{inOrder})
				w.log(func(st session.Status, _, told []string) {
					last := told[len(told)-1]
					if !st.Quarantined || !strings.Contains(last, "3 attempts without a completed turn") ||
						!strings.Contains(last, "To go on: mulligan sessions release s1.") {
						t.Errorf("%+v is told %q", st, last)
					}
				})
			}
			w.look(func(s service, _ *Outbox) { must(t, s.sessions.Release(t.Context(), "s1", "ada")) })
			if said := w.life("finish"); len(said) != 2 {
				t.Errorf("after the release: %v", said)
			}
		})
	}
}

// TestCoordinatorKilledAtEachStep kills the next instance before each durable step that it makes for its sessions and
// notices, and lets the one after that finish: the session is told of the first stop exactly once, and it has gone on.
func TestCoordinatorKilledAtEachStep(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() || slowed {
		step = 7
	}
	for _, what := range []string{"midturn", "idle", "paused"} {
		step := step
		if what == "paused" {
			step = max(step, 3) // a part of the steps of the others
		}
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			for n, over := 1, false; !over; n += step {
				w := left(t, what)
				killed := w.life("finish " + strconv.Itoa(n))
				over = killed[len(killed)-1] != "died"
				said := w.life("finish")
				if said[len(said)-1] == "died" {
					t.Fatalf("step %d: the last life says %v", n, said)
				}
				if c := w.notice(); c.State != bootnotice.Acknowledged {
					t.Errorf("step %d: the notice of the first stop is %+v", n, c)
				}
				first := bootnotice.Header(bootnotice.NoticeID(w.stopped, "s1"))
				w.log(func(st session.Status, kinds, told []string) {
					times := 0
					for _, text := range told {
						if strings.HasPrefix(text, first) || strings.Contains(text, "You were not told of 1 earlier restart") {
							times++
						}
					}
					if times != 1 {
						t.Errorf("step %d: it is told %d times of the first stop: %q", n, times, told)
					}
					if what != "paused" && (st.Headline != session.Idle || st.Head.Attempts != 0 || st.Head.Ended != session.EndDone) {
						t.Errorf("step %d: the session is %s, %+v, %v", n, st, st.Head, kinds)
					}
				})
				if over && n < 20 {
					t.Errorf("only %d steps were tried", n)
				}
			}
		})
	}
}
