// Package canary boots a candidate beside the living service and tells whether it comes up, before anybody restarts into
// it. It is a gate over any launch recipe: a command, its folder and its environment.
//
// Make one with [New] and call [Canary.Run]; ask [Result.Proceed] whether to go on. The candidate gets a folder of its
// own that is thrown away, a port that is free or an inherited listener, and the variable MULLIGAN_CANARY, by which
// everything of Mulligan in it does nothing (package inside). It has to answer 200 on its health path within 45 s. 401
// counts as alive as well (a login wall in front of a healthy service), but only when the answer provably came from the
// candidate: it was given the listener, or every socket that listens on the port is among the descriptors of its
// processes. An answer that provably came from somebody else is none, whatever it says.
//
// What is refused: a candidate that ends early, does not answer, opens a declared live path, or leaves a process or its
// port behind when its process group has been ended, SIGTERM first and SIGKILL after a grace. Such a canary has failed,
// and what it left is ended as far as it can be found: by the mark in its environment, by its parent, by the listening
// socket. A daemon without any of the three is not, and then the port is said to be listened on still.
//
// What is promised: nothing of a failed canary is kept, and the living service is not touched by the canary itself.
// Whether the candidate could touch it is [Result.Isolation]: with Landlock, or a [Confiner] such as a transient unit,
// declared live paths are out of its reach, symlinks and relative paths included. Under Landlock nothing can be made in the
// folders that lie above a live path either, and programs in it gain no rights by setuid. What is reached by a socket, a
// bind mount or a hard link is not covered. Where the system enforces nothing the result says "unproven"; a live path that
// is found open is then still a failure, one that is read and closed between two looks is not seen.
//
// Where this differs from what users of earlier tools know: 401 can be alive.
//
// How failure shows: as a [Result] with a [Code] and a sentence, never as an error. Skipped (there is nothing to boot) is
// logged as a warning and lets the caller proceed.
package canary
