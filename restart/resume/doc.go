// Package resume takes up sessions that were interrupted: by a crash, a kill -9, a power cut, or a drain that could not
// wait any longer. It decides for each what is to be done, does it one session at a time, and says what it did.
//
// Begin with [New] and call [Runner.Run], which makes a pass at once and then looks every half a minute for sessions whose
// owner has died meanwhile. [Runner.Pass] is one pass, [Runner.DryRun] says what a pass would do and does nothing, and
// [Decide] is the decision alone, as a pure function.
//
// A session that nothing interrupted and that has to be told something begins its turn with [Runner.Wake], under the same
// breaker and cap; the boot coordinator of restart/boot does that for restart notices. [Runner.Look] says beforehand what
// would become of a session.
//
// A turn that is resumed is a turn like any other. It goes through the same admission and the same effect checks, has the
// invocation of the one that it takes up, so that calls which were completed replay, and is bounded. The attempt is
// written before the turn, in one step with its beginning.
//
// What it refuses, each an [Outcome] with a text: a session in which an effect is unknown (skipped_ambiguous, until
// somebody resolves or acknowledges it); one whose owner gave its last proof of life too long ago (skipped_stale); one that
// was tried too often without a completed turn (skipped_loopbreak, until a turn completes or somebody releases it); one
// that somebody else took or changed (skipped_superseded); one that the host cannot run (skipped_unsupported). A paused or
// aborted session, and one whose owner is not proven dead, is left alone and not counted, and so are all while this process
// begins no turn (not_admitted, draining). An instance tries a session again only after it changed: a provider that is down
// must not use up the attempts within two minutes.
//
// Promised: no turn is begun that is not counted as an attempt; of two instances one resumes; a session that hangs costs
// its own bound, and the others are resumed. A panic of the host's code is not caught: it is what the attempts are for.
//
// Failure shows as the outcome error with its text, in the report, the log and the counter. A session that cannot be read
// has that outcome too, with its *session.UnreadableError, and holds up no other; each pass looks at it again.
package resume
