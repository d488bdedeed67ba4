// Package boot keeps a process aware of its own restarts: it leaves a marker for the next instance, tells what kind of
// boot this one is and how long nothing ran, and delivers restart notices to sessions. The decisions are those of
// notify/bootnotice; here are the files, the lock and the clock.
//
// A host whose sessions are in a store calls [NewCoordinator] first, when the state folder and the store are open and before
// any session runs, and then [Coordinator.Run]: it decides which sessions are resumed, each with its notice as the first
// words of that turn, tells the others through their logs, and looks after sessions that are interrupted or appear later.
//
// A host without such a store calls [New], which reads the last marker, writes down who has to be told, and only then
// leaves a marker of its own; a turn that takes a session up takes its notice along ([Keeper.Take]). Then [Keeper.Run]
// delivers the rest through the host's [Deliverer], and the host says which sessions come later ([Keeper.Appeared]).
// [Keeper.Busy] notes a turn before it begins. [Keeper.Close] records the stop.
//
//	live          the living instance holds the kernel lock on it
//	marker.json   instance, start, turns under way, recorded stop; flushed with every change
//	beat.json     the heartbeat, each 5 s, never flushed: it outlives a kill, and a power cut needs no proof
//	outbox.json   requests and notices; changed under a lock of its own, so that a command line can acknowledge
//
// What is refused: a state folder that others may write to, one on a network file system, an outbox that cannot be read
// ([*DamageError], with the file's path). A second living instance gets a keeper that keeps nothing and tells nobody, and
// so does a canary.
//
// What is promised: a notice is durable before the marker that it came from is replaced, an attempt before it is made;
// so a process may be killed anywhere, and the session is told in the next boot. Delivery is at least once until it is
// acknowledged, at most once in a boot, in three boots, within a day. An unreadable marker is a restart of unknown
// downtime, and never an error. Nothing is polled: a late session is told when the host says that it is there.
//
// Failure shows as the error of New or of the method; a delivery that failed is logged, and tried in the next boot.
package boot
