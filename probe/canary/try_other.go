//go:build !linux

package canary

import "context"

// try needs the kernel's word on who holds a socket.
func (c *Canary) try(context.Context) Result {
	return Result{Outcome: Skipped, Code: CodeUnsupported, Text: "a candidate can be booted beside the service on Linux only"}
}
