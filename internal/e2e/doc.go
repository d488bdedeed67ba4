// Package e2e shows each promise of the design end to end: real agents, a real git checkout under them, real
// updates, a real state folder, real processes. It holds tests only, one story each.
//
// A story begins with newWorld, which makes a checkout of a small agent framework and wires everything as a host would;
// start runs an agent, update changes the code under it, and pass is one round of the healer. Nothing sleeps: a story
// waits for what it needs to see, with a deadline that only a broken promise reaches. Stories that need a second
// process execute the test binary again in a role (see roles_test.go).
//
// The agents of most stories are Python. One story each (runtimes_*_test.go) has them in another language: Node.js, Ruby,
// PHP, a JVM, Perl, Tcl, Lua, bash, C, Go, Rust; the tree is swapped under them, and look-alikes are left alone.
package e2e
