package require

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Machine is a running machine of a test's own: a kernel with a systemd, which sees the file system of the test's machine and
// writes to the test's folder alone. Its memory and its page cache are its own, so that what was not flushed when it is
// switched off is lost, and its next boot has another boot id.
type Machine struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{}
	err  error
}

// Boot starts a machine over a folder; it runs the command as a unit, with the test's own environment and env, and goes off
// when that has ended. The test ends the machine when nobody did.
//
// It is for the plain run of the tests: a test that is short, or runs under the race detector, is skipped. That is no gap,
// so it is no failure anywhere.
func Boot(t *testing.T, dir string, env []string, command ...string) *Machine {
	t.Helper()
	ownKernel(t)
	with := withSystemd(t)
	if out, err := exec.Command(with, "--uml", "--prepared", "--prepare").CombinedOutput(); err != nil {
		missing(t, systemdHint, "no machine can be started: "+strings.TrimSpace(string(out)))
	}
	self, err := os.Executable() // the command is, or runs, the test's own program
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--uml", "--prepared", "--timeout", "240", "--bind", dir, "--bind", filepath.Dir(self), "--", "/usr/bin/env"}
	args = append(append(args, env...), command...) // not as our own environment, of which not all is passed on
	m := &Machine{cmd: exec.Command(with, args...), done: make(chan struct{})}
	m.cmd.Stdout, m.cmd.Stderr = &m.out, &m.out
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		m.err = m.cmd.Wait()
		close(m.done)
	}()
	t.Cleanup(func() { m.off() })
	return m
}

// ownKernel skips where a kernel of the test's own would not do.
func ownKernel(t *testing.T) {
	t.Helper()
	if testing.Short() || raced {
		t.Skip("boots a kernel of its own, which takes some 5 s and has no race detector")
	}
}

// Off is closed when the machine is off.
func (m *Machine) Off() <-chan struct{} { return m.done }

// Cut cuts the power: the kernel is killed with everything that runs on it, and nothing is told or written on the way.
func (m *Machine) Cut(t *testing.T) {
	t.Helper()
	if !m.off() {
		t.Fatalf("cut the power: the machine is off already: %v\n%s", m.err, &m.out)
	}
}

// off ends the script, which kills the machine's kernel and clears up after it; false when it had ended before.
func (m *Machine) off() bool {
	select {
	case <-m.done:
		return false
	default:
	}
	err := m.cmd.Process.Signal(syscall.SIGTERM)
	<-m.done
	return err == nil
}

// Wait waits until the machine goes off by itself. What it ran has to end well.
func (m *Machine) Wait(t *testing.T) {
	t.Helper()
	<-m.done // with-systemd has a time-out
	if m.err != nil {
		t.Fatalf("on the machine: %v\n%s", m.err, &m.out)
	}
}
