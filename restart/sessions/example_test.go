package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// A turn that asks before it acts, and an answer from somewhere else.
func ExampleNew() {
	ctx := context.Background()
	home := memory.New(memory.Config{})
	service, err := sessions.New(sessions.Config{Store: memory.NewSessions(memory.SessionsConfig{}), Instances: home.Instances()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = service.Close() }()

	h, err := service.Open(ctx, "s1")
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := h.Begin(ctx, sessions.Start{ID: "turn-1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	pause, token, err := service.NewPause("s1", "scale-up", json.RawMessage(`"Scale to 12?"`))
	fmt.Println(err, turn.Park(ctx, pause))
	fmt.Println(state(service))

	fmt.Println(service.AnswerToken(ctx, token, json.RawMessage(`true`), "ada"))
	fmt.Println(state(service))
	err = service.AnswerToken(ctx, token, json.RawMessage(`false`), "ada")
	fmt.Println(errors.Is(err, session.ErrAnswerConflict))
	// Output:
	// <nil> <nil>
	// paused
	// <nil>
	// idle
	// true
}

func state(s *sessions.Service) string {
	st, err := s.Status(context.Background(), "s1")
	if err != nil {
		return err.Error()
	}
	return st.String()
}
