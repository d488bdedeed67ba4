//go:build race

package files_test

// slowed is set where the race detector makes each process start several times as long.
func init() { slowed = true }
