package codetree

import (
	"os"
	"syscall"
	"time"
)

// ChangeTime is when a file's content, name or attributes last changed. Unlike the modification time it cannot be set
// by the program that wrote the file, so that an unpacked archive cannot look old.
func ChangeTime(fi os.FileInfo) time.Time {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return fi.ModTime()
}
