package systemd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// The environment of the host beside its role.
const (
	dirVar  = "DIR"  // its state
	workVar = "WORK" // what its first life does
	outVar  = "OUT"  // the folder in which it says what became of it
)

// agents are the sessions that the host resumes when it boots; it starts "main" beside them.
var agents = []string{"s1", "s2", "s3", "head-1"}

// said is one line of the host's diary: only one field is set.
type said struct {
	Born  *born     `json:"born,omitempty"`
	Read  string    `json:"read,omitempty"` // the notice with which a session had a turn
	Ready time.Time `json:"ready,omitzero"`
}

// born is what a life knows of itself when it begins.
type born struct {
	PID      int             `json:"pid"`
	Instance string          `json:"instance"`
	Boot     bootnotice.Boot `json:"boot"`
}

// agentHost is a service as an embedder writes one: durable sessions, the boot coordinator, a handoff through the real
// manager, a drain on SIGTERM, readiness. What its agents do is a script, for the first life only.
type agentHost struct {
	out      string
	drain    *drain.Drain
	noting   *boot.Keeper // of a host whose turns are in no store
	handoff  *handoff.Handoff
	sessions *sessions.Service
	mu       sync.Mutex
}

// aware is what knows of restarts: a *boot.Coordinator, or the *boot.Keeper alone.
type aware interface {
	Boot() bootnotice.Boot
	Run(ctx context.Context) error
	Close() error
}

func (h *agentHost) aware(ctx context.Context, dir string) (aware, error) {
	startup := []string{"main"}
	config := bootnotice.Config{Wait: -1} // nobody appears later
	if os.Getenv("NOTING") == "" {
		return boot.NewCoordinator(ctx, boot.CoordinatorConfig{Dir: dir, Sessions: h.sessions, Host: h, Startup: startup, Notice: config,
			Woken: func(name string) { h.handoff.Woken(name) }})
	}
	k, err := boot.New(ctx, boot.Config{Dir: dir, Instance: h.sessions.Instances.Self(), Deliver: noting{h}, Startup: startup, Notice: config})
	if err != nil {
		return nil, err
	}
	for _, name := range agents {
		k.Appeared(name)
	}
	h.noting = k
	return k, nil
}

func hostAgents() {
	ctx := context.Background()
	h := &agentHost{out: os.Getenv(outVar)}
	dir := os.Getenv(dirVar)
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		if <-ends == syscall.SIGUSR1 {
			os.Exit(1)
		}
		panic("a bug")
	}()
	var err error
	h.drain, err = drain.New(drain.Config{Wait: 200 * time.Millisecond, Grace: time.Second})
	fatal(err)
	home, err := files.Open(files.Config{Dir: dir + "/home"})
	fatal(err)
	open := sessionlog.Open
	if os.Getenv("SECOND") != "" {
		open = sessionlog.Read // one process writes at a time
	}
	store, err := open(sessionlog.Config{Path: dir + "/log/sessions"})
	fatal(err)
	h.sessions, err = sessions.New(sessions.Config{Store: store, Instances: home.Instances(),
		Admit: func(name string) (func(), error) { return h.handoff.Admit(name) }})
	fatal(err)
	boots, err := h.aware(ctx, dir+"/boot")
	fatal(err)
	h.say(said{Born: &born{PID: os.Getpid(), Instance: home.Instances().Self().ID, Boot: boots.Boot()}})
	_, err = os.Stat(h.out + "/at-work")
	first := err != nil
	if _, err := os.Stat(h.out + "/broken"); err == nil && !first {
		os.Exit(1)
	}
	budget, err := handoff.OpenHistory(dir + "/handoff")
	fatal(err)
	outbox, err := boot.OpenOutbox(dir + "/boot")
	fatal(err)
	conn, err := Connect(ctx, manager())
	fatal(err)
	r, err := NewRestarter(conn)
	fatal(err)
	over := make(chan int, 1)
	hurried, hurry := context.WithCancel(ctx)
	end := func(code int) {
		_, err := Stopping()
		fatal(err)
		res, err := h.drain.Drain(hurried, drain.Order{Sessions: h.sessions, Why: "the service is stopped", Teardown: func(context.Context) error {
			return errors.Join(h.handoff.Close(), outbox.Close(), budget.Close(), boots.Close(), h.sessions.Close(), store.Close(), home.Close(), conn.Close())
		}})
		fatal(err)
		over <- max(code, res.ExitCode())
	}
	var restarter handoff.Restarter = r
	if os.Getenv("EXITS") != "" {
		restarter = handoff.ExitStatus{Code: 75, Policy: r, Exit: func(code int) { go end(code) }}
	}
	h.handoff, err = handoff.New(handoff.Config{Restarter: restarter, Own: r, History: budget, Notices: outbox, Admit: h.drain.Admit,
		Confirm: func(context.Context, handoff.Question) (bool, error) { return true, nil }})
	fatal(err)
	h.handoff.Attach(h.sessions)

	_, err = drain.Listen(drain.Signals{Again: func(os.Signal) { hurry() }, First: func(os.Signal) {
		if os.Getenv("DEAF") == "" {
			end(0)
		}
	}})
	fatal(err)

	go func() { fatal(boots.Run(ctx)) }()
	h.say(said{Ready: time.Now()})
	_, err = Ready()
	fatal(err)
	if first {
		for step := range strings.FieldsSeq(os.Getenv(workVar)) {
			verb, name, _ := strings.Cut(step, ":")
			h.work(ctx, verb, name)
		}
		fatal(os.WriteFile(h.out+"/at-work", nil, 0o600))
	}
	os.Exit(<-over)
}

