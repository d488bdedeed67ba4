package resume_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// assistant is a host with one kind of session.
type assistant struct{}

func (assistant) Workload(session.Status) (workload, unsupported string) { return "assistant", "" }

func (assistant) Resume(ctx context.Context, turn *sessions.Turn) error {
	fmt.Println("goes on with", turn.Invocation())
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

// A process dies in the middle of a turn, and the next one takes it up.
func ExampleNew() {
	ctx := context.Background()
	home, store := memory.New(memory.Config{}), memory.NewSessions(memory.SessionsConfig{})
	start := func() (*sessions.Service, func()) {
		self := home.Spawn()
		s, err := sessions.New(sessions.Config{Store: store, Instances: memory.As(home, self)})
		if err != nil {
			panic(err)
		}
		return s, func() { home.Kill(self); _ = s.Close() }
	}
	first, kill := start()
	h, err := first.Open(ctx, "s1")
	if err == nil {
		_, err = h.Begin(ctx, sessions.Start{Invocation: "request-1"})
	}
	kill()

	second, stop := start()
	defer stop()
	runner, newErr := resume.New(resume.Config{Sessions: second, Resumer: assistant{}})
	if err != nil || newErr != nil {
		fmt.Println(err, newErr)
		return
	}
	dry, err := runner.DryRun(ctx)
	fmt.Println("would be:", dry[0].Session, dry[0].Outcome, err)
	items, err := runner.Pass(ctx)
	fmt.Println("was:", items[0].Session, items[0].Outcome, err)
	// Output:
	// would be: s1 resumed <nil>
	// goes on with request-1
	// was: s1 resumed <nil>
}

// The decision alone, for who shows it.
func ExampleDecide() {
	head := session.Head{Session: "s1", Last: 9, Mark: &session.Fact{Seq: 8, Turn: "turn-1"}, Attempts: 3}
	d := resume.Decide(resume.Facts{Status: head.Status("")}, resume.Limits{})
	fmt.Println(d.Outcome)
	fmt.Println(d.Text)
	// Output:
	// skipped_loopbreak
	// 3 attempts without a completed turn: release the session to allow more
}
