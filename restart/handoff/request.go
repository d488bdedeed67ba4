package handoff

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// MaxReason is the longest reason and cause, in bytes: both are shown to people and agents.
const MaxReason = 2000

// Request is a restart that somebody wants.
type Request struct {
	// Reason is why, in a sentence. The session reads it again after the restart.
	Reason string `json:"reason,omitempty"`
	// Cause is a word for programs and records: "deploy", "config".
	Cause string `json:"cause,omitempty"`
	// Canary tries the new code first.
	Canary bool `json:"canary,omitempty"`
	// Force asks to cut off turns that are under way. Config.Confirm decides.
	Force bool `json:"force,omitempty"`
	// Wait waits until they have ended.
	Wait bool `json:"wait,omitempty"`
}

// Asker is the turn on whose behalf a restart is asked for. The zero Asker is an operator: nothing is written to any
// session, and nobody gets a notice.
type Asker struct {
	Turn Turn
	// Session asks from outside of the process that runs its turns, and only without Turn. It gets the notice and is not
	// waited for, but its turn is its host's to end: the restart cuts it off, unless the host drains first. Where the host
	// listens, [AskHost] has it end.
	Session string
	// Call is the id, within the turn's invocation, of the call that asks; empty when it is in no log.
	Call string
}

// Turn is an open turn. A *sessions.Turn is one.
type Turn interface {
	// ID is the turn's id.
	ID() string
	// Session is its session's name.
	Session() string
	// Invocation is the request that it works for.
	Invocation() string
	// Append adds events of the turn; with none it only tells the session's head.
	Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error)
	// End closes the turn. An end that is in the log already is no error.
	End(ctx context.Context, e session.TurnEnded) error
}

var _ Turn = (*sessions.Turn)(nil)

// Code is a stable reason of a refusal.
type Code string

// The codes.
const (
	CodeMalformed   Code = "malformed"     // the request itself
	CodeInert       Code = "canary"        // this process is a canary
	CodeClosed      Code = "closed"        // the handoff is closed
	CodeNoUnit      Code = "no_unit"       // restartUnit not configured
	CodeNotAllowed  Code = "not_allowed"   // the restarter cannot, or may not
	CodeUnconfirmed Code = "unconfirmed"   // a confirmation was needed and not given
	CodeBudget      Code = "budget"        // too many restarts lately, or nobody knows how many
	CodeBusy        Code = "busy"          // others are in the middle of a turn
	CodeDeadline    Code = "deadline"      // they still were when the time was up
	CodeCanceled    Code = "canceled"      // the asker gave up, or was stopped
	CodeCanary      Code = "canary_failed" // the new code did not come up
	CodeNotWritten  Code = "not_written"   // what has to be durable first is not
)

// Result is the answer to a request. As JSON it is what an agent's tool returns.
type Result struct {
	OK         bool   `json:"ok"`
	Restarting bool   `json:"restarting"`
	SessionID  string `json:"sessionId"`
	Reason     string `json:"reason"`
	Error      string `json:"error"`
	// Canary is its outcome, empty when none was wanted.
	Canary       Outcome `json:"canary"`
	CanaryDetail string  `json:"canaryDetail"`
	// InFlight are the sessions that were in the middle of a turn when this was decided, in order.
	InFlight []string `json:"inFlight"`
	// WaitedMs is from the request to the answer.
	WaitedMs int64 `json:"waitedMs"`
	// Code is the reason of a refusal, empty when OK.
	Code Code `json:"-"`
}

// Why a person is asked.
type Why string

// The questions.
const (
	// WhyForce: turns that are under way would be cut off.
	WhyForce Why = "force"
	// WhyLoop: the session was started by a restart notice and has completed no turn since. That is how restart loops look.
	WhyLoop Why = "after_restart"
)

// Question is what Config.Confirm is asked.
type Question struct {
	Why     Why
	Session string
	Request Request
	// InFlight are the sessions that would be cut off, for WhyForce.
	InFlight []string
}

// refusal is why a request came to nothing.
type refusal struct {
	code     Code
	text     string
	inFlight []string
}

func refuse(code Code, format string, args ...any) *refusal {
	return &refusal{code: code, text: fmt.Sprintf(format, args...)}
}

// Ask asks for a restart, and answers when it is refused or when it will come: then the asker's turn has ended, and the
// job starts after the delay. A request that comes while another is prepared joins it, waits as that one does and adds
// what it wants: a canary, the wait, the force.
func (h *Handoff) Ask(ctx context.Context, who Asker, r Request) Result {
	began := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, h.c.Deadline, errDeadline)
	defer cancel()
	p := &participant{who: who, request: r, began: began, done: make(chan struct{})}
	res, refused := h.ask(ctx, p)
	if refused != nil {
		res = p.result()
		res.OK, res.Restarting = false, false
		res.Error, res.Code, res.InFlight = refused.text, refused.code, refused.inFlight
		h.c.Log.Info("a restart was refused", "session", p.session(), "code", string(refused.code), "error", refused.text)
	}
	if res.InFlight == nil {
		res.InFlight = []string{} // a list, not null
	}
	return res
}