// say adds a line to the diary.
func (h *agentHost) say(s said) {
	h.mu.Lock()
	defer h.mu.Unlock()
	b, err := json.Marshal(s)
	fatal(err)
	f, err := os.OpenFile(h.out+"/diary", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fatal(err)
	_, err = f.Write(append(b, '\n'))
	fatal(errors.Join(err, f.Close()))
}

// work is one step of the script.
func (h *agentHost) work(ctx context.Context, verb, name string) {
	if verb == "noted" { // a turn of a host whose sessions are in no store
		_, err := h.noting.Busy(name)
		fatal(err)
		return
	}
	handle, err := h.sessions.Open(ctx, name)
	fatal(err)
	turn, err := handle.Begin(ctx, sessions.Start{})
	fatal(err)
	g, err := effect.New(effect.Config{Turn: turn, Now: h.sessions.Now})
	fatal(err)
	switch verb {
	case "done":
		_, err = turn.Append(ctx, session.Reply(h.sessions.Now(), sessions.NewID(), session.ModelTurn{}))
		fatal(errors.Join(err, turn.End(ctx, session.TurnEnded{End: session.EndDone}), handle.Close(ctx)))
	case "open": // gives way when it is asked to
		go func() {
			<-turn.Context().Done()
			err := turn.End(ctx, session.TurnEnded{End: session.EndFailed, Why: context.Cause(turn.Context()).Error()})
			if err != nil { // too late: it stays open, which is told just the same
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	case "stuck": // never ends
	case "calling": // and in the middle of a call that changes something
		began := make(chan struct{})
		go func() {
			_, _ = g.Do(ctx, effect.Call{ID: "1", Tool: "deploy", Args: json.RawMessage(`{}`)}, func(context.Context) (effect.Result, error) {
				close(began)
				select {}
			})
		}()
		<-began
	case "asks", "insists":
		args := json.RawMessage(fmt.Sprintf(`{"reason":"a new build","force":%t}`, verb == "insists"))
		answer, err := g.Do(ctx, effect.Call{ID: "1", Tool: "self_restart", Args: args}, func(ctx context.Context) (effect.Result, error) {
			return effect.Result{Value: h.handoff.Tool().Call(ctx, handoff.Asker{Turn: turn, Call: "1"}, args)}, nil
		})
		fatal(err)
		if !strings.Contains(string(answer.Value), `"restarting":true`) {
			fatal(fmt.Errorf("the restart was refused: %s", answer.Value))
		}
	default:
		fatal(fmt.Errorf("no such step: %s", verb))
	}
}

// Workload implements boot.Host.
func (h *agentHost) Workload(session.Status) (workload, unsupported string) { return "agent", "" }

// Turn implements boot.Host: the model answers.
func (h *agentHost) Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error {
	_, err := turn.Append(ctx, session.Reply(h.sessions.Now(), sessions.NewID(), session.ModelTurn{}))
	err = errors.Join(err, turn.End(ctx, session.TurnEnded{End: session.EndDone}))
	if notice != nil {
		h.say(said{Read: notice.ID})
	}
	return err
}

// Undeliverable implements boot.Host and boot.Deliverer.
func (h *agentHost) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	return fmt.Errorf("nothing is undeliverable here: %+v", n)
}

// noting is the host whose turns only the keeper knows of. What it delivers is in a log all the same, for the test.
type noting struct{ *agentHost }

// Deliver implements boot.Deliverer.
func (h noting) Deliver(ctx context.Context, d bootnotice.Delivery) (bool, error) {
	handle, err := h.sessions.Open(ctx, d.Session)
	if err != nil {
		return false, err
	}
	turn, err := handle.Begin(ctx, sessions.Start{})
	if err != nil {
		return false, errors.Join(err, handle.Close(ctx))
	}
	text, err := json.Marshal(d.Text)
	if err == nil {
		_, err = turn.Append(ctx, session.Say(h.sessions.Now(), d.ID, text))
	}
	return err == nil, errors.Join(err, h.Turn(ctx, turn, &d), handle.Close(ctx))
}
