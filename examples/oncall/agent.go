package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// agent is the model, which is a script, and its two tools.
type agent struct {
	// deployment is the service that the agent looks after: a file with one line for each time it was scaled, the newest
	// last.
	deployment string
	// dies makes the process kill itself between the effect of scaling and its completion.
	dies bool
	// out gets what the agent says of itself.
	out io.Writer
}

func newAgent(dir string, out io.Writer) agent {
	return agent{deployment: filepath.Join(dir, "deployment"), dies: os.Getenv("ONCALL_DIES") != "", out: out}
}

func (a agent) say(format string, args ...any) { fmt.Fprintf(a.out, format+"\n", args...) }

// The question that stands before the effect, and the key of the effect. Both are the same in each turn that works for
// one alert, so an answer is found again, and a call that was completed is not made again.
const approval, scaling = "approve-scaling", "scale-web"

// turn is what the model does in one turn. It needs no memory: what was asked, answered and done is in the log.
func (a agent) turn(ctx context.Context, t *sessions.Turn) error {
	guard, err := effect.New(effect.Config{Turn: t, Now: now,
		Tools: effect.Tools{"read_status": session.ReadOnly, "scale": session.Mutating}})
	if err != nil {
		return err
	}
	status, err := guard.Do(ctx, effect.Call{ID: "status", Tool: "read_status"}, a.readStatus)
	if err != nil {
		return err
	}
	a.say("%s: read_status says %s", t.Session(), status.Value)

	answer, answered, err := approved(ctx, t)
	switch {
	case err != nil:
		return err
	case !answered:
		return a.ask(ctx, t)
	case answer != "yes":
		return a.done(ctx, t, "left alone, as I was told")
	}
	result, err := guard.Do(ctx, effect.Call{ID: scaling, Tool: "scale", Args: json.RawMessage(`{"replicas":6}`)}, a.scale)
	if err != nil {
		a.say("%s: scale is refused: %s", t.Session(), session.CodeOf(err))
		return err // the turn is ended as failed by who runs it, and the session stays interrupted
	}
	how := "ran"
	if result.Replayed {
		how = "had happened already, and is not run again"
	}
	a.say("%s: scale %s: %s", t.Session(), how, result.Value)
	return a.done(ctx, t, "web has six replicas now")
}

// ask ends the turn with a question. Nothing runs while it waits, in no process.
func (a agent) ask(ctx context.Context, t *sessions.Turn) error {
	const question = `"Scale web from 2 to 6 replicas?"`
	proposal := session.ModelTurn{Calls: []string{scaling}, Content: json.RawMessage(`"web is slow: I would scale it to six replicas"`)}
	if _, err := t.Append(ctx, session.Reply(now(), sessions.NewID(), proposal)); err != nil {
		return err
	}
	if err := t.Park(ctx, session.Pause{Interrupt: approval, Question: json.RawMessage(question)}); err != nil {
		return err
	}
	a.say("%s: asks %s and parks", t.Session(), question)
	return nil
}

func approved(ctx context.Context, t *sessions.Turn) (answer string, ok bool, err error) {
	e, ok, err := t.Find(ctx, session.AnswerID(approval))
	if !ok || err != nil {
		return "", false, err
	}
	var p session.Answer
	if err := e.Into(&p); err != nil {
		return "", false, err
	}
	return answer, true, json.Unmarshal(p.Value, &answer)
}

func (a agent) done(ctx context.Context, t *sessions.Turn, text string) error {
	content, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if _, err := t.Append(ctx, session.Reply(now(), sessions.NewID(), session.ModelTurn{Content: content})); err != nil {
		return err
	}
	if err := t.End(ctx, session.TurnEnded{End: session.EndDone}); err != nil {
		return err
	}
	a.say("%s: done: %s", t.Session(), text)
	return nil
}

// readStatus is the tool that changes nothing.
func (a agent) readStatus(context.Context) (effect.Result, error) {
	lines, err := a.scalings()
	if err != nil {
		return effect.Result{}, err
	}
	state := "replicas=2"
	if len(lines) > 0 {
		state = lines[len(lines)-1]
	}
	value, err := json.Marshal(state)
	return effect.Result{Value: value}, err
}

// scale is the tool that changes something. That it ran shows in the file, whatever the log knows of it.
func (a agent) scale(context.Context) (effect.Result, error) {
	f, err := os.OpenFile(a.deployment, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return effect.Result{}, fmt.Errorf("scale: %w: %w", effect.NotApplied, err) // nothing was written: it may be tried again
	}
	defer f.Close()
	if _, err := f.WriteString("replicas=6\n"); err != nil {
		return effect.Result{}, err
	}
	if a.dies {
		a.say("(the process is killed right after it has scaled)")
		if err := syscall.Kill(os.Getpid(), syscall.SIGKILL); err != nil {
			return effect.Result{}, err
		}
		select {} // the signal is on its way
	}
	return effect.Result{Value: json.RawMessage(`{"replicas":6}`)}, nil
}

// scalings are the times that the service was scaled.
func (a agent) scalings() ([]string, error) {
	b, err := os.ReadFile(a.deployment)
	if os.IsNotExist(err) {
		return nil, nil
	}
	return strings.Fields(string(b)), err
}
