package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// agent is the model, which is a script, and its one tool. It is the Host of the boot coordinator.
type agent struct {
	version  string
	restart  *handoff.Handoff
	sessions *sessions.Service
}

// Workload implements boot.Host: all sessions are alike, and it can run them all.
func (a *agent) Workload(session.Status) (workload, unsupported string) { return "ops", "" }

// Undeliverable implements boot.Host.
func (a *agent) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	say("%s: nobody told %s of the restart: %s", a.version, n.Session, n.By)
	return nil
}

// Turn implements boot.Host: the turn of a session that is resumed or that a notice starts. The notice is in its log.
func (a *agent) Turn(ctx context.Context, t *sessions.Turn, notice *bootnotice.Delivery) error {
	if notice == nil {
		return a.update(ctx, t)
	}
	for line := range strings.Lines(notice.Text) {
		say("%s: %s reads: %s", a.version, t.Session(), line)
	}
	return a.reply(ctx, t, "I run as "+a.version+" now")
}

// update is the turn of a person's message: the model calls its tool.
func (a *agent) update(ctx context.Context, t *sessions.Turn) error {
	guard, err := effect.New(effect.Config{Turn: t, Now: a.sessions.Now})
	if err != nil {
		return err
	}
	call := effect.Call{ID: "restart", Tool: "self_restart", Args: json.RawMessage(`{"reason":"a new release is in place","canary":true}`)}
	say("%s: %s calls %s %s", a.version, t.Session(), call.Tool, call.Args)
	result, err := guard.Do(ctx, call, func(ctx context.Context) (effect.Result, error) {
		return effect.Result{Value: a.restart.Tool().Call(ctx, handoff.Asker{Turn: t, Call: call.ID}, call.Args)}, nil
	})
	if err != nil {
		return err
	}
	say("%s: %s is answered: %s", a.version, t.Session(), result.Value)
	var answer handoff.Result
	if err := json.Unmarshal(result.Value, &answer); err != nil {
		return err
	}
	if answer.Restarting {
		return nil // the turn has ended with the call; the next words are those of the notice
	}
	return a.reply(ctx, t, "I stay "+a.version+": "+answer.Error)
}

// reply ends the turn with what the model says.
func (a *agent) reply(ctx context.Context, t *sessions.Turn, text string) error {
	content, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if _, err := t.Append(ctx, session.Reply(a.sessions.Now(), sessions.NewID(), session.ModelTurn{Content: content})); err != nil {
		return err
	}
	if err := t.End(ctx, session.TurnEnded{End: session.EndDone}); err != nil {
		return err
	}
	say("%s: %s says: %s", a.version, t.Session(), text)
	return nil
}

// routes are the health check, which the canary asks too, and the way for a person's message.
func (a *agent) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, a.version) })
	mux.HandleFunc("POST /say/{session}", func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
		if err == nil {
			err = a.hear(context.WithoutCancel(r.Context()), r.PathValue("session"), string(text))
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusConflict)
		}
	})
	return mux
}

// hear appends a message to a session and runs the turn that it needs, in the background.
func (a *agent) hear(ctx context.Context, name, text string) error {
	content, err := json.Marshal(text)
	if err != nil {
		return err
	}
	if err := a.sessions.Say(ctx, name, content); err != nil {
		return err
	}
	h, err := a.sessions.Open(ctx, name)
	if err != nil {
		return err
	}
	t, err := h.Begin(ctx, sessions.Start{})
	if err != nil {
		return errors.Join(err, h.Close(ctx))
	}
	go func() {
		if err := a.update(t.Context(), t); err != nil {
			err = errors.Join(err, t.End(ctx, session.TurnEnded{End: session.EndFailed, Why: err.Error()}))
			say("%s: %s: %v", a.version, name, err)
		}
		if err := h.Close(ctx); err != nil {
			say("%s: %s: %v", a.version, name, err)
		}
	}()
	return nil
}
