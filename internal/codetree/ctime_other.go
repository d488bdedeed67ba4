//go:build !linux

package codetree

import (
	"os"
	"time"
)

// ChangeTime is the modification time, the nearest to a change time that is portable.
func ChangeTime(fi os.FileInfo) time.Time { return fi.ModTime() }
