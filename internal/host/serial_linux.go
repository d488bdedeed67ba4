package host

import (
	"os"

	"golang.org/x/sys/unix"
)

// Serial is the kernel's own number of this process, which no other process of this kernel boot ever gets: pid and start
// time can agree by chance where each container has its own pid namespace and clock, and the number cannot. It stays
// through an exec. 0 where the kernel keeps none (Linux before 6.9).
func Serial() uint64 {
	fd, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	var fs unix.Statfs_t
	var st unix.Stat_t
	// Older kernels have one inode for all handles of processes, in another file system.
	if unix.Fstatfs(fd, &fs) != nil || fs.Type != unix.PID_FS_MAGIC || unix.Fstat(fd, &st) != nil {
		return 0
	}
	return st.Ino
}
