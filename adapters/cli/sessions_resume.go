package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// NoHostError refuses to resume a session in a program that cannot run its turns. It comes with CodeNoHost, and nothing
// was changed.
type NoHostError struct {
	Session string
}

func (e *NoHostError) Error() string {
	return fmt.Sprintf("session %s is resumed by a host that can run its turns, and this program is none: start the host, which takes "+
		"it up by itself, or use the command that the host mounts; nothing was changed", notify.Shell(e.Session))
}

func (g *sessionsCommand) newResume() *cobra.Command {
	var interrupt string
	var through uint64
	var value valueFlags
	var w watch
	c := &cobra.Command{
		Use:   "resume SESSION [--interrupt ID [--text TEXT | --value JSON]] [--ack-through SEQ] [--wait DUR] [-j]",
		Short: "Run the turn that a session was interrupted in, or parked with",
		Long: "Run one turn of a session here, which takes up the turn that was interrupted, or that was parked with a question.\n" +
			"With --interrupt it is the turn that was parked with that question, and a value answers it first. With\n" +
			"--ack-through the unresolved calls are accepted first, as `sessions ack` does.\n\n" +
			"It needs a host: a program that mounts these commands and can run a turn. Elsewhere it changes nothing and ends\n" +
			"with exit code 5.",
		Args: g.args(exactly("SESSION")),
	}
	c.Flags().StringVar(&interrupt, "interrupt", "", "take up the turn that was parked with this `ID`")
	c.Flags().Uint64Var(&through, "ack-through", 0, "accept unresolved calls up to this `SEQ` first")
	value.add(c, "the answer to --interrupt")
	w.add(c)
	var asJSON bool
	jsonFlag(c, &asJSON)
	c.RunE = g.run(func(c *cobra.Command, args []string) error {
		answer, err := value.get(c)
		if err != nil {
			return err
		}
		if answer != nil && interrupt == "" {
			return usage("a value answers --interrupt ID: give it as well")
		}
		if g.env.RunTurn == nil {
			return &ExitError{Code: CodeNoHost, Err: &NoHostError{Session: args[0]}}
		}
		return g.use(c.Context(), writing, func(ctx context.Context, u *sessionsUse) error {
			ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
			defer stop()
			if _, err := u.existing(ctx, args[0]); err != nil {
				return err
			}
			if err := w.owner(ctx, u, args[0]); err != nil {
				return err
			}
			if err := u.prepare(ctx, args[0], through, interrupt, answer); err != nil {
				return err
			}
			turn, err := u.resume(ctx, args[0], interrupt)
			if err != nil {
				return err
			}
			return g.done(asJSON, doneView{Session: args[0], Did: "resumed", Interrupt: interrupt},
				"Resumed: turn %s of %s has ended.\n", notify.Line(turn, 0), notify.Line(args[0], 0))
		})
	})
	return c
}

// prepare appends what the person decided on the way.
func (u *sessionsUse) prepare(ctx context.Context, name string, through uint64, interrupt string, answer json.RawMessage) error {
	if through != 0 {
		if err := u.Ack(ctx, name, through, u.command.by()); err != nil {
			return err
		}
	}
	if answer != nil {
		return u.Answer(ctx, name, session.Answer{Interrupt: interrupt, Value: answer, By: u.command.by()})
	}
	return nil
}

// resume runs one turn of the host's, and says which.
func (u *sessionsUse) resume(ctx context.Context, name, interrupt string) (turn string, err error) {
	status, err := u.Status(ctx, name)
	if err != nil {
		return "", err
	}
	start, err := u.start(ctx, status, interrupt)
	if err != nil {
		return "", err
	}
	h, err := u.Open(ctx, name)
	if err != nil {
		return "", err
	}
	// The session is given up whatever became of the turn, also when the person has pressed Ctrl-C.
	late := context.WithoutCancel(ctx)
	defer func() { err = errors.Join(err, h.Close(late)) }()
	t, err := h.Begin(ctx, start)
	if err != nil {
		return "", err
	}
	defer context.AfterFunc(ctx, func() { t.Cancel(context.Cause(ctx)) })()
	err = u.command.env.RunTurn(t.Context(), t)
	if slices.Contains(u.Turns(), t) {
		why := "it was left open"
		if err != nil {
			why = err.Error()
		}
		err = errors.Join(err, t.End(late, session.TurnEnded{End: session.EndFailed, Why: why}))
	}
	if err != nil {
		return t.ID(), fmt.Errorf("run turn %s: %w", t.ID(), err)
	}
	return t.ID(), nil
}

// start is how the turn begins: it takes up an earlier one, with its invocation, so that calls which were completed are
// not made again.
func (u *sessionsUse) start(ctx context.Context, s session.Status, interrupt string) (sessions.Start, error) {
	h := s.Head
	start := sessions.Start{Seen: h.Last}
	switch {
	case interrupt != "":
		if _, open := h.Pause(interrupt); open {
			return start, fmt.Errorf("%s has no answer yet: give one with --text or --value", notify.Shell(interrupt))
		}
		e, ok, err := u.Store.Find(ctx, h.Session, session.PauseID(interrupt))
		if err != nil {
			return start, err
		}
		if !ok {
			return start, &session.Refusal{Code: session.ErrNoSuchInterrupt, Text: fmt.Sprintf("no gate or park was ever called %s", interrupt)}
		}
		start.Resumes = e.Turn
	case s.Interruption != nil:
		start.Resumes = s.Interruption.Turn
	case h.Turn != nil: // it runs, or may run: taking the session is refused
		start.Resumes = h.Turn.ID
	case h.Ended == session.EndDone:
		return start, fmt.Errorf("there is nothing to take up in session %s: its last turn is done", notify.Shell(h.Session))
	case h.Ended == "":
		return start, fmt.Errorf("there is nothing to take up in session %s: no turn of it was interrupted or parked", notify.Shell(h.Session))
	}
	begun, err := u.begun(ctx, h, start.Resumes)
	start.Resumes, start.Invocation = begun.Turn, begun.Turn
	var p session.TurnBegun
	if err == nil {
		err = begun.Into(&p)
	}
	if p.Invocation != "" {
		start.Invocation = p.Invocation
	}
	return start, err
}

// begun is the event that began a turn, or, without a name, the last one; it is looked for from the end.
func (u *sessionsUse) begun(ctx context.Context, h session.Head, turn string) (session.Event, error) {
	for to := h.Last; to > 0; {
		from := to - min(to, session.DefaultPage)
		var found session.Event
		err := u.read(ctx, h.Session, from, to, func(e session.Event) error {
			if e.Kind == session.KindTurnBegun && (turn == "" || e.Turn == turn) {
				found = e
			}
			return nil
		})
		if err != nil || found.Seq != 0 {
			return found, err
		}
		to = from
	}
	return session.Event{}, fmt.Errorf("the log of session %s has no turn to take up", notify.Shell(h.Session))
}
