package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
)

// EnvToken is the environment variable that holds the token of a pause for `sessions answer`.
const EnvToken = "MULLIGAN_SESSION_TOKEN"

// doneView is what a command did, as JSON.
type doneView struct {
	Session   string `json:"session"`
	Did       string `json:"did"`
	Interrupt string `json:"interrupt,omitempty"`
	// Token answers the pause, and is shown this once.
	Token string `json:"token,omitempty"`
	// Through and Call are the sequences that an acknowledgement or a resolution was about.
	Through uint64 `json:"through,omitempty"`
	Call    uint64 `json:"call,omitempty"`
}

// done says what was done, as JSON or as the text of a format with the session in it.
func (g *sessionsCommand) done(json bool, v doneView, format string, args ...any) error {
	if json {
		return printJSON(g.env.Stdout, v)
	}
	return printText(g.env.Stdout, fmt.Sprintf(format, args...))
}

// by is who acts.
func (g *sessionsCommand) by() string { return cmp.Or(g.env.get("USER"), g.env.get("LOGNAME")) }

// valueFlags are the two ways to give a value: as text, which becomes a JSON string, or as JSON.
type valueFlags struct{ text, json string }

func (v *valueFlags) add(c *cobra.Command, what string) {
	c.Flags().StringVar(&v.text, "text", "", what+", as `TEXT`")
	c.Flags().StringVar(&v.json, "value", "", what+", as `JSON`")
}

// get is the value, nil when there is none.
func (v *valueFlags) get(c *cobra.Command) (json.RawMessage, error) {
	text, raw := c.Flags().Changed("text"), c.Flags().Changed("value")
	switch {
	case text && raw:
		return nil, usage("--text and --value are two values: give one")
	case raw && !json.Valid([]byte(v.json)):
		return nil, usage("--value %.80q is no JSON: `--text` takes plain text", v.json)
	case raw:
		return json.RawMessage(v.json), nil
	case text:
		return json.Marshal(v.text)
	}
	return nil, nil
}

// watch lets a command wait for the death of an owner. One on another machine is proven dead by a lease that stood still
// for its whole time, so the first look proves nothing.
type watch struct{ wait string }

func (w *watch) add(c *cobra.Command) {
	c.Flags().StringVar(&w.wait, "wait", "0s", "how long to wait until the owner is proven dead, a `DUR`; on another machine that takes its lease, 30s")
}

// owner waits until the session's owner is proven dead, or there is none, or the time is over: then the log refuses.
func (w *watch) owner(ctx context.Context, u *sessionsUse, name string) error {
	wait, err := parseAge(w.wait)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s, err := u.Status(context.WithoutCancel(ctx), name)
		if err != nil || s.Liveness == ledger.Dead || s.Liveness == "" {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// act makes a command that appends to one session, which is its first argument.
func (g *sessionsCommand) act(c *cobra.Command, do func(ctx context.Context, c *cobra.Command, u *sessionsUse, args []string, json bool) error) *cobra.Command {
	var json bool
	c.RunE = g.run(func(c *cobra.Command, args []string) error {
		return g.use(c.Context(), writing, func(ctx context.Context, u *sessionsUse) error {
			if len(args) > 0 {
				if _, err := u.existing(ctx, args[0]); err != nil {
					return err
				}
			}
			return do(ctx, c, u, args, json)
		})
	})
	jsonFlag(c, &json)
	return c
}

func (g *sessionsCommand) newPause() *cobra.Command {
	var interrupt, question string
	c := &cobra.Command{
		Use:   "pause SESSION [--interrupt ID] [--question TEXT] [-j]",
		Short: "Stop a session before its next turn, until somebody answers",
		Long: "Put a gate before the session's next turn. A turn that runs goes on to its end. The gate's token is shown this\n" +
			"once: whoever has it can answer, without knowing more.",
		Args: g.args(exactly("SESSION")),
	}
	c.Flags().StringVar(&interrupt, "interrupt", "", "the gate's `ID`; absent makes one")
	c.Flags().StringVar(&question, "question", "", "what is asked, as `TEXT`")
	return g.act(c, func(ctx context.Context, _ *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		var q json.RawMessage
		if question != "" {
			var err error
			if q, err = json.Marshal(question); err != nil {
				return err
			}
		}
		id, token, err := u.Pause(ctx, args[0], interrupt, q)
		if err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "paused", Interrupt: id, Token: token},
			"Paused: no turn of %s begins before %s is answered.\nIts token, shown this once: %s\n", notify.Line(args[0], 0), notify.Line(id, 0), token)
	})
}

