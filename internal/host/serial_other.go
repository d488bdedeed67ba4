//go:build !linux

package host

// Serial is 0: this system numbers no processes for good.
func Serial() uint64 { return 0 }
