package main

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test binary stand for the example, which starts itself in its parts.
func TestMain(m *testing.M) {
	if os.Getenv("ONCALL_TEST") != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestStory runs the whole story and looks for what it has to show, in this order.
func TestStory(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "ONCALL_TEST=1", "ONCALL_DIR=", "TMPDIR="+t.TempDir())
	b, err := cmd.CombinedOutput()
	out := string(b)
	if err != nil {
		t.Fatalf("the story ended badly: %v\n%s", err, out)
	}
	rest := out
	for _, want := range []string{
		`incident-1: read_status says "replicas=2"`,
		`incident-1: asks "Scale web from 2 to 6 replicas?" and parks`,
		"kill -9 host",
		"incident-1: paused",
		"Waits for an answer:",
		"oncall sessions answer incident-1 approve-scaling --text TEXT | --value JSON",
		"host: ready",
		"Answered: approve-scaling of incident-1.",
		`incident-1: scale ran: {"replicas":6}`,
		"incident-1: done: web has six replicas now",
		"Incidents: 1. Scalings of the deployment: 1.",
		"incident-2: asks",
		"(the process is killed right after it has scaled)",
		"Incidents: 2. Scalings of the deployment: 2.",
		"incident-2: auto-resume: skipped_ambiguous",
		"incident-2: scale is refused: ambiguous_prior_effect",
		"Nobody knows whether these calls happened:",
		"oncall sessions resolve incident-2",
		"Resolved: call",
		`incident-2: scale had happened already, and is not run again: {"replicas":6}`,
		"incident-2: done",
		"incident-1  idle",
		"incident-2  idle",
		"Incidents: 2. Scalings of the deployment: 2.",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing, or not in its place, in:\n%s", want, out)
		}
		rest = after
	}
}

// TestResumeAsJSON: a turn that a command runs leaves the command's output alone.
func TestResumeAsJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	part := func(args ...string) (string, string) {
		t.Helper()
		var out, said strings.Builder
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "ONCALL_TEST=1", "ONCALL_DIR="+dir), &out, &said
		if err := cmd.Run(); err != nil {
			t.Fatalf("oncall %v: %v\n%s%s", args, err, &out, &said)
		}
		return out.String(), said.String()
	}
	part("inject", "s", "web is slow")
	host := exec.CommandContext(t.Context(), os.Args[0], "host")
	host.Env = append(os.Environ(), "ONCALL_TEST=1", "ONCALL_DIR="+dir)
	printed, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(printed); lines.Scan() && !strings.Contains(lines.Text(), "parks"); {
	}
	_ = host.Process.Kill() // it has parked, and is needed no more
	_ = host.Wait()
	out, said := part("sessions", "resume", "s", "--interrupt", "approve-scaling", "--text", "yes", "-j")
	var got struct{ Did string }
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Did != "resumed" || !strings.Contains(said, "s: scale ran") {
		t.Errorf("%v: %s, beside it %s", err, out, said)
	}
}

// TestParts pins that a part says what it lacks.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ dir, args, want string }{
		{"", "host", "ONCALL_DIR is not set"},
		{t.TempDir(), "inject s", "usage: oncall inject SESSION TEXT"},
		{t.TempDir(), "sessions list", "there is no session store"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), "ONCALL_TEST=1", "ONCALL_DIR="+c.dir)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), c.want) {
			t.Errorf("oncall %s: %v, %s", c.args, err, out)
		}
	}
}
