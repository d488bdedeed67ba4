// Package session is the event log of an agent's session: what may be appended to it, what each event does to the
// session's state, and what the state is. A store keeps the events; this package decides, so that every store decides
// the same.
//
// A store is a [Log] and a [Lister]. Its atomic step is [Step]: it loads the session's [Head], gives it to Step together
// with the batch, and writes the events and the head that come back. Whoever appends makes a [Draft] with one of the
// constructors ([Begin], [Finish], [NewCall], [NewGate], [NewAnswer] and so on) and reads the outcome of each event:
//
//	receipt, err := store.Append(ctx, "s1", []session.Draft{session.NewAbort(now, "event-1", "the operator said stop")})
//	if err == nil {
//		err = receipt.Outcomes[0].Err() // nil, or a *Refusal
//	}
//
// What it refuses, each with a stable [Code]: an event of a stale owner ([ErrFenced]); a turn while another one is open,
// an abort stands ([ErrAborted]) or a gate does ([ErrPaused]); a call after an abort, or after a crash that left the
// effect of an earlier one unknown ([ErrAmbiguous]); a second answer to one question ([ErrAnswerConflict]); one effect key
// for two effects ([ErrEffectKeyConflict]); an acknowledgement while the turn's owner is not proven dead ([ErrTurnOpen]).
//
// Promised of a log: an event whose append returned is durable; sequence numbers start at 1 and have no gaps; an event
// that is appended again returns its first sequence; a refused event changes nothing and never fails the others of its
// batch; kinds that this version does not know are kept and shown. What is not promised is exactly once: a call whose
// completion was not written may have happened, and the log says so until somebody resolves it.
//
// Failure shows in two ways. A refused event has a [*Refusal] in its [Outcome]; errors.Is tells its code. An append that
// could not be done is an error of Append, and one that ended while the write was under way is [ErrOutcomeUnknown]:
// append the same events again, their ids make that safe.
//
// The package is pure: time, randomness and who lives are arguments.
package session
