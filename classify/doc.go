// Package classify judges from the text of a death whether a code update broke the process: whether it carries the
// signature of a known family in managed code, is a bug to be shown, is on the list of causes that are never restarted, or
// stays open. Call [New] with the runtimes whose texts are to be read, then [Classifier.Classify] for each death.
//
// A host declares what is its own with [Root]: folders, module names, native bindings. Where the text names files, a
// unit is managed only if both the name and the file are. Workspaces are user code and win ties.
//
// It refuses to guess. What it cannot prove is [Unknown] with a reason and, where one is likely, a candidate family.
// [Skew] is given only where the failure that ended the process names a managed unit or was raised in one; the family
// rules are the same for every [Runtime]. An unknown with [NoFamily] has no signature of an update, one with a candidate
// is ambiguous.
//
// A text is searched for the words of all runtimes before it is read: one that holds none is judged without an allocation,
// and a failure in the last few KiB is read from there alone. [Classifier.Explain] says what decided and what was ruled out,
// [Verdict].Refusal who refused and when to come back. A host adds runtimes of its own as values of [Runtime], or as
// signatures in YAML with package pack.
//
// It promises to be pure and bounded: no clock, no file, no goroutine; the last [TailLimit] bytes are read and no
// input makes it panic or loop. Failure shows in no error, it shows in the verdict's reason.
package classify
