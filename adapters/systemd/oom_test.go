package systemd

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/restart"
)

// eater is a program that takes memory until it is killed. It does not swap, where there is anything to swap to.
const eater = `x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done`

// oomRunner is a runner whose programs are killed; it lives on and says why.
func oomRunner() {
	for { // its memory is bounded when it is there
		if _, err := os.Stat(os.Getenv("OUT") + ".go"); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	w, err := WatchOOM()
	fatal(err)
	cause := func(command string) string {
		err := exec.Command("/bin/sh", "-c", command).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return fmt.Sprint(err)
		}
		e := classify.Exit{Code: exit.ExitCode()}
		if s := exit.Sys().(syscall.WaitStatus); s.Signaled() {
			e = classify.Exit{Code: -1, Signal: "SIG" + map[bool]string{true: "KILL"}[s.Signal() == syscall.SIGKILL]}
		}
		return fmt.Sprint(e.Signal, "=", w.Cause(e))
	}
	text := cause("kill -9 $$") + " " + cause(eater) + " " + cause("("+eater+"); exit $?") + " " + cause("exit 1")
	w.within = 0 // as if that had been long ago
	text += " " + cause("kill -9 $$")
	fatal(errors.Join(os.WriteFile(os.Getenv("OUT"), []byte(text), 0o600), w.Close()))
}

// The kernel's own out-of-memory killer needs a memory controller, which the machine's may not have: the tests bring a
// kernel along.
func TestOutOfMemory(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager, "--uml") {
		return
	}
	c := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	// A scope of ours goes on when the kernel has killed in it.
	l, err := NewLauncher(LauncherConfig{Conn: c, Scope: true, Env: []string{role + "=oom", "OUT=" + out, "PATH=/usr/bin:/bin"},
		Command: func(restart.Order) []string { return []string{self} }})
	if err != nil {
		t.Fatal(err)
	}
	o := order()
	s, err := l.Launch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	systemctl(t, "set-property", "--runtime", l.UnitName(o.Launch), "MemoryMax=48M", "MemorySwapMax=0")
	if err := os.WriteFile(out+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Exited:
	case <-time.After(time.Minute):
		t.Error("the runner does not end")
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "SIGKILL= SIGKILL=oom =oom = SIGKILL=" {
		t.Errorf("the runner says %q, %v", b, err)
	}

	install(t, "eats.service", "[Service]\nMemoryMax=48M\nMemorySwapMax=0\nExecStart=/bin/sh -c '"+"x=xxxxxxxxxxxxxxxx; while :; do x=$$x$$x; done"+"'\n")
	systemctl(t, "start", "eats.service")
	until(t, "the kill", func() bool {
		r, err := c.Result(t.Context(), "eats.service")
		return err == nil && r.Result == "oom-kill"
	})
	if r, err := c.Result(t.Context(), "eats.service"); err != nil || r.Cause() != classify.OOM {
		t.Errorf("%+v, %v", r, err)
	}
}
