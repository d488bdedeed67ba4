// Package notifytest holds implementations of notify.Notifier to what they promise: one row a key, one toast a key, no
// note lost, nothing acknowledged that was not shown. It also brings [Recorder], a notifier for a host's own tests.
//
// Call [Run] from a test with a function that opens a fresh [Sink] over the notifier; what the notifier cannot do it
// declares in its [Sheet], and the checks that need it are left out. [Checks] lists the checks for whoever wants to run
// them elsewhere.
//
// Promised: each check says in its error which promise broke, and each is itself tested against a notifier that breaks
// just that promise. Refused: a sink without a notifier or a way to read what it shows.
package notifytest
