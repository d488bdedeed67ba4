//go:build unix

package gitcli

import (
	"os/exec"
	"syscall"
)

// killGroup puts git into a process group of its own that is killed whole: git starts helpers, and one of them may be
// what hangs.
func killGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
