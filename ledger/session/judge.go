package session

// Judge says whether an event may follow a head: nil, or why not. It is the one place where that is decided; Step calls
// it for every event of a batch that is not in the log already.
func Judge(h Head, d Draft) *Refusal {
	e, r := d.normal()
	if r != nil {
		return r
	}
	return judge(h, e, d.If, new(said))
}

// said is the payload of a call or a result, once it is decoded: these two are on the way of every effect, and what
// judged them need not be read again by what folds them.
type said struct {
	call   *Call
	result *Result
}

// judge is Judge for an event in normal form.
func judge(h Head, e Event, c Condition, s *said) *Refusal {
	if h.Schema > Schema {
		return refuse(ErrNewer, "a newer version of Mulligan (schema %d) writes this session: update to write to it", h.Schema)
	}
	if e.Schema > Schema {
		return refuse(ErrNewer, "the event has schema %d, and this version writes %d", e.Schema, Schema)
	}
	// The fence comes first: who is no longer the owner learns that, and not that its turn is gone.
	if r := fenced(h, e); r != nil {
		return r
	}
	if c.Last != 0 && h.Last > c.Last {
		return refuse(ErrSuperseded, "the log has %d events, and the writer had seen %d", h.Last, c.Last).at(h.Last)
	}
	switch e.Kind {
	case KindTurnBegun:
		return judgeBegin(h, e)
	case KindTurnEnded:
		return judgeEnd(h, e)
	case KindModelTurn:
		return payload(e, new(ModelTurn))
	case KindMark:
		return judgeMark(h, e)
	case KindAttempt:
		return judgeAttempt(h, e)
	case KindLease:
		return judgeLease(h, e)
	case KindAbort:
		return payload(e, new(Abort))
	case KindCall:
		return judgeCall(h, e, s)
	case KindResult:
		return judgeResult(h, e, s)
	case KindResolve:
		return judgeResolve(h, e)
	case KindAck:
		return judgeAck(h, e)
	case KindGate, KindPark:
		return judgePause(h, e)
	case KindAnswer:
		return judgeAnswer(h, e)
	}
	return nil // a message, or a kind of a newer version
}

func fenced(h Head, e Event) *Refusal {
	if e.Fence == 0 && !e.Kind.owned() {
		return nil
	}
	if e.Fence == h.Fence && h.Owner.ID != "" {
		return nil
	}
	r := refuse(ErrFenced, "the writer holds the session under fence %d, and it is at %d: somebody else may own it now; "+
		"stop what runs, and open it again", e.Fence, h.Fence)
	r.Owner, r.Fence = h.Owner.Instance, h.Fence
	return r
}

func payload(e Event, v any) *Refusal {
	if err := e.Into(v); err != nil {
		return refuse(ErrMalformed, "%v", err)
	}
	return nil
}

func judgeBegin(h Head, e Event) *Refusal {
	if r := payload(e, new(TurnBegun)); r != nil {
		return r
	}
	switch {
	case e.Turn == "":
		return refuse(ErrMalformed, "a turn begins without an id")
	case h.Abort != nil:
		return refuse(ErrAborted, "the session was aborted").at(h.Abort.Seq)
	case len(h.Gates) > 0:
		return refuse(ErrPaused, "gate %s stands: answer it first", h.Gates[0].Interrupt).at(h.Gates[0].Seq)
	case h.led():
		return turnOpen(h, "turn %s is open", h.Turn.ID)
	}
	return nil
}

func turnOpen(h Head, format string, args ...any) *Refusal {
	r := refuse(ErrTurnOpen, format, args...).at(h.Turn.Seq)
	r.Owner, r.Fence = h.Owner.Instance, h.Fence
	return r
}

// thisTurn refuses an event whose turn is not the one that its owner has open.
func thisTurn(h Head, e Event) *Refusal {
	if !h.led() || h.Turn.ID != e.Turn {
		return refuse(ErrNoOpenTurn, "turn %q is not open", e.Turn)
	}
	return nil
}

func judgeEnd(h Head, e Event) *Refusal {
	var p TurnEnded
	if r := payload(e, &p); r != nil {
		return r
	}
	switch p.End {
	case EndDone, EndFailed, EndParked, EndRestarting:
	default:
		return refuse(ErrMalformed, "a turn cannot end as %q: it is done, failed, parked or restarting", p.End)
	}
	return thisTurn(h, e)
}

func judgeMark(h Head, e Event) *Refusal {
	var p Mark
	if r := payload(e, &p); r != nil {
		return r
	}
	if p.Clear == 0 {
		if h.Turn == nil || h.Turn.ID != e.Turn {
			return refuse(ErrNoOpenTurn, "turn %q is not open: there is nothing to mark", e.Turn)
		}
		return nil
	}
	switch {
	case h.led():
		return turnOpen(h, "turn %s is open: only its end clears what it left, unless another owner took the session", h.Turn.ID)
	case h.Mark != nil && h.Mark.Seq > p.Clear:
		return refuse(ErrSuperseded, "a later mark stands").at(h.Mark.Seq)
	case h.Turn != nil && h.Turn.Seq > p.Clear:
		return refuse(ErrSuperseded, "a later turn has begun").at(h.Turn.Seq)
	}
	return nil
}