var errDeadline = errors.New("the time for preparing a restart was over")

// participant is one asker of a restart.
type participant struct {
	who      Asker
	request  Request
	began    time.Time
	canary   Outcome
	detail   string
	inFlight []string
	refused  *refusal
	answer   Result
	done     chan struct{} // closed when refused or answer stands
}

func (p *participant) session() string {
	if p.who.Turn == nil {
		return p.who.Session
	}
	return p.who.Turn.Session()
}

// result is the answer of this asker as far as it is known.
func (p *participant) result() Result {
	in := p.inFlight
	if in == nil {
		in = []string{}
	}
	return Result{OK: true, Restarting: true, SessionID: p.session(), Reason: p.request.Reason, Canary: p.canary,
		CanaryDetail: p.detail, InFlight: in, WaitedMs: time.Since(p.began).Milliseconds()}
}

func (h *Handoff) ask(ctx context.Context, p *participant) (Result, *refusal) {
	if refused := h.entitled(ctx, p); refused != nil {
		return Result{}, refused
	}
	a, refused := h.join(ctx, p)
	if refused != nil {
		return Result{}, refused
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		if h.leave(a, p) {
			return Result{}, h.gaveUp(ctx, a, p)
		}
		<-p.done // it is being written: the end of the turn is what cancelled us
	}
	if p.refused != nil {
		return Result{}, p.refused
	}
	return p.answer, nil
}

// gaveUp is the refusal of an asker whose context ended.
func (h *Handoff) gaveUp(ctx context.Context, a *attempt, p *participant) *refusal {
	h.mu.Lock()
	p.canary, p.detail = a.canary, a.detail
	h.mu.Unlock()
	cause := context.Cause(ctx)
	if !errors.Is(cause, errDeadline) {
		return refuse(CodeCanceled, "the request ended before the restart began: %v", cause)
	}
	return h.late(ctx, a, p.session())
}

// late is the refusal when the time is up. Who was in the way is for the text: that it cannot be told any more changes
// nothing.
func (h *Handoff) late(ctx context.Context, a *attempt, but ...string) *refusal {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statusWithin)
	defer cancel()
	busy, err := h.busy(ctx, a, but...)
	if err != nil {
		h.c.Log.Warn("nobody can tell who was in the middle of a turn", "error", err)
	}
	r := refuse(CodeDeadline, "the restart could not be prepared within %v", h.c.Deadline)
	if len(busy) > 0 {
		r = refuse(CodeDeadline, "still in the middle of a turn after %v: %s", h.c.Deadline, strings.Join(busy, ", "))
	}
	r.inFlight = busy
	return r
}

// entitled is all that is asked before anything is tried or waited for.
func (h *Handoff) entitled(ctx context.Context, p *participant) *refusal {
	if refused := p.request.check(); refused != nil {
		return refused
	}
	if inside.Inert() {
		return refuse(CodeInert, "%v", inside.ErrInert)
	}
	unit, err := h.unit(ctx)
	if err != nil {
		return refuse(CodeNoUnit, "%v", err)
	}
	if err := h.c.Restarter.Check(ctx, unit); err != nil {
		return refuse(CodeNotAllowed, "%v", err)
	}
	if refused := h.afford(ctx); refused != nil {
		return refused
	}
	return h.confirmed(ctx, p)
}

func (r Request) check() *refusal {
	for _, f := range []struct{ name, text string }{{"reason", r.Reason}, {"cause", r.Cause}} {
		if len(f.text) > MaxReason || !utf8.ValidString(f.text) {
			return refuse(CodeMalformed, "the %s is longer than %d bytes or no UTF-8", f.name, MaxReason)
		}
	}
	return nil
}