func (g *sessionsCommand) newExtend() *cobra.Command {
	c := &cobra.Command{
		Use:   "extend SESSION INTERRUPT [-j]",
		Short: "Give an open gate or park a new token; the old one is over",
		Args:  g.args(several("SESSION", "INTERRUPT")),
	}
	return g.act(c, func(ctx context.Context, _ *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		token, err := u.Extend(ctx, args[0], args[1])
		if err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "extended", Interrupt: args[1], Token: token},
			"Extended: %s has a new token, and the old one is over.\nIt is shown this once: %s\n", notify.Line(args[1], 0), token)
	})
}

func (g *sessionsCommand) newAnswer() *cobra.Command {
	var value valueFlags
	var tokenFile string
	two := several("SESSION", "INTERRUPT")
	c := &cobra.Command{
		Use:   "answer (SESSION INTERRUPT | --token-file FILE) (--text TEXT | --value JSON) [-j]",
		Short: "Answer a gate or a park",
		Long: "Answer what a session asks: by its name and the id of the gate or park, or by a token, which names both. A token\n" +
			"comes from a file, from standard input (--token-file -) or from $MULLIGAN_SESSION_TOKEN, never from an argument:\n" +
			"those can be read by others. A question is answered once; the same answer again succeeds.",
		Args: g.args(func(c *cobra.Command, args []string) error {
			for _, a := range args {
				if _, _, err := session.ParseToken(a); err == nil {
					return errors.New("a token does not belong on a command line, where others can read it: give it with --token-file, and " +
						"make a new one with `sessions extend`")
				}
			}
			if len(args) == 0 {
				return nil
			}
			return two(c, args)
		}),
	}
	value.add(c, "the answer")
	c.Flags().StringVar(&tokenFile, "token-file", "", "the `FILE` that holds the token, - for standard input")
	return g.act(c, func(ctx context.Context, c *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		v, err := value.get(c)
		if err != nil {
			return err
		}
		if v == nil {
			return usage("the answer is missing: give --text TEXT or --value JSON")
		}
		if len(args) > 0 {
			if tokenFile != "" {
				return usage("--token-file names a session and an interrupt by itself: leave the arguments out")
			}
			if err := u.Answer(ctx, args[0], session.Answer{Interrupt: args[1], Value: v, By: g.by()}); err != nil {
				return err
			}
			return g.answered(asJSON, args[0], args[1])
		}
		token, err := g.token(tokenFile)
		if err != nil {
			return err
		}
		name, interrupt, err := session.ParseToken(token)
		if err != nil {
			return err
		}
		if _, err := u.existing(ctx, name); err != nil {
			return err
		}
		if err := u.AnswerToken(ctx, token, v, g.by()); err != nil {
			return err
		}
		return g.answered(asJSON, name, interrupt)
	})
}

func (g *sessionsCommand) answered(asJSON bool, name, interrupt string) error {
	return g.done(asJSON, doneView{Session: name, Did: "answered", Interrupt: interrupt},
		"Answered: %s of %s.\n", notify.Line(interrupt, 0), notify.Line(name, 0))
}

// token reads a token from a file, standard input or the environment.
func (g *sessionsCommand) token(file string) (string, error) {
	var from io.Reader
	switch file {
	case "":
		token := strings.TrimSpace(g.env.get(EnvToken))
		if token == "" {
			return "", usage("what is answered is missing: give SESSION and INTERRUPT, or a token with --token-file or $%s", EnvToken)
		}
		return token, nil
	case "-":
		from = g.env.Stdin
	default:
		path, err := g.env.path(file)
		if err != nil {
			return "", err
		}
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		defer f.Close()
		from = f
	}
	b, err := io.ReadAll(io.LimitReader(from, 4096)) // a token is far shorter
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (g *sessionsCommand) newAbort() *cobra.Command {
	var why string
	c := &cobra.Command{
		Use:   "abort SESSION [--why TEXT] [-j]",
		Short: "Stop a session for good; a turn that runs is cancelled",
		Args:  g.args(exactly("SESSION")),
	}
	c.Flags().StringVar(&why, "why", "", "the reason, as `TEXT`")
	return g.act(c, func(ctx context.Context, _ *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		if err := u.Abort(ctx, args[0], why); err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "aborted"}, "Aborted: %s begins no turn and no call any more.\n", notify.Line(args[0], 0))
	})
}

