// The failures that a predecessor met with its restarts, and where each is shown not to happen again:
//
//	pid 1 in a container                          TestPredecessorPIDOneInAContainer (here)
//	a notice lost when its process dies           TestPredecessorNoticeOutlivesDeathBeforeDelivery (here)
//	a failed restart command, a stale notice      TestPredecessorFailedRestartCommandLeavesNoNotice (restart/handoff)
//	a hang at stop, the signal was eaten          TestPredecessorSignalIsNotEaten (restart/drain)
//	the host's flush cut by a second signal       TestPredecessorSecondSignalCutsNoFlush (restart/drain)
//	a canary in the live state, relative folder   TestPredecessorCanaryReadsLiveStateByARelativeFolder (probe/canary)
//	a canary leaks and keeps its port             TestPredecessorLeakKeepsNoPort (probe/canary)
//	a login wall that answers 401                 TestPredecessorLoginWall (probe/canary)
//	a retired session blocks the guard            TestPredecessorRetiredSessionHoldsNothingUp (restart/handoff)
//	two waiters that wait for each other          TestPredecessorTwoWaitersDoNotWaitForEachOther (restart/handoff)
package boot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

func init() {
	// contained is a service as a container's first process: it says what it is, tells, and works on until it is killed.
	roles["contained"] = func(dir string) error {
		self := host.Self()
		self.ID = os.Getenv(argVar)
		k, err := New(context.Background(), Config{Dir: dir, Instance: self, Deliver: printer{}, Startup: []string{"s1"}, Notice: noWait})
		if err != nil {
			return err
		}
		b := k.Boot()
		fmt.Println("boot", b.Kind, self.Boot, self.PIDNS, self.PID, self.Start, b.Known && b.Downtime < 0)
		if err := k.Run(context.Background()); err != nil {
			return err
		}
		if _, err := k.Busy("s1"); err != nil {
			return err
		}
		fmt.Println("ready")
		select {}
	}
	// undelivered dies where it is given a notice.
	roles["undelivered"] = func(dir string) error {
		s, err := open(dir)
		if err != nil {
			return err
		}
		k, err := s.keeper(dir, dying{}, nil)
		if err != nil {
			return err
		}
		return errors.Join(k.Run(context.Background()), errors.New("there was nothing to deliver"))
	}
}

// dying is a host that is killed in the middle of a delivery.
type dying struct{ printer }

func (dying) Deliver(context.Context, bootnotice.Delivery) (bool, error) {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	panic(err)
}

const containerHint = "it needs unshare of util-linux 2.36, and user, pid and time namespaces: sysctl kernel.unprivileged_userns_clone=1"

// container starts the service as pid 1 of a new pid namespace, whose clock runs offset seconds beside the machine's. With
// a wanted start time and namespace it says "miss" and its own instead, and ends, when the process has got others.
func container(t *testing.T, dir, id string, offset int64, want ...string) (said []string, rest *bufio.Scanner, kill func()) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	const script = `read -r s </proc/self/stat; set -- $s; shift 21; ns=$(readlink /proc/self/ns/pid)
		[ -z "$WANT" ] || [ "$1 $ns" = "$WANT" ] || { echo miss $1 $ns; exit; }
		exec "$PROGRAM"`
	cmd := exec.Command("unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--kill-child",
		"--time", "--boottime", strconv.FormatInt(offset, 10), "sh", "-c", script)
	cmd.Env = append(os.Environ(), roleVar+"=contained", dirVar+"="+dir, argVar+"="+id, "PROGRAM="+self, "WANT="+strings.Join(want, " "))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	kill = func() {
		_ = cmd.Process.Kill()
		_, _ = io.Copy(io.Discard, out) // until pid 1 is gone, which holds the other end
		_ = cmd.Wait()
	}
	t.Cleanup(kill)
	rest = bufio.NewScanner(out)
	if !rest.Scan() {
		t.Fatal("the container says nothing")
	}
	return strings.Fields(rest.Text()), rest, kill
}

