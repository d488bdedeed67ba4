//go:build race

package boot

// Under the race detector every process starts slowly, so not each operation is tried.
func init() { slowed = true }