func (g *sessionsCommand) newAck() *cobra.Command {
	var through uint64
	var w watch
	c := &cobra.Command{
		Use:   "ack SESSION --through SEQ [--wait DUR] [-j]",
		Short: "Accept that nobody knows whether the unresolved calls happened",
		Long: "Accept the unresolved calls up to a sequence as unknown: they do not run again, and the session may change things\n" +
			"again. SEQ is the last sequence that `sessions show` showed, so that nothing is accepted unseen. It is refused\n" +
			"while a turn is open whose owner is not proven dead.",
		Args: g.args(exactly("SESSION")),
	}
	c.Flags().Uint64Var(&through, "through", 0, "the last sequence that was shown, `SEQ`")
	w.add(c)
	return g.act(c, func(ctx context.Context, _ *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		if through == 0 {
			return usage("--through is missing: `%s` shows the sequence", g.line("show", args[0]))
		}
		if err := w.owner(ctx, u, args[0]); err != nil {
			return err
		}
		if err := u.Ack(ctx, args[0], through, g.by()); err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "acknowledged", Through: through},
			"Acknowledged: what %s left unresolved through %d counts as unknown.\n", notify.Line(args[0], 0), through)
	})
}

// resolutions are the outcomes as they are written on a command line.
var resolutions = map[string]session.Resolution{
	"happened": session.Happened, "did-not-happen": session.DidNotHappen, "compensated": session.Compensated,
}

func (g *sessionsCommand) newResolve() *cobra.Command {
	var value valueFlags
	var w watch
	c := &cobra.Command{
		Use:   "resolve SESSION SEQ (happened | did-not-happen | compensated) [--text TEXT | --value JSON] [--wait DUR] [-j]",
		Short: "Say what became of one call that a crash left open",
		Long: "Say what became of one call, by its sequence in `sessions show`: it happened (with the result, if the agent needs\n" +
			"one), it did not happen (and runs again when the agent asks for it again), or it happened and was undone.",
		Args: g.args(several("SESSION", "SEQ", "OUTCOME")),
	}
	value.add(c, "the result of a call that happened")
	w.add(c)
	return g.act(c, func(ctx context.Context, c *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		seq, err := strconv.ParseUint(args[1], 10, 64)
		if err != nil || seq == 0 {
			return usage("%q is no sequence: `%s` shows the calls with theirs", args[1], g.line("show", args[0]))
		}
		outcome, ok := resolutions[args[2]]
		if !ok {
			return usage("%q is no outcome, want happened, did-not-happen or compensated", args[2])
		}
		v, err := value.get(c)
		if err != nil {
			return err
		}
		if v != nil && outcome != session.Happened {
			return usage("only a call that happened has a result")
		}
		if err := w.owner(ctx, u, args[0]); err != nil {
			return err
		}
		if err := u.Resolve(ctx, args[0], seq, session.Resolve{Outcome: outcome, Value: v, By: g.by()}); err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "resolved", Call: seq}, "Resolved: call %d of %s %s.\n", seq, notify.Line(args[0], 0),
			map[session.Resolution]string{session.Happened: "happened", session.DidNotHappen: "did not happen", session.Compensated: "happened and was undone"}[outcome])
	})
}

func (g *sessionsCommand) newRelease() *cobra.Command {
	c := &cobra.Command{
		Use:   "release SESSION [-j]",
		Short: "Let auto-resume try a session again",
		Args:  g.args(exactly("SESSION")),
	}
	return g.act(c, func(ctx context.Context, _ *cobra.Command, u *sessionsUse, args []string, asJSON bool) error {
		if err := u.Release(ctx, args[0], g.by()); err != nil {
			return err
		}
		return g.done(asJSON, doneView{Session: args[0], Did: "released"}, "Released: auto-resume may try %s again.\n", notify.Line(args[0], 0))
	})
}

// several wants arguments by their names.
func several(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return fmt.Errorf("%s is missing: %s", names[len(args)], c.UseLine())
		case len(args) > len(names):
			return fmt.Errorf("%q is one argument too many: %s", args[len(names)], c.UseLine())
		}
		return nil
	}
}
