//go:build race

package scenarios

func init() { slowed = true }
