package codetree

import (
	"os"
	"path/filepath"
	"time"
)

// LinkChange is when the newest symbolic link on the way to a folder was made, zero when there is none. Switching a
// release by a link changes nothing below the folder that it leads to.
func LinkChange(dir string) (newest time.Time) {
	for at := filepath.Clean(dir); ; at = filepath.Dir(at) {
		if fi, err := os.Lstat(at); err == nil && fi.Mode()&os.ModeSymlink != 0 {
			if t := ChangeTime(fi); t.After(newest) {
				newest = t
			}
		}
		if at == filepath.Dir(at) {
			return newest
		}
	}
}
