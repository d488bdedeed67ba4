package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/internal/require"
)

// hungry is an agent that is told what to do by files beside the one that $GO names, and says there what came of it. At its
// end it takes memory without bound; what it has written by then reads like an update's failure.
const hungry = `import os, subprocess, sys, time
go = os.environ["GO"]
def say(what, text=""):
    with open(go + ".new", "w") as f:
        f.write(text)
    os.rename(go + ".new", go + "." + what)
def wait(what):
    while not os.path.exists(go + "." + what):
        time.sleep(0.05)
say("began", str(os.getpid()))
if "FIRST" not in os.environ:
    wait("import")
    from acme.wire import %[1]s
    say("up", str(os.getpid()))
    wait("tool")
    tool = subprocess.run(["/bin/sh", "-c", "x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done"])
    say("fed", str(tool.returncode))
wait("eat")
try:
    from acme.wire import %[2]s
except ImportError:
    import traceback
    traceback.print_exc()
eaten = []
while True:
    eaten.append(b"x" * (1 << 20) + os.urandom(1))
`

// memory are the limits of a unit whose agent is hungry. They leave it no doubt which of its processes is the largest: the kernel
// counts the pages of a program too, and a runner has some 30 MB of them.
var memory = []string{"MemoryMax=128M", "MemorySwapMax=0"}

// TestOutOfMemory has the kernel kill for memory under a healer that is a service: first a tool of an agent that was put back
// into a unit of its own, which the agent survives, then that agent, and one that was never put back.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager, "--uml") {
		return
	}
	w := newHungry(t)
	scout, worker, unit := w.updated("-p", memory[0], "-p", memory[1])
	if !strings.HasPrefix(unit.Name, "mulligan-") {
		t.Fatalf("what was put back runs in %v", unit)
	}
	systemctl(t, append([]string{"set-property", "--runtime", unit.Name}, memory...)...)

	w.tell(scout, "tool")
	if code := w.said(scout, "fed"); code != "-9" {
		t.Errorf("the tool ended with %s", code)
	}
	if got := systemctl(t, "show", "--value", "-p", "OOMPolicy", "-p", "ActiveState", unit.Name); got != "active\ncontinue" && got != "continue\nactive" {
		t.Errorf("the unit of an agent whose tool was killed is %q", got)
	}
	if s := w.show("scout"); s.Card.State != "launched" || s.Replacement.State != "running" {
		t.Errorf("an agent whose tool was killed is %+v", s)
	}

	w.tell(scout, "eat")
	s := w.settled("scout", func(s shown) bool { return s.Card.State == "settled_failed" })
	if s.Replacement.Signal != "SIGKILL" || s.Replacement.Cause != "oom" {
		t.Errorf("the end of what was put back is %+v", s.Replacement)
	}
	if s.Card.Verdict.Reason != "already_restarted" || !strings.Contains(s.Card.Verdict.Text, "no update's failure: out of memory.") {
		t.Errorf("its record says %+v", s.Card.Verdict)
	}
	if pid, err := strconv.Atoi(w.said(scout, "up")); err != nil || syscall.Kill(pid, 0) == nil {
		t.Errorf("it lives, or nobody knows as what: %v", err)
	}

	w.tell(worker, "eat")
	s = w.settled("worker", func(s shown) bool { return s.Kind != "run" })
	// Should the kernel take the runner as well, its manager is who knows.
	told := s.Run.Cause == "oom" || s.Run.State == "lost"
	if s.Kind != "answer" || s.Card.Verdict.Reason != "oom" || s.Card.Verdict.Title != "Out of memory" ||
		!strings.Contains(s.Card.Verdict.Text, "is not an update's: out of memory.") || !told || s.Replacement != nil {
		t.Errorf("an agent that was killed for memory the first time: %+v", s)
	}

	// Another pass changes nothing, and nothing of what was put back is left.
	before := map[string]shown{"scout": w.show("scout"), "worker": w.show("worker")}
	if out, err := mulligan(t, w.env, "run", "-p"); err != nil {
		t.Errorf("%v, %s", err, out)
	}
	for name, was := range before {
		if now := w.show(name); !reflect.DeepEqual(was, now) {
			t.Errorf("%s was %+v and is %+v", name, was, now)
		}
	}
	if got := systemctl(t, "show", "--value", "-p", "LoadState", unit.Name); got != "not-found" {
		t.Errorf("%s is left: %s", unit.Name, got)
	}
}

// hungryWorld is a checkout with an update to come.
type hungryWorld struct {
	t    *testing.T
	live string
	env  []string
}