// TestPredecessorPIDOneInAContainer has services that are all pid 1, one container after the other. In the second half the
// two agree in kernel boot, pid namespace (the kernel uses numbers again), pid and start time, which is possible where
// containers have clocks of their own: it is a restart all the same, and no exec in place, no reload and no second one.
func TestPredecessorPIDOneInAContainer(t *testing.T) {
	t.Parallel()
	require.Works(t, containerHint, "unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc", "--time", "--boottime", "1", "true")
	dir := filepath.Join(t.TempDir(), "boot")
	first, out, kill := container(t, dir, "one", 0)
	if len(first) != 7 || first[1] != string(bootnotice.FirstBoot) || first[4] != "1" {
		t.Fatalf("the first says %q", first)
	}
	waitLine(t, out, "ready")
	kill()

	time.Sleep(time.Second) // until the number of the first one's namespace is free again
	second, out, kill := container(t, dir, "two", 0)
	restarted(t, second, out)
	kill()

	if host.Serial() == 0 {
		t.Skip("this kernel numbers no processes (Linux 6.9 does): two that agree in all four cannot be told apart")
	}
	// As often as it takes: the process has to start in the same hundredth of a second of its own clock, so each try
	// begins as much earlier or later as the one before was off. One in a second, by which the numbers of the namespaces
	// that have ended are free again.
	start, err := strconv.ParseInt(second[5], 10, 64)
	must(t, err)
	var lead time.Duration
	for deadline := time.Now().Add(time.Minute); ; {
		if time.Now().After(deadline) {
			// Who else makes namespaces decides about their numbers. TestSerial has the same two lives without chance.
			t.Log("no container came about in a minute that agrees with another one in everything")
			return
		}
		now := host.Now().Uptime
		at := now + time.Second/2 // when it is to start, by the machine's clock
		at += ((time.Duration(start)*10*time.Millisecond-at)%time.Second + time.Second) % time.Second
		time.Sleep(at - now - lead)
		third, out, kill := container(t, dir, "three", start/100-int64(at/time.Second), second[5], second[3])
		if third[0] == "miss" {
			got, err := strconv.ParseInt(third[1], 10, 64)
			must(t, err)
			lead += max(-200*time.Millisecond, min(200*time.Millisecond, time.Duration(got-start)*7*time.Millisecond))
			lead = max(0, min(lead, time.Second/2))
			kill()
			continue
		}
		for i, what := range []string{2: "kernel boot", 3: "pid namespace", 4: "pid", 5: "start time"} {
			if what != "" && third[i] != second[i] {
				t.Fatalf("they do not agree in their %s: %q, %q", what, second, third)
			}
		}
		restarted(t, third, out)
		kill()
		return
	}
}

// restarted checks what a container says that took the place of another one which was killed in a turn.
func restarted(t *testing.T, said []string, out *bufio.Scanner) {
	t.Helper()
	if len(said) != 7 || said[1] != string(bootnotice.ProcessRestart) || said[4] != "1" || said[6] != "false" {
		t.Errorf("it says %q, want a process restart without a negative downtime", said)
	}
	told := 0
	for out.Scan() && out.Text() != "ready" {
		if strings.HasPrefix(out.Text(), "told s1 ") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("the session was told %d times", told)
	}
}

func waitLine(t *testing.T, out *bufio.Scanner, line string) {
	t.Helper()
	for out.Scan() {
		if out.Text() == line {
			return
		}
	}
	t.Fatalf("it ended without %q", line)
}

// TestSerial is the number by which the kernel tells two processes apart, also of those that agree in everything else.
func TestSerial(t *testing.T) {
	t.Parallel()
	if host.Serial() == 0 {
		t.Skip("this kernel numbers no processes: it needs Linux 6.9")
	}
	life := func(id string, serial uint64) bootnotice.Kind {
		dir := t.TempDir()
		first, _ := boot(t, dir, "a", nil)
		m := first.marker
		must(t, first.Close())
		m.Serial = serial
		d, err := first.c.fs.Open(dir)
		must(t, err)
		must(t, save(d, markerName, m))
		must(t, d.Close())
		self := m.Instance
		self.ID = id
		next, _ := boot(t, dir, "a", func(c *Config) { c.Instance, c.Notice = self, noWait })
		return next.Boot().Kind
	}
	for serial, want := range map[uint64]bootnotice.Kind{
		host.Serial(): bootnotice.ExecInPlace, 0: bootnotice.ExecInPlace, host.Serial() + 1: bootnotice.ProcessRestart,
	} {
		if got := life("b", serial); got != want {
			t.Errorf("with the serial %d in the marker it is %s, want %s", serial, got, want)
		}
	}
}

// TestPredecessorNoticeOutlivesDeathBeforeDelivery kills the process that is about to deliver, twice: the third tells all
// that was to be told, in one message for each session.
func TestPredecessorNoticeOutlivesDeathBeforeDelivery(t *testing.T) {
	t.Parallel()
	dir, stopped := killedAtWork(t)
	for range 2 {
		cmd, out := spawn(t, dir, "undelivered", "")
		for out.Scan() {
			t.Errorf("it said %q", out.Text())
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("it was not killed in the middle of a delivery: %v", err)
		}
	}
	s, err := open(dir)
	must(t, err)
	rec := &recorder{}
	k, err := s.keeper(dir, rec, nil)
	must(t, err)
	must(t, k.Run(t.Context()))
	same(t, "told", rec.told(), []string{"s1 wake", "s2 wake"})
	for _, d := range rec.got {
		if d.Notices[len(d.Notices)-1] != bootnotice.NoticeID(stopped, d.Session) {
			t.Errorf("%s is told of %v, and not of the first stop", d.Session, d.Notices)
		}
	}
	must(t, errors.Join(k.Close(), s.close()))
}