func judgeAttempt(h Head, e Event) *Refusal {
	var p Attempt
	if r := payload(e, &p); r != nil {
		return r
	}
	switch {
	case p.Release:
		return nil
	case e.Fence == 0:
		return refuse(ErrFenced, "an attempt is written by the session's owner: take the session first")
	case h.Attempts > 0 && h.Attempts >= limitOf(p):
		return refuse(ErrQuarantined, "%d attempts without a completed turn: release the session to allow more", h.Attempts)
	}
	return nil
}

func limitOf(p Attempt) int {
	if p.Limit > 0 {
		return p.Limit
	}
	return DefaultAttempts
}

// judgeLease lets one owner follow another. Over is the writer's word that the owner under that fence is dead, or is
// itself; a fence that has moved on makes the word void, so of many that take a dead owner's session one gets it.
func judgeLease(h Head, e Event) *Refusal {
	var p Lease
	if r := payload(e, &p); r != nil {
		return r
	}
	if p.Release {
		switch {
		case e.Fence == 0:
			return refuse(ErrFenced, "only the owner gives a session up")
		case h.led():
			return turnOpen(h, "turn %s is open: end it before the session is given up", h.Turn.ID)
		}
		return nil
	}
	if p.Owner.ID == "" || e.Fence != 0 {
		return refuse(ErrMalformed, "a session is taken by an instance with an id, and without a fence")
	}
	if h.Owner.ID != "" && p.Over != h.Fence {
		r := refuse(ErrOwned, "instance %s holds the session and is not proven dead", h.Owner.ID).at(h.Owner.Seq)
		r.Owner, r.Fence = h.Owner.Instance, h.Fence
		return r
	}
	return nil
}

func judgeCall(h Head, e Event, s *said) *Refusal {
	var p Call
	if r := payload(e, &p); r != nil {
		return r
	}
	s.call = &p
	switch p.Class {
	case ReadOnly, Mutating, Spawning:
	default:
		return refuse(ErrMalformed, "a call is read_only, mutating or spawning, and not %q", p.Class)
	}
	switch {
	case p.Invocation == "" || p.Call == "" || p.Tool == "":
		return refuse(ErrMalformed, "a call needs its invocation, its id and its tool")
	case p.Try < 1 || e.ID != CallID(p.Invocation, p.Call, p.Try):
		return refuse(ErrMalformed, "the id of a call is made by CallID from its key and its try")
	case h.Abort != nil:
		return refuse(ErrAborted, "the session was aborted").at(h.Abort.Seq)
	}
	if r := thisTurn(h, e); r != nil {
		return r
	}
	if h.Turn.Ambiguous && p.Class != ReadOnly {
		return ambiguous(h, p.Tool)
	}
	return nil
}

func ambiguous(h Head, tool string) *Refusal {
	for _, c := range h.Calls {
		if c.Class != Spawning {
			return refuse(ErrAmbiguous, "%s does not run: call %d (%s) of an earlier turn began and nobody knows whether it "+
				"happened; resolve or acknowledge it, and run a new turn", tool, c.Seq, c.Tool).at(c.Seq)
		}
	}
	return refuse(ErrAmbiguous, "%s does not run: when this turn began, the effect of an earlier call was unknown; "+
		"it is resolved by now, run a new turn", tool)
}

func judgeResult(h Head, e Event, s *said) *Refusal {
	var p Result
	if r := payload(e, &p); r != nil {
		return r
	}
	s.result = &p
	if e.ID != ResultID(p.Call) {
		return refuse(ErrMalformed, "the id of a result is made by ResultID from its call")
	}
	if _, ok := h.Dangling(p.Call); !ok && p.Class != ReadOnly {
		return refuse(ErrNoSuchCall, "no call %s is unresolved: it was resolved or acknowledged", p.Call)
	}
	return nil
}

func judgeResolve(h Head, e Event) *Refusal {
	var p Resolve
	if r := payload(e, &p); r != nil {
		return r
	}
	switch p.Outcome {
	case Happened, DidNotHappen, Compensated:
	default:
		return refuse(ErrMalformed, "a call happened, did_not_happen or was compensated, and not %q", p.Outcome)
	}
	if e.ID != ResolveID(p.Call) {
		return refuse(ErrMalformed, "the id of a resolution is made by ResolveID from its call")
	}
	c, ok := h.Dangling(p.Call)
	if !ok {
		return refuse(ErrNoSuchCall, "no call %s is unresolved", p.Call)
	}
	if h.led() && c.Seq > h.Turn.Seq && p.Dead != h.Fence {
		return refuse(ErrInProgress, "the call is in flight in turn %s, whose owner is not proven dead", h.Turn.ID).at(c.Seq)
	}
	return nil
}

func judgeAck(h Head, e Event) *Refusal {
	var p Ack
	if r := payload(e, &p); r != nil {
		return r
	}
	if p.Through == 0 || p.Through > h.Last {
		return refuse(ErrMalformed, "the log has %d events: what was shown cannot go through %d", h.Last, p.Through)
	}
	if h.led() && p.Dead != h.Fence {
		return turnOpen(h, "turn %s is open and its owner is not proven dead: wait, or abort it", h.Turn.ID)
	}
	return nil
}
