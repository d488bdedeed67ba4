// Package cli is Mulligan's command line as a command tree that a host can mount under its own root. It is an adapter
// over the public packages and has no private door: what it can do, a library user can do.
//
// Call [New] with an [Env] and execute the command, alone as the program mulligan does or below a host's own root; then
// exit with [ExitCode] of the error. Everything that differs between two callers (streams, environment, folder, how the
// tree is reached in a new process, adapters of the host's own) is in the Env; the package holds no state, so any number
// of trees can live side by side.
//
// It refuses arguments and config that it does not understand, before anything is written. It never ends the process
// and, but for the time in which a command runs, handles no signals.
//
// What is promised: results go to standard output and everything else to standard error; with -j standard output is JSON
// and nothing else, also where a command fails; exit codes are stable.
//
//	0        done
//	1        a target ended in an error, or the command could not be carried out
//	2        wrong arguments or config
//	3        disabled or paused: nothing was decided
//	4        sessions: the log refuses it, with a reason
//	5        sessions resume: no host here can run a turn
//	6        sessions: the store can only be read from here
//	125-127  exec and swap: their own errors (126 not executable, 127 not found); else the exit code is the program's
//
// Failure shows as an [*ExitError], whose message was printed already and says what to do next.
package cli
