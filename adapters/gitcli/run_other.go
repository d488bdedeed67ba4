//go:build !unix

package gitcli

import "os/exec"

// killGroup leaves the default: only git itself is killed.
func killGroup(*exec.Cmd) {}
