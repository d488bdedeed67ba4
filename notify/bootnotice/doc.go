// Package bootnotice decides what a restart means and who is told: from the marker that the last instance left, this
// instance and the sessions' states it says what kind of boot this is, how long nothing ran, and which session gets
// which notice. It is pure; restart/boot keeps the marker and the notices on disk and delivers them.
//
// [Classify] comes first and gives the [Boot]. [Decide] then names the notices, [Merge] makes one message of all that a
// session has to be told, and [Text] is its wording. [Notice.Settle] finds the notices that are over.
//
// Who is told, the first that applies: the session that asked for the restart; else the sessions that were in the middle
// of a turn at the stop together with the one last active within the grace; else the target, by default the first root
// agent. Sessions that were cut off and get no notice of their own are named in the text of the others.
//
// What is refused: a notice after the first boot, an in-process reload, or beside a living instance; a second delivery
// in one boot; a fourth attempt, or one after a day. Such a notice is undeliverable, which is told once.
//
// What is promised: a notice has the same id whenever it is decided anew for the same stop, so that a crash between
// writing and delivering makes no second one. Downtime is never negative and never guessed.
//
// Two things differ from what users of earlier tools know. Downtime runs from the last proof of life (a heartbeat each 5
// s, so it may be up to 5 s too long) or the recorded stop, not from the boot before. And a downtime that clocks cannot
// tell, after a corrupt marker or a wall clock that ran backwards over a host reboot, is left out instead of zero.
package bootnotice
