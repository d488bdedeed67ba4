package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

const (
	// maxOutside is far above what a request can hold.
	maxOutside = 64 << 10
	// lineWithin bounds the sending of one line to a process of this machine.
	lineWithin = 5 * time.Second
)

// Outside is a request from a process beside the host.
type Outside struct {
	Request
	// Unit is what is meant to be restarted; empty is whatever the host restarts.
	Unit string `json:"unit,omitempty"`
	// Found is set when nobody named the unit and it is only where the asker runs: a host that is restarted without the name
	// of a unit is meant then too.
	Found bool `json:"found,omitempty"`
	// Session and Call are those of an Asker. The session's open turn ends like that of one who asks from inside.
	Session string `json:"session,omitempty"`
	Call    string `json:"call,omitempty"`
}

// reply is the host's answer to an Outside.
type reply struct {
	// Other is set when the host is not the one that was meant.
	Other  bool   `json:"other,omitempty"`
	Result Result `json:"result"`
	Code   Code   `json:"code,omitempty"`
}

// ErrNoHost means that no host listens in a folder, or that the one that does restarts something else.
var ErrNoHost = errors.New("no host listens there for a restart")

// Listen lets processes beside the host ask for a restart, as `mulligan self-restart` does, until the handoff is closed: the
// host then prepares it like one that is asked for inside, with its own guard, canary, confirmation and end of the turn. The
// folder is that of the notices and restarts, made when it is absent. One that others may enter is refused, since whoever
// reaches it may ask, and so is one in which another process listens. In a canary nobody listens.
func (h *Handoff) Listen(dir string) error {
	if inside.Inert() {
		return nil
	}
	d, err := openDoor(dir)
	if err != nil {
		return fmt.Errorf("listen for restarts in %s: %w", dir, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.spawn(func() { h.serve(d) }) {
		d.close()
		return errors.New("listen for restarts: the handoff is closed")
	}
	context.AfterFunc(h.stop, func() { _ = d.listener.Close() })
	return nil
}

// serve answers whoever comes, each beside the others: those that wait join one restart.
func (h *Handoff) serve(d *door) {
	var work sync.WaitGroup
	defer d.close()
	defer work.Wait()
	for {
		conn, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			h.c.Log.Warn("a request for a restart could not be taken", "error", err)
			if !h.rest(look) {
				return
			}
			continue
		}
		work.Go(func() { h.hear(conn) })
	}
}

// hear answers one request. It is given up when its asker goes, and when the handoff is closed.
func (h *Handoff) hear(conn net.Conn) {
	ctx, gone := context.WithCancelCause(h.stop)
	defer gone(nil)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(lineWithin)) // a socket that is closed says so when it is read
	d := json.NewDecoder(io.LimitReader(conn, maxOutside))
	d.DisallowUnknownFields()
	var o Outside
	var out reply
	if err := d.Decode(&o); err != nil {
		out = reply{Code: CodeMalformed, Result: Result{Error: fmt.Sprintf("this is no request for a restart: %v", err), InFlight: []string{}}}
	} else {
		_ = conn.SetReadDeadline(time.Time{})
		watch.Go(func() {
			_, _ = io.Copy(io.Discard, conn)
			gone(errors.New("who asked is gone"))
		})
		out = h.outside(ctx, o)
	}
	_ = conn.SetWriteDeadline(time.Now().Add(lineWithin))
	if err := json.NewEncoder(conn).Encode(out); err != nil {
		h.c.Log.Info("who asked for a restart is not there for the answer", "session", o.Session, "error", err)
	}
}

// outside asks on behalf of another process.
func (h *Handoff) outside(ctx context.Context, o Outside) reply {
	if o.Unit != "" && (!o.Found || h.c.Restarter.NeedsUnit()) {
		if unit, err := h.unit(ctx); err != nil || bare(unit) != bare(o.Unit) {
			return reply{Other: true}
		}
	}
	who, refused := h.asker(ctx, o)
	if refused != nil {
		return reply{Code: refused.code, Result: Result{SessionID: o.Session, Reason: o.Reason, Error: refused.text, InFlight: []string{}}}
	}
	res := h.Ask(ctx, who, o.Request)
	return reply{Result: res, Code: res.Code}
}

// bare is a unit's name as people write that of a service.
func bare(unit string) string { return strings.TrimSuffix(unit, ".service") }

// asker is the open turn of the session that asks, so that it ends as if it had asked inside.
func (h *Handoff) asker(ctx context.Context, o Outside) (Asker, *refusal) {
	h.mu.Lock()
	s := h.sessions
	h.mu.Unlock()
	if o.Session == "" || s == nil {
		return Asker{Session: o.Session}, nil
	}
	for _, t := range s.Turns() {
		if t.Session() == o.Session {
			return Asker{Turn: t, Call: o.Call}, nil
		}
	}
	st, err := s.Status(ctx, o.Session)
	if err != nil {
		return Asker{}, refuse(CodeNotWritten, "the session cannot be read: %v", err)
	}
	if st.Head.Last == 0 {
		return Asker{}, refuse(CodeMalformed, "there is no session %q", o.Session)
	}
	return Asker{Session: o.Session}, nil
}

// AskHost has the host that listens in a folder restart itself ([Handoff.Listen]), and returns its answer. It is given up
// with the context. [ErrNoHost] means that nothing was asked for; one that matches ErrUnknown that the host went away before
// it answered. In a canary it is refused.
func AskHost(ctx context.Context, dir string, o Outside) (Result, error) {
	if inside.Inert() {
		return Result{}, inside.ErrInert
	}
	conn, err := knock(ctx, dir)
	if err != nil {
		return Result{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	err = json.NewEncoder(conn).Encode(o)
	var in reply
	if err == nil {
		err = json.NewDecoder(conn).Decode(&in)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return Result{}, fmt.Errorf("ask the host for a restart: %w", context.Cause(ctx))
	case err != nil:
		return Result{}, fmt.Errorf("%w: the host went away before it answered: %w", ErrUnknown, err)
	case in.Other:
		return Result{}, ErrNoHost
	}
	in.Result.Code = in.Code
	return in.Result, nil
}
