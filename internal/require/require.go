// Package require gives tests the programs they need. A test whose program is not installed is skipped with a line that
// says how to get it; where the environment has MULLIGAN_REQUIRE=all, as in continuous integration, the skip is a
// failure: there no test may quietly not run.
//
// Call [Program], or [NewRepo] for a git repository with fixed people, given times and nothing of the user's settings.
// Every method of [Repo] fails the test when git does, so that a test reads as the story it tells.
package require

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program that the test needs. hint is the command that installs it.
func Program(t testing.TB, name, hint string) string {
	t.Helper()
	at, err := exec.LookPath(name)
	if err == nil {
		return at
	}
	if os.Getenv("MULLIGAN_REQUIRE") == "all" {
		t.Fatalf("%s is not installed and MULLIGAN_REQUIRE=all; get it with: %s", name, hint)
	}
	t.Skipf("%s is not installed; get it with: %s", name, hint)
	return ""
}
