// Package handoff is how a process restarts itself on purpose: it asks who may, tries the new code, waits until nobody is
// in the middle of something, writes down that the restart was wanted, and then asks whoever can do it. An agent gets it
// as a tool with a JSON result.
//
// Which call first: [New] with a [Restarter] and a [History]; give [Handoff.Admit] to the session service and the service
// to [Handoff.Attach]; then [Handoff.Ask], or [Handoff.Tool] for agents. A host that wakes a session with a restart notice
// says so with [Handoff.Woken]; a coordinator of restart/boot takes that as its Woken.
//
// What it refuses, each with a [Code]: a restart without a unit where one is needed; one that this process has no right
// to; one while others are in the middle of a turn, unless it waits or a person let it go ahead; one whose canary failed;
// more than [Limit] in [Window], and any when the history cannot be read; and one by a session that a restart notice
// started and that has completed no turn since, unless a person confirms. Force and confirmation are never the agent's to
// give: they are asked of [Config.Confirm].
//
// Promised: all stages together take no longer than one deadline. While a restart waits no turn begins; a turn that asks
// for a restart counts as idle, and one that comes while another is prepared joins it, so two that wait never wait for each
// other. A session that is aborted or no longer this process's does not hold a restart up. Before the restart is asked for
// the history, the notice and the end of the turn are durable, the call's own completion and "turn ended {restarting}" as
// one batch: the session that asked is neither ambiguous nor interrupted. The job starts after [Config.Delay], so that the
// answer gets out. When it is refused the notice is taken back; when nobody knows, only if this process still lives after
// [Settle].
//
// The notice is written before the batch. A process that is killed between the two finds its turn cut off and the notice
// there: the session is told, and shown as interrupted, which it was. The other order could lose the notice.
//
// A process beside the host may ask too, as `mulligan self-restart` does. [Handoff.Listen] makes the host hear it: then
// [AskHost] is answered as if it had been asked for inside. Beside a host that does not listen it prepares the restart with a
// handoff of its own ([Asker.Session], [MidTurn], [Config.Asked]). That sees in the store who is in the middle of a turn,
// waits for them and writes the notice; it cannot end a turn and cannot keep new ones out, so the session's own turn is cut
// off, and so is one that begins between its last look and the stop, as by any stop.
//
// Failure shows as a [Result] that is not OK, with its text; what fails after the answer is given to [Config.Failed].
package handoff
