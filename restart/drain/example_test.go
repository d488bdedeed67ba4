package drain_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/drain"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// A host that drains: what is open is marked and waited for, and what comes later is refused.
func ExampleNew() {
	ctx := context.Background()
	d, err := drain.New(drain.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("a stop takes at most", d.Bound())
	home := memory.New(memory.Config{})
	service, err := sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}), Instances: home.Instances(), Admit: d.Admit})
	if err != nil {
		fmt.Println(err)
		return
	}
	h, err := service.Open(ctx, "s1")
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := h.Begin(ctx, sessions.Start{})
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = turn.End(ctx, session.TurnEnded{End: session.EndDone}) }()

	result, err := d.Drain(ctx, drain.Order{Sessions: service, Why: "deploy", Teardown: func(context.Context) error { return service.Close() }})
	fmt.Println(result.Found <= 1, err, "exit", result.ExitCode())
	_, err = d.Admit("s2")
	fmt.Println(errors.Is(err, drain.ErrDraining))
	// Output:
	// a stop takes at most 56s
	// true <nil> exit 0
	// true
}

// The first signal drains, the second cuts the wait short, and a third ends the process.
func ExampleListen() {
	d, err := drain.New(drain.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	hurry, cancel := context.WithCancel(context.Background())
	defer cancel()
	drained := make(chan drain.Result, 1)
	signals, err := drain.Listen(drain.Signals{
		First: func(s os.Signal) {
			result, _ := d.Drain(hurry, drain.Order{Why: s.String()})
			drained <- result
		},
		Again: func(os.Signal) { cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = signals.Close() }()
	// A host now waits for <-drained, and exits with result.ExitCode().
	fmt.Println(d.Phase())
	// Output: open
}