func newHungry(t *testing.T) *hungryWorld {
	t.Helper()
	up := require.NewRepo(t)
	version := func(class, gone string) {
		up.Commit(class, "acme/__init__.py", "", "acme/wire.py", "class "+class+":\n    pass\n", "acme/main.py", fmt.Sprintf(hungry, class, gone))
	}
	version("Frame", "Frame")
	live := filepath.Join(t.TempDir(), "live")
	up.Git("clone", "-q", up.Dir, live)
	version("Packet", "Frame")
	conf := filepath.Join(t.TempDir(), "mulligan.yaml")
	text := "agent_auto_restart:\n  quiescence_seconds: 0\n  project: acme\n  roots:\n    - {name: acme, dirs: [" + live + "], modules: [acme], runtime: python}\n"
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return &hungryWorld{t, live, []string{"MULLIGAN_HOME=" + t.TempDir(), "MULLIGAN_CONFIG=" + conf}}
}

// command is an agent as a managed run. The system's own interpreter comes first: a shim before it costs seconds in this
// kernel.
func (w *hungryWorld) command(goes, name string, env ...string) *exec.Cmd {
	c := exec.CommandContext(w.t.Context(), filepath.Join(filepath.SplitList(os.Getenv("PATH"))[0], "mulligan"),
		"exec", "--idempotent", "--name", name, "--", "python3", "-m", "acme.main")
	c.Dir, c.Env = w.live, append(append([]string{"PATH=/usr/bin:/bin:" + os.Getenv("PATH"), "HOME=" + w.live, "GO=" + goes}, w.env...), env...)
	return c
}

// updated installs the healer's service and begins two agents, scout as a plain run and worker as a service by itself, which its manager ends when the kernel kills
// in it, and updates the tree under both. Then scout has been put back, into the unit.
func (w *hungryWorld) updated(properties ...string) (scout, worker string, unit systemd.Unit) {
	w.t.Helper()
	if out, err := mulligan(w.t, w.env, "service", "install", "--system", "--yes"); err != nil {
		w.t.Fatalf("%v, %s", err, out)
	}
	scout, worker = filepath.Join(w.t.TempDir(), "go"), filepath.Join(w.t.TempDir(), "go")
	first := w.command(scout, "scout")
	if err := first.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = first.Process.Kill(); _ = first.Wait() })
	c := w.command(worker, "worker", "FIRST=1")
	service := append([]string{"--unit=worker", "--working-directory=" + w.live}, properties...)
	for _, kv := range c.Env {
		service = append(service, "--setenv="+kv)
	}
	if out, err := exec.CommandContext(w.t.Context(), "systemd-run", append(service, c.Args...)...).CombinedOutput(); err != nil {
		w.t.Fatalf("%v, %s", err, out)
	}
	w.said(scout, "began")
	w.said(worker, "began")
	if out, err := mulligan(w.t, w.env, "swap", "--", "git", "-C", w.live, "pull", "-q"); err != nil {
		w.t.Fatalf("%v, %s", err, out)
	}
	w.tell(scout, "import")
	pid, err := strconv.Atoi(w.said(scout, "up"))
	if err != nil {
		w.t.Fatal(err)
	}
	if unit, err = systemd.OfProcess(pid); err != nil {
		w.t.Fatal(err)
	}
	return scout, worker, unit
}

func (w *hungryWorld) tell(goes, what string) {
	w.t.Helper()
	if err := os.WriteFile(goes+"."+what, nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// said waits for what an agent says.
func (w *hungryWorld) said(goes, what string) string {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if b, err := os.ReadFile(goes + "." + what); err == nil {
			return string(b)
		}
		if time.Now().After(deadline) {
			out, _ := mulligan(w.t, w.env, "list", "-a")
			w.t.Fatalf("waited in vain for %s: %s", what, out)
		}
	}
}

// shown is what is looked at of mulligan show.
type shown struct {
	Kind string
	Card struct {
		State, Launch string
		Verdict       struct{ Reason, Title, Text string }
	}
	Run         struct{ State, Cause string }
	Replacement *struct{ Run, State, Signal, Cause string }
}

func (w *hungryWorld) show(name string) (s shown) {
	w.t.Helper()
	out, err := mulligan(w.t, w.env, "show", name, "-j")
	if err == nil {
		err = json.Unmarshal([]byte(out), &s)
	}
	if err != nil {
		w.t.Fatalf("%v, %s", err, out)
	}
	return s
}

// settled waits for the healer to have settled a run.
func (w *hungryWorld) settled(name string, is func(shown) bool) (s shown) {
	w.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if s = w.show(name); is(s) {
			return s
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the healer has not settled %s: %+v", name, s)
		}
	}
}

func systemctl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "systemctl", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("systemctl %s: %v, %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}
