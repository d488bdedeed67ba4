package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/mulligan-dev/mulligan/restart/update"
	"golang.org/x/sys/unix"
)

// asUpdater makes the test binary an update whose process is told to end as soon as its command runs.
const asUpdater = "PROCESS_TEST_UPDATER"

func runAsUpdater() int {
	script := "exec sleep 60"
	if os.Getenv(asUpdater) != "early" {
		script = "kill -TERM $PPID; " + script
	}
	p, err := Commands{}.Hold(update.Command{Args: []string{"/bin/sh", "-c", script},
		Env: os.Environ(), Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	if err := p.Release(); err != nil {
		fmt.Println(err)
		return 1
	}
	if os.Getenv(asUpdater) == "early" {
		// The signal comes before we wait.
		if err := unix.Kill(os.Getpid(), unix.SIGTERM); err != nil {
			fmt.Println(err)
			return 1
		}
	}
	exit, _, _ := p.Wait(context.Background())
	fmt.Printf("closed with %s", exit.Signal)
	return 0
}

// A process that is told to end while its update's command runs closes the row first, however early it is told.
func TestUpdateIsToldToEndAtOnce(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"early", "by the command"} {
		c := exec.Command(self(t))
		c.Env = append(os.Environ(), asUpdater+"="+when)
		if out, err := c.CombinedOutput(); err != nil || string(out) != "closed with SIGTERM" {
			t.Errorf("%s: %v: %q", when, err, out)
		}
	}
}

// A command that was killed while it was held is no child that is left over. A process that another test is just starting may
// hold our pipe open for a moment; then the command counts as released, and Wait collects it.
func TestHeldCommandThatIsGone(t *testing.T) {
	t.Parallel()
	refused := false
	for try := 0; !refused && try < 100; try++ {
		p, err := Commands{NoSignals: true}.Hold(update.Command{Args: []string{"/bin/true"}, Env: os.Environ()})
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Kill(p.PID(), unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.(*heldCommand).child.await()
		if refused = p.Release() != nil; !refused {
			p.Wait(t.Context())
		}
		if err := unix.Kill(p.PID(), 0); err != unix.ESRCH {
			t.Errorf("refused: %t; the process is still there: %v", refused, err)
		}
	}
	if !refused {
		t.Error("it was released each time")
	}
}
