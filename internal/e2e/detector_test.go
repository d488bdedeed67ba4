//go:build race

package e2e

// slowed is set where the race detector makes each process start several times as long.
func init() { slowed = true }
