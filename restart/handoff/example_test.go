package handoff_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// A process that an agent restarts. The host's own restarter stands for systemd.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "handoff")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	budget, err := handoff.OpenHistory(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer budget.Close()
	h, err := handoff.New(handoff.Config{History: budget,
		Restarter: handoff.Custom{Do: func(context.Context) error { return nil }}})
	if err != nil {
		fmt.Println(err)
		return
	}
	service, err := sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}),
		Instances: memory.New(memory.Config{}).Instances(), Admit: h.Admit})
	if err != nil {
		fmt.Println(err)
		return
	}
	h.Attach(service)

	ctx := context.Background()
	s1, err := service.Open(ctx, "s1")
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := s1.Begin(ctx, sessions.Start{})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer := h.Ask(turn.Context(), handoff.Asker{Turn: turn}, handoff.Request{Reason: "a new build is in place"})
	st, err := service.Status(ctx, "s1")
	fmt.Println(answer.OK, st, st.Head.Ended == session.EndRestarting, err)
	fmt.Println(h.Close(), service.Close())
	// Output:
	// true idle true <nil>
	// <nil> <nil>
}

// A host that listens does for a process beside it all that it does for its own agents.
func ExampleAskHost() {
	dir, err := os.MkdirTemp("", "handoff") // of its own, which nobody else may enter
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	budget, err := handoff.OpenHistory(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer budget.Close()
	h, err := handoff.New(handoff.Config{History: budget,
		Restarter: handoff.Custom{Do: func(context.Context) error { return nil }}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(h.Listen(dir))

	// In the other process:
	answer, err := handoff.AskHost(context.Background(), dir, handoff.Outside{Request: handoff.Request{Reason: "a new build is in place"}})
	fmt.Println(answer.OK, answer.Reason, err)
	fmt.Println(h.Close())
	_, err = handoff.AskHost(context.Background(), dir, handoff.Outside{})
	fmt.Println(err)
	// Output:
	// <nil>
	// true a new build is in place <nil>
	// <nil>
	// no host listens there for a restart
}

// A process beside the host, such as a command line, sees in the store who would be cut off.
func ExampleMidTurn() {
	store := memory.NewSessions(memory.SessionsConfig{})
	home := memory.New(memory.Config{})
	host, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances()})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	s1, err := host.Open(ctx, "s1")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s1.Begin(ctx, sessions.Start{}); err != nil {
		fmt.Println(err)
		return
	}
	beside, err := sessions.New(sessions.Config{Store: store, Instances: memory.As(home, home.Spawn())})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(handoff.MidTurn(ctx, beside, nil))
	fmt.Println(beside.Close(), host.Close())
	// Output:
	// [s1] <nil>
	// <nil> <nil>
}

// What a host's tool registry shows to its agents.
func ExampleHandoff_Tool() {
	h, err := handoff.New(handoff.Config{History: none{}, Restarter: handoff.ExecSelf{Path: "/nowhere/acme"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	tool := h.Tool()
	fmt.Println(tool.Name)
	fmt.Println(string(tool.Call(context.Background(), handoff.Asker{}, []byte(`{"reason":"a new build"}`))))
	// Output:
	// self_restart
	// {"ok":false,"restarting":false,"sessionId":"","reason":"a new build","error":"restart by exec: stat /nowhere/acme: no such file or directory","canary":"","canaryDetail":"","inFlight":[],"waitedMs":0}
}

// none is a history of nothing, for an example that gets no further.
type none struct{}

func (none) Entries(context.Context) ([]handoff.Entry, error) { return nil, nil }
func (none) Reserve(context.Context, handoff.Entry) error     { return nil }
func (none) Withdraw(context.Context, string) error           { return nil }
