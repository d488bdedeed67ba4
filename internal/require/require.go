// Package require gives tests the programs they need. A test whose program is not installed is skipped with a line that
// says how to get it; where the environment has MULLIGAN_REQUIRE=all, as in continuous integration, the skip is a
// failure: there no test may quietly not run.
//
// Call [Program], or [NewRepo] for a git repository with fixed people, given times and nothing of the user's settings.
// Every method of [Repo] fails the test when git does, so that a test reads as the story it tells.
package require

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Program returns the path of a program that the test needs. hint is the command that installs it.
func Program(t testing.TB, name, hint string) string {
	t.Helper()
	at, err := exec.LookPath(name)
	if err == nil {
		return at
	}
	missing(t, hint, fmt.Sprintf("%s is not installed", name))
	return ""
}

// missing skips, or fails where nothing may be skipped.
func missing(t testing.TB, hint, what string) {
	t.Helper()
	if os.Getenv("MULLIGAN_REQUIRE") == "all" {
		t.Fatalf("%s, and MULLIGAN_REQUIRE=all; get it with: %s", what, hint)
	}
	t.Skipf("%s; get it with: %s", what, hint)
}

// Possible skips a test that needs what this machine, or this user, cannot do: err is what trying it came to, nil when it
// can, what names it, and hint says how to get it.
func Possible(t testing.TB, hint, what string, err error) {
	t.Helper()
	if err != nil {
		missing(t, hint, fmt.Sprintf("%s is not possible here (%v)", what, err))
	}
}

// Works is Program for one that must also be able to do something: the command has to succeed.
func Works(t testing.TB, hint, name string, args ...string) {
	t.Helper()
	Program(t, name, hint)
	out, err := exec.Command(name, args...).CombinedOutput()
	if err == nil {
		return
	}
	missing(t, hint, fmt.Sprintf("%s %v does not work (%v: %s)", name, args, err, out))
}

// Executable writes a program of a test's own. Another process does: one that a parallel test forks off this one has
// what is open for writing here open until its exec, and the kernel runs no file that somebody may write (ETXTBSY).
func Executable(t testing.TB, name, text string) {
	t.Helper()
	c := exec.Command("/bin/sh", "-c", `rm -f -- "$1" && cat >"$1" && chmod 700 -- "$1"`, "sh", name)
	c.Stdin = strings.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("write the program %s: %v: %s", name, err, out)
	}
}
