// Package witness proves that an update happened under a run. A failure text alone never restarts anything: at least
// one witness must say that the tree the process booted from is not the tree it died on.
//
// Call [Gather] first. It takes what is known of a death as a [Request], which also names the [Source] of each kind
// of root, and returns [Findings]: the witnesses that hold, and for each that does not a sentence that says why. A
// Source reads what a root holds ([Identity]); rarer powers ([History], [Dated], [BatchReader], [Observer]) are
// optional interfaces that it may have as well. [Begin] is the same in two steps, for a caller that can go on with the
// first witness. Package witness/witnesstest checks any Source.
//
// Gather refuses to guess. Each witness is bound to the root that owns the module which lacks the name, or to a root
// whose code asked for it, and to the span from boot to death; a span that runs backwards proves nothing; a moment
// known only to the second is an interval. What cannot be read is an absence with a reason, not an error: the error is
// for a context that ended.
//
// The package is pure: it holds no clock, file or process, and reads the world only through the powers handed in.
package witness
