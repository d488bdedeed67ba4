package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/signal"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
)

// tailCount is how many events are shown when nothing says from where on.
const tailCount = 10

func (g *sessionsCommand) newTail() *cobra.Command {
	var json, follow bool
	var after uint64
	c := &cobra.Command{
		Use:   "tail SESSION [--after SEQ] [-f] [-j]",
		Short: "Show the last events of a session, and follow it",
		Long: "Show the last ten events of a session, or all after a sequence, and with -f those that come, until interrupted.\n" +
			"With -j each line is one event as JSON. Events of a newer version are shown, not understood.",
		Args: g.args(exactly("SESSION")),
	}
	c.RunE = g.run(func(c *cobra.Command, args []string) error {
		return g.use(c.Context(), reading, func(ctx context.Context, u *sessionsUse) error {
			show := func(e session.Event) error {
				if json {
					return printLine(g.env.Stdout, e)
				}
				return printText(g.env.Stdout, eventLine(e))
			}
			status, err := u.existing(ctx, args[0])
			if bad := (*session.UnreadableError)(nil); errors.As(err, &bad) {
				// Its events may be whole all the same. Nobody knows where they end.
				return errors.Join(u.read(ctx, args[0], after, math.MaxUint64, show), err)
			}
			if err != nil {
				return err
			}
			last := status.Head.Last
			if !c.Flags().Changed("after") {
				after = last - min(last, tailCount)
			}
			if !follow {
				return u.read(ctx, args[0], after, last, show)
			}
			ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM)
			defer stop()
			for e, err := range u.Tail(ctx, args[0], after) {
				if err != nil {
					return err
				}
				if err := show(e); err != nil {
					return err
				}
			}
			return nil
		})
	})
	c.Flags().Uint64Var(&after, "after", 0, "all events after this `SEQ`")
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what comes")
	jsonFlag(c, &json)
	return c
}

// read yields the events after one sequence up to another.
func (u *sessionsUse) read(ctx context.Context, name string, after, last uint64, f func(session.Event) error) error {
	for after < last {
		page, err := u.Store.Read(ctx, name, after, 0)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, e := range page {
			if e.Seq > last {
				return nil
			}
			if err := f(e); err != nil {
				return err
			}
			after = e.Seq
		}
	}
	return nil
}

// eventLine is one event for people.
func eventLine(e session.Event) string {
	kind := string(e.Kind)
	if !e.Kind.Known() || e.Schema > session.Schema {
		kind = notify.Line(kind, 40) + " (of a newer version)"
	}
	return fmt.Sprintf("%d  %s  %s  %s\n", e.Seq, moment(e.At), kind, gist(e))
}

// gist says in a few words what an event is about; of what is not decoded, the payload.
func gist(e session.Event) string {
	turn := notify.Line(e.Turn, 60)
	switch e.Kind {
	case session.KindTurnBegun:
		return turn
	case session.KindTurnEnded:
		return turn + " " + decoded(e, func(p session.TurnEnded) string { return string(p.End) + because(p.Why) })
	case session.KindModelTurn:
		return decoded(e, func(p session.ModelTurn) string { return spoken(p.Content) })
	case session.KindCall:
		return decoded(e, func(p session.Call) string {
			return fmt.Sprintf("%s (%s) %s", notify.Line(p.Tool, 60), p.Class, spoken(p.Args))
		})
	case session.KindResult:
		return decoded(e, func(p session.Result) string {
			switch {
			case p.NotApplied:
				return "did nothing"
			case p.Failed:
				return "failed: " + spoken(p.Value)
			}
			return spoken(p.Value)
		})
	case session.KindGate, session.KindPark:
		return decoded(e, func(p session.Pause) string {
			if p.Extend {
				return notify.Line(p.Interrupt, 60) + " gets a new token"
			}
			return notify.Line(p.Interrupt, 60) + ": " + spoken(p.Question)
		})
	case session.KindAnswer:
		return decoded(e, func(p session.Answer) string {
			return notify.Line(p.Interrupt, 60) + ": " + spoken(p.Value) + by(p.By)
		})
	case session.KindAck:
		return decoded(e, func(p session.Ack) string { return fmt.Sprintf("through %d%s", p.Through, by(p.By)) })
	case session.KindResolve:
		return decoded(e, func(p session.Resolve) string { return string(p.Outcome) + by(p.By) })
	case session.KindLease:
		return decoded(e, func(p session.Lease) string {
			if p.Release {
				return "given up by " + owner(p.Owner)
			}
			return "taken by " + owner(p.Owner)
		})
	}
	return spoken(e.Payload)
}

// decoded reads a payload and says what is in it; one of another form is shown as it is.
func decoded[P any](e session.Event, say func(P) string) string {
	var p P
	if e.Into(&p) != nil {
		return spoken(e.Payload)
	}
	return say(p)
}

func by(who string) string {
	if who == "" {
		return ""
	}
	return ", by " + notify.Line(who, 60)
}
