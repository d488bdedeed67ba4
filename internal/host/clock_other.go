//go:build !linux

package host

import "time"

func boottime() time.Duration { return 0 }

func isGone(error) bool { return false }

func hidden(int) bool { return true }
