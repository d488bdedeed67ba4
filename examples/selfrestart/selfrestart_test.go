package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// TestMain lets the test binary stand for the example: as the one who tells the story, and as the service.
func TestMain(m *testing.M) {
	if os.Getenv("SELFRESTART_TEST") != "" || len(os.Args) > 1 && os.Args[1] == "serve" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func tell(t *testing.T) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "SELFRESTART_TEST=1")
	b, err := cmd.CombinedOutput()
	return string(b), err
}

// TestStory runs the whole story and looks for what it has to show, in this order.
func TestStory(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		check(t)
	}
}

// TestStoryOfAUser is the same under a user's manager.
func TestStoryOfAUser(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		check(t)
	}
}

func check(t *testing.T) {
	t.Helper()
	out, err := tell(t)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := out
	for _, want := range []string{
		"v1: up, pid ", "boot: first_boot",
		"v1: ops calls self_restart",
		`v1: ops is answered: {"ok":true,"restarting":true,"sessionId":"ops"`, `"canary":"passed"`,
		"v1: stopped in order",
		"v2: up, pid ", "boot: process_restart",
		"v2: ops reads: [Mulligan restart notice rn-", "Reason: you asked for it (a new release is in place).",
		"v2: ops says: I run as v2 now",
		"v2: ops calls self_restart",
		`v2: ops is answered: {"ok":false,"restarting":false`, `"canary":"failed","canaryDetail":"exited:`, "the release is damaged",
		"v2: ops says: I stay v2",
		"== The service is up: version v2, the same process as before",
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q in what is left:\n%s\nall of it:\n%s", want, rest, out)
		}
		rest = after
	}
	for what, times := range map[string]int{"Mulligan restart notice": 1, ": up, pid ": 2, "is answered": 2} {
		if n := strings.Count(out, what); n != times {
			t.Errorf("%q stands there %d times, want %d:\n%s", what, n, times, out)
		}
	}
}

// TestElsewhere: without a systemd one line says how to get one.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	if os.Getenv("MULLIGAN_SYSTEMD") != "" {
		t.Skip("this is inside a systemd")
	}
	if _, err := os.Stat("/run/systemd/private"); err == nil {
		t.Skip("this machine has a systemd, and its story is told there")
	}
	out, err := tell(t)
	if err == nil || out != "selfrestart: this needs a systemd: .ci/with-systemd -- go run ./examples/selfrestart\n" {
		t.Errorf("%v, %q", err, out)
	}
}
