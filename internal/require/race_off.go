//go:build !race

package require

// raced is set under the race detector.
const raced = false
