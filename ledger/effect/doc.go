// Package effect keeps a call that changes something from happening twice without anybody being told. The intent is in
// the session's log before the call begins, and the completion after it: what lies between a crash shows.
//
// Begin with [New] for each turn, and put [Guard.Do] round every call:
//
//	guard, err := effect.New(effect.Config{Turn: turn, Tools: effect.Tools{"status": session.ReadOnly}, Now: clock})
//	result, err := guard.Do(ctx, effect.Call{ID: id, Tool: "scale", Args: args}, func(ctx context.Context) (effect.Result, error) {
//		return scale(ctx, args)
//	})
//
// A host with its own loop uses [Guard.Begin] and [Guard.Complete]. A turn of restart/sessions is a [Turn]; [On] makes
// one of any log, for who has no such shell.
//
// A call is read-only, mutating or spawning, by its tool; an unknown tool is mutating. Read-only calls are not in the log
// and cost nothing. For the others the key is the session, the turn's invocation and the call's id. What it refuses, with
// the code of a [*session.Refusal]: ambiguous_prior_effect when the turn began while a mutating call was unresolved;
// in_progress while the same call runs; effect_key_conflict for a key that belongs to another tool or other arguments; and
// accepted_unknown or compensated for a call of which an operator said so.
//
// Promised: a key whose call has completed replays its result, also in later turns and other processes; a result that was
// returned completes, an error of the tool too. A Go error, a panic and a cancellation leave the call dangling, because
// nobody knows whether it happened, unless the error is [NotApplied]. Equal arguments under different keys are
// different calls. Exactly once is not promised, by nobody who tells the truth: a call whose completion could not be
// written may have happened, and the next turn refuses mutating calls until somebody says what became of it.
package effect
