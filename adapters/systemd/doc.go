// Package systemd lets Mulligan live under systemd: it launches replacements into transient units that outlive the service
// of their launcher, restarts the unit that a program runs in, and reads from the manager why something ended.
//
// Which call first: [Self] says in which unit this process runs; [Connect] reaches a manager; [NewLauncher] is a
// restart.Launcher over the connection, and [Conn.Restart] asks for a restart and sees the job accepted. [Conn.Supervised]
// tells whether systemd restarts a unit by itself: two restarters never share a run. [Conn.Recipe] says how a service is
// started, and [Conn.Confiner] boots a canary out of reach of the living service's files. [Ready], [Stopping] and
// [Watchdog] are what a service tells its manager. [WatchOOM] asks the kernel why a program was killed, [Conn.Result]
// the manager, and [Conn.End] the manager about a run that left no word: a Conn is a restart.Ends, and so are [Programs],
// which launch and ask through systemctl and systemd-run where a process has no way to the bus.
//
// What it refuses: to start anything as a plain child when no manager can be reached ([*BusError] names every bus that was
// tried); to take a container's or another host's unit for its own ([ErrNoUnit]); to restart a unit without the right to
// ([ErrNotAllowed]).
//
// What is promised: units that the launcher makes are Restart=no and OOMPolicy=continue, and their commands reach the program
// as they were given, although systemd expands variables in them. [Sweep] ends what a run left behind in its scope and
// spares daemons that a user's sessions share.
// A unit of the launcher that failed stays loaded until the record of its launch is settled and a healer has looked
// around ([Conn.Release]): at most one for each launch, until the manager is started anew where no healer looks any more.
//
// A unit is found by the text of /proc/self/cgroup: the line of the unified hierarchy ("0::") counts, the one of
// "name=systemd" only where that is absent. Its command comes from the manager's property and not from `systemctl show`,
// which does not quote.
package systemd
