package boot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// assistant is a host with one kind of session. Its model has nothing to say.
type assistant struct{ over chan struct{} }

func (assistant) Workload(session.Status) (workload, unsupported string) { return "assistant", "" }

func (a assistant) Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error {
	defer close(a.over)
	if notice != nil {
		lines := strings.Split(notice.Text, "\n")
		fmt.Println(turn.Session(), "goes on with", turn.Invocation())
		fmt.Println(strings.Split(lines[len(lines)-1], ".")[0])
	}
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

func (assistant) Undeliverable(context.Context, bootnotice.Notice) error { return nil }

// A process is killed in the middle of a turn. The next one resumes the session, which is told of the restart in that turn.
func ExampleNewCoordinator() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "boot")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	// A real host has files.Open and a database in their place.
	home, store := memory.New(memory.Config{}), memory.NewSessions(memory.SessionsConfig{})
	life := func(work func(*boot.Coordinator, *sessions.Service, assistant) error) error {
		self := home.Spawn()
		defer home.Kill(self)
		service, err := sessions.New(sessions.Config{Store: store, Instances: memory.As(home, self)})
		if err != nil {
			return err
		}
		a := assistant{make(chan struct{})}
		coordinator, err := boot.NewCoordinator(ctx, boot.CoordinatorConfig{Dir: dir, Sessions: service, Host: a, Startup: []string{"main"}})
		if err != nil {
			return err
		}
		fmt.Println("a restart:", coordinator.Boot().Kind.Restart())
		return errors.Join(work(coordinator, service, a), coordinator.Close(), service.Close())
	}
	err = life(func(_ *boot.Coordinator, s *sessions.Service, _ assistant) error {
		h, err := s.Open(ctx, "s1")
		if err != nil {
			return err
		}
		_, err = h.Begin(ctx, sessions.Start{Invocation: "request-1"})
		return err // and here the process dies
	})
	fmt.Println(err)
	err = life(func(c *boot.Coordinator, _ *sessions.Service, a assistant) error {
		running := make(chan error, 1)
		go func() { running <- c.Run(ctx) }()
		<-a.over
		return errors.Join(c.Close(), <-running)
	})
	fmt.Println(err)
	// Output:
	// a restart: false
	// <nil>
	// a restart: true
	// s1 goes on with request-1
	// You were in the middle of a turn
	// <nil>
}
