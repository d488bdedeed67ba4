// Package sessions runs agent sessions on a store: it takes a session for this process, opens turns that end when the
// session is aborted or lost, and appends what any process may say about a session that somebody else owns.
//
// Begin with [New] and [Service.Open], which takes the session; then [Handle.Begin] for each turn:
//
//	h, err := service.Open(ctx, "s1")
//	turn, err := h.Begin(ctx, sessions.Start{Invocation: request})
//	_, err = turn.Append(turn.Context(), session.Reply(now, id, session.ModelTurn{Content: said}))
//	err = turn.End(ctx, session.TurnEnded{End: session.EndDone})
//
// A turn is what the effect guard of ledger/effect writes through. Its context is cancelled, with the reason as its
// cause, when an abort is seen or when the session is no longer this process's. [Service.Pause], [Service.Answer],
// [Service.Abort], [Service.Ack] and the other verbs are plain appends: they need no owner, and do not disturb one.
//
// What it refuses: a session whose owner is not proven dead (session.ErrOwned), and all that the log refuses. Death is
// proven by the instances' kernel locks where both are on one machine, else by a renewal that stood still for its whole
// TTL on the store's clock and on ours. In a canary (probe/canary/inside) no session is opened and nothing is appended.
//
// Promised: whoever takes a session raises its fence, so the owner before writes nothing any more; an owner that could
// not renew for the TTL cancels its turns before anybody may take over. What no fence stops is a call that is already
// under way outside: its effect may still happen after the takeover, and the log shows it as dangling.
//
// Failure shows as an error that wraps a *session.Refusal with its code, or session.ErrOutcomeUnknown.
package sessions