// confirmed asks the host what only a person may decide.
func (h *Handoff) confirmed(ctx context.Context, p *participant) *refusal {
	loop, err := h.looping(ctx, p)
	if err != nil {
		return refuse(CodeNotWritten, "the session cannot be read: %v", err)
	}
	if loop {
		q := Question{Why: WhyLoop, Session: p.session(), Request: p.request}
		if refused := h.confirm(ctx, q, "a restart started this session, and it has completed no turn since: only a person may let it restart again"); refused != nil {
			return refused
		}
	}
	if !p.request.Force {
		return nil
	}
	h.mu.Lock()
	a := h.attempt // those that wait for a restart themselves are not cut off by one
	h.mu.Unlock()
	busy, err := h.busy(ctx, a, p.session())
	if err != nil {
		return untold(err)
	}
	if len(busy) == 0 {
		p.request.Force = false // there is nothing to force; whoever comes later is waited for, or stands in the way
		return nil
	}
	q := Question{Why: WhyForce, Session: p.session(), Request: p.request, InFlight: busy}
	refused := h.confirm(ctx, q, "cutting off turns that are under way was not allowed: "+strings.Join(busy, ", "))
	if refused != nil {
		refused.inFlight = busy
	}
	return refused
}

func (h *Handoff) confirm(ctx context.Context, q Question, text string) *refusal {
	if h.c.Confirm == nil {
		return refuse(CodeUnconfirmed, "%s", text)
	}
	ok, err := h.c.Confirm(ctx, q)
	if err != nil {
		return refuse(CodeUnconfirmed, "%s (asking failed: %v)", text, err)
	}
	if !ok {
		return refuse(CodeUnconfirmed, "%s", text)
	}
	return nil
}

// looping reports that the session was started by a restart and has completed no turn since.
func (h *Handoff) looping(ctx context.Context, p *participant) (bool, error) {
	h.mu.Lock()
	_, woken := h.woken[p.session()]
	s := h.sessions
	h.mu.Unlock()
	switch {
	case woken:
		return true, nil
	case p.who.Turn == nil && (s == nil || p.who.Session == ""):
		return false, nil
	case p.who.Turn == nil:
		st, err := s.Status(ctx, p.who.Session)
		return err == nil && st.Head.Ended == session.EndRestarting, err
	}
	receipt, err := p.who.Turn.Append(ctx)
	// The turn before this one ended by asking for a restart.
	return err == nil && receipt.Head.Ended == session.EndRestarting, err
}

// afford refuses when the budget is used up, before anybody waits or anything is tried. The record itself judges again.
func (h *Handoff) afford(ctx context.Context) *refusal {
	entries, err := h.c.History.Entries(ctx)
	if err != nil {
		return refuse(CodeBudget, "it cannot be told how often this process was restarted lately: %v", err)
	}
	if n := Recent(entries, h.c.Now()); n >= Limit {
		return refuse(CodeBudget, "%d restarts were asked for in the last %v, and %d is the limit: something is going round in circles", n, Window, Limit)
	}
	return nil
}

// Tool is the self-restart as a tool of an agent.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON schema of the arguments.
	Schema json.RawMessage
	// Call asks for a restart with the agent's arguments and returns the Result as JSON. It fails never: what is wrong
	// stands in the result.
	Call func(ctx context.Context, who Asker, args json.RawMessage) json.RawMessage
}

const schema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"reason":{"type":"string","description":"Why, in a sentence. You read it again after the restart."},` +
	`"cause":{"type":"string","description":"A word for records, such as deploy or config."},` +
	`"canary":{"type":"boolean","description":"Try the new code beside the running one first; a failure stops the restart."},` +
	`"wait":{"type":"boolean","description":"Wait until other sessions have ended their turns."},` +
	`"force":{"type":"boolean","description":"Ask a person to let the restart cut off other sessions."}}}`

// Tool is the tool over this handoff. It is a mutating one for the effect guard, like any tool that is not declared.
func (h *Handoff) Tool() Tool {
	return Tool{
		Name: "self_restart",
		Description: "Restart the process that runs you. Your turn ends with this call; after the restart you get a notice and go on. " +
			"It is refused while other sessions are in the middle of a turn, unless you wait.",
		Schema: json.RawMessage(schema),
		Call: func(ctx context.Context, who Asker, args json.RawMessage) json.RawMessage {
			return h.call(ctx, who, args)
		},
	}
}

func (h *Handoff) call(ctx context.Context, who Asker, args json.RawMessage) json.RawMessage {
	var r Request
	p := &participant{who: who, began: time.Now()}
	if len(strings.TrimSpace(string(args))) > 0 {
		d := json.NewDecoder(strings.NewReader(string(args)))
		d.DisallowUnknownFields()
		if err := d.Decode(&r); err != nil || d.More() {
			res := p.result()
			res.OK, res.Restarting, res.Code = false, false, CodeMalformed
			res.Error = fmt.Sprintf("the arguments are no request for a restart: %v", err)
			return res.encode()
		}
	}
	return h.Ask(ctx, who, r).encode()
}

// encode is the result as it is in the session's log, byte for byte.
func (r Result) encode() json.RawMessage {
	b, err := json.Marshal(r)
	if err != nil {
		panic("a result of plain texts does not encode: " + err.Error())
	}
	return b
}
