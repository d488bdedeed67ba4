package durable

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func fdatasync(fd int) error { return unix.Fdatasync(fd) }

func (d *sysDir) Unnamed() (File, error) {
	fd, err := openat(d.fd, ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, fileMode)
	switch {
	case err == nil:
		return &sysFile{fd: fd, dir: d}, nil
	case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL):
		// The file system, or the kernel, has no unnamed files.
		return nil, d.fail("create", "", errors.ErrUnsupported)
	}
	return nil, d.fail("create", "", err)
}

// Publish links the file from /proc, which needs no capability; without /proc there are no unnamed files.
func (d *sysDir) Publish(f File, name string) error {
	if err := d.check("publish", name); err != nil {
		return err
	}
	file, ok := f.(*sysFile)
	if !ok {
		return d.fail("publish", name, fs.ErrInvalid)
	}
	proc := "/proc/self/fd/" + strconv.Itoa(file.fd)
	err := retry(func() error {
		return unix.Linkat(unix.AT_FDCWD, proc, d.fd, name, unix.AT_SYMLINK_FOLLOW)
	})
	if errors.Is(err, unix.ENOENT) {
		if _, no := os.Lstat(proc); no != nil {
			err = errors.ErrUnsupported
		}
	}
	if err != nil {
		return d.fail("publish", name, err)
	}
	file.name = name
	return nil
}

func (d *sysDir) Exchange(a, b string) error {
	if err := errors.Join(d.check("exchange", a), d.check("exchange", b)); err != nil {
		return err
	}
	err := retry(func() error { return unix.Renameat2(d.fd, a, d.fd, b, unix.RENAME_EXCHANGE) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		err = errors.ErrUnsupported
	}
	return d.fail("exchange", b, err)
}

// network are the file systems on which locks, exclusive creation or flushing do not hold between machines, or cannot
// be known to, by the magic number that statfs reports.
var network = map[int64]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "CIFS", 0xfe534d42: "SMB2", 0x01021997: "9p", 0x5346414f: "AFS",
	0x6b414653: "AFS", 0x73757245: "Coda", 0x564c: "NCP", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS",
	0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x19830326: "BeeGFS", 0x65735546: "FUSE", 0x786f4256: "vboxsf",
	0xaad7aaea: "PanFS", 0x013661: "OrangeFS",
}

func refuseNetwork(fd int, path string) error {
	var st unix.Statfs_t
	if err := retry(func() error { return unix.Fstatfs(fd, &st) }); err != nil {
		return &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	kind, found := network[int64(uint32(st.Type))]
	if !found {
		return nil
	}
	if kind == "FUSE" {
		// One magic number for everything in user space. What sits on a local block device is as good as any other.
		sub := fuseKind(fd)
		if sub == "fuseblk" {
			return nil
		}
		kind = "FUSE (" + sub + ")"
	}
	return &NetworkError{Path: path, Kind: kind}
}

// fuseKind is the type of the mount that the folder lies in, as mountinfo has it.
func fuseKind(fd int) string {
	var st unix.Stat_t
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil || unix.Fstat(fd, &st) != nil {
		return "of unknown kind"
	}
	defer f.Close()
	dev := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		if fields := strings.Fields(before); ok && len(fields) > 2 && fields[2] == dev {
			kind, _, _ := strings.Cut(after, " ")
			return kind
		}
	}
	return "of unknown kind"
}

// holder describes the process that has a lock, from the kernel's list, which shows the processes of our pid namespace.
// Empty when it is not there.
func holder(path string) string {
	var st unix.Stat_t
	f, err := os.Open("/proc/locks")
	if err != nil {
		return ""
	}
	defer f.Close()
	if unix.Lstat(path, &st) != nil {
		return ""
	}
	file := fmt.Sprintf("%02x:%02x:%d", unix.Major(st.Dev), unix.Minor(st.Dev), st.Ino)
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// "1: FLOCK ADVISORY WRITE 12 fe:00:345 0 EOF"
		w := strings.Fields(lines.Text())
		if len(w) < 6 || w[1] != "FLOCK" || w[5] != file {
			continue
		}
		if pid, err := strconv.Atoi(w[4]); err == nil && pid > 0 {
			return process(pid)
		}
	}
	return ""
}

func process(pid int) string {
	who := fmt.Sprintf("process %d", pid)
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	name, end := strings.IndexByte(string(b), '('), strings.LastIndexByte(string(b), ')')
	if err != nil || name < 0 || end+2 >= len(b) {
		return who
	}
	who += " " + string(b[name:end+1])
	switch b[end+2] {
	case 'T', 't':
		return fmt.Sprintf("%s, which is stopped (kill -CONT %d continues it),", who, pid)
	case 'D':
		return who + ", which hangs in a system call,"
	}
	return who
}
