//go:build unix

package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// System is the file system of the machine.
type System struct{}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// Open implements FS. The last component must be a folder itself, not a symlink to one.
func (System) Open(path string) (Dir, error) {
	path = filepath.Clean(path)
	if !filepath.IsAbs(path) {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.New("not an absolute path")}
	}
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return nil, err
	}
	fd, err := openDir(unix.AT_FDCWD, path, filepath.Dir(path))
	if err != nil {
		return nil, &fs.PathError{Op: "open folder", Path: path, Err: explain(err)}
	}
	if err := refuseNetwork(fd, path); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return &sysDir{fd: fd, path: path}, nil
}

func (d *sysDir) private() error {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(d.fd, &st) }); err != nil {
		return d.fail("stat", "", err)
	}
	switch {
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return d.fail("open folder", "", &refusedError{"belongs to another user: choose a state folder of one's own", fs.ErrPermission})
	case st.Mode&0o002 != 0:
		return d.fail("open folder", "", &refusedError{"can be written by everybody: chmod o-w it", fs.ErrPermission})
	}
	return nil
}

// openDir opens a folder, made durably when it is absent.
func openDir(at int, name, parent string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openat(at, name, flags, 0)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	if err := retry(func() error { return unix.Mkdirat(at, name, dirMode) }); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	if parent != "" {
		p, err := openat(at, parent, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, err
		}
		defer unix.Close(p)
		at = p
		name = filepath.Base(name)
	}
	if err := retry(func() error { return unix.Fsync(at) }); err != nil {
		return -1, err
	}
	return openat(at, name, flags, 0)
}

// explain says what the kernel's answer to O_NOFOLLOW means.
func explain(err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return &refusedError{"a symlink or not a folder; it is not followed: use the real path", err}
	case errors.Is(err, unix.EROFS), errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return &refusedError{"cannot be written by this user: choose another state folder, or correct its owner and mode", err}
	}
	return err
}

type refusedError struct {
	text string
	err  error
}

func (e *refusedError) Error() string { return e.text + " (" + e.err.Error() + ")" }
func (e *refusedError) Unwrap() error { return e.err }

func info(st *unix.Stat_t) Info {
	return Info{
		Ino: uint64(st.Ino), Size: st.Size, MTime: st.Mtim.Nano(), Links: uint64(st.Nlink),
		Regular: st.Mode&unix.S_IFMT == unix.S_IFREG, Folder: st.Mode&unix.S_IFMT == unix.S_IFDIR,
	}
}

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR { //nolint:errorlint // the raw errno of a system call
			return err
		}
	}
}

func openat(at int, name string, flags int, mode uint32) (fd int, err error) {
	err = retry(func() error {
		fd, err = unix.Openat(at, name, flags, mode)
		return err
	})
	return fd, err
}

type sysDir struct {
	fd   int
	path string
}

func (d *sysDir) Path() string { return d.path }

func (d *sysDir) fail(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: filepath.Join(d.path, name), Err: err}
}

// check refuses what is not one component of a path.
func (d *sysDir) check(op, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return d.fail(op, name, fs.ErrInvalid)
	}
	return nil
}

func (d *sysDir) Sub(name string) (Dir, error) {
	if err := d.check("open folder", name); err != nil {
		return nil, err
	}
	fd, err := openDir(d.fd, name, "")
	if err != nil {
		return nil, d.fail("open folder", name, explain(err))
	}
	return &sysDir{fd: fd, path: filepath.Join(d.path, name)}, nil
}

func (d *sysDir) Make(name string) (Dir, error) {
	if err := d.check("make folder", name); err != nil {
		return nil, err
	}
	if err := retry(func() error { return unix.Mkdirat(d.fd, name, dirMode) }); err != nil {
		return nil, d.fail("make folder", name, err)
	}
	fd, err := openat(d.fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, d.fail("open folder", name, explain(err))
	}
	return &sysDir{fd: fd, path: filepath.Join(d.path, name)}, nil
}

func (d *sysDir) Stat(name string) (Info, error) {
	if err := d.check("stat", name); err != nil {
		return Info{}, err
	}
	var st unix.Stat_t
	for {
		err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return info(&st), nil
		}
		if err != unix.EINTR {
			return Info{}, d.fail("stat", name, err)
		}
	}
}

func (d *sysDir) Names(limit int) ([]string, error) {
	fd, err := openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, d.fail("list", "", err)
	}
	f := os.NewFile(uintptr(fd), d.path)
	defer f.Close()
	if limit <= 0 {
		limit = -1
	}
	names, err := f.Readdirnames(limit)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}

func (d *sysDir) open(op, name string, flags int) (File, error) {
	if err := d.check(op, name); err != nil {
		return nil, err
	}
	fd, err := openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
	if err != nil {
		if errors.Is(err, unix.ELOOP) {
			err = errSymlink
		}
		return nil, d.fail(op, name, err)
	}
	return &sysFile{fd: fd, dir: d, name: name}, nil
}

func (d *sysDir) Open(name string) (File, error) {
	f, err := d.open("open", name, unix.O_RDONLY|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return d.regular(f, "open", name)
}

func (d *sysDir) Create(name string) (File, error) {
	return d.open("create", name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
}

func (d *sysDir) Overwrite(name string) (File, error) {
	f, err := d.open("overwrite", name, unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return d.regular(f, "overwrite", name)
}

func (d *sysDir) Append(name string) (File, error) {
	f, err := d.open("append to", name, unix.O_RDWR|unix.O_CREAT|unix.O_APPEND|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return d.regular(f, "append to", name)
}

func (d *sysDir) regular(f File, op, name string) (File, error) {
	switch in, err := f.Stat(); {
	case err != nil:
		f.Close()
		return nil, err
	case !in.Regular:
		f.Close()
		return nil, d.fail(op, name, &refusedError{"not a regular file", fs.ErrInvalid})
	}
	return f, nil
}

func (d *sysDir) Link(from, to string) error {
	if err := errors.Join(d.check("link", from), d.check("link", to)); err != nil {
		return err
	}
	if err := retry(func() error { return unix.Linkat(d.fd, from, d.fd, to, 0) }); err != nil {
		return d.fail("link", to, err)
	}
	return nil
}

func (d *sysDir) Rename(from, to string) error {
	if err := errors.Join(d.check("rename", from), d.check("rename", to)); err != nil {
		return err
	}
	err := retry(func() error { return unix.Renameat(d.fd, from, d.fd, to) })
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ENOTEMPTY): // a folder over one that is not empty: the name is not free
		err = unix.EEXIST
	}
	return d.fail("rename", to, err)
}

func (d *sysDir) Remove(name string) error {
	if err := d.check("remove", name); err != nil {
		return err
	}
	err := retry(func() error { return unix.Unlinkat(d.fd, name, 0) })
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
		if rm := retry(func() error { return unix.Unlinkat(d.fd, name, unix.AT_REMOVEDIR) }); !errors.Is(rm, unix.ENOTDIR) {
			err = rm
		}
	}
	if err != nil {
		return d.fail("remove", name, err)
	}
	return nil
}

func (d *sysDir) Sync() error {
	if err := retry(func() error { return unix.Fsync(d.fd) }); err != nil {
		return d.fail("sync folder", "", err)
	}
	return nil
}

// Close leaves a descriptor that no later call can mistake for another file's.
func (d *sysDir) Close() error {
	fd := d.fd
	d.fd = -1
	return unix.Close(fd)
}

func (d *sysDir) Lock(name string) (Lock, error) {
	// Whatever is wrong with the file shows here and not when the lock is first tried.
	f, err := d.Append(name)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(d.path, name), flock.SetPermissions(fileMode),
		flock.SetFlag(os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC))
	return &sysLock{dir: d, name: name, lock: l}, nil
}

type sysFile struct {
	fd   int
	dir  *sysDir
	name string // empty while it has none
}

func (f *sysFile) fail(op string, err error) error { return f.dir.fail(op, f.name, err) }

func (f *sysFile) Read(b []byte) (n int, err error) {
	err = retry(func() error { n, err = unix.Read(f.fd, b); return err })
	return f.read(n, len(b), err)
}

func (f *sysFile) ReadAt(b []byte, off int64) (int, error) {
	done := 0
	for done < len(b) {
		var n int
		err := retry(func() (err error) { n, err = unix.Pread(f.fd, b[done:], off+int64(done)); return err })
		if n, err = f.read(n, len(b)-done, err); err != nil {
			return done, err
		}
		done += n
	}
	return done, nil
}

func (f *sysFile) read(n, want int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, f.fail("read", err)
	case n == 0 && want > 0:
		return 0, io.EOF
	}
	return n, nil
}

func (f *sysFile) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		var n int
		err := retry(func() (err error) { n, err = unix.Write(f.fd, b[done:]); return err })
		if err != nil {
			return done, f.fail("write", err)
		}
		done += n
	}
	return done, nil
}

func (f *sysFile) WriteAt(b []byte, off int64) (int, error) {
	done := 0
	for done < len(b) {
		var n int
		err := retry(func() (err error) { n, err = unix.Pwrite(f.fd, b[done:], off+int64(done)); return err })
		if err != nil {
			return done, f.fail("write", err)
		}
		done += n
	}
	return done, nil
}

func (f *sysFile) Stat() (Info, error) {
	var st unix.Stat_t
	if err := retry(func() error { return unix.Fstat(f.fd, &st) }); err != nil {
		return Info{}, f.fail("stat", err)
	}
	return info(&st), nil
}

func (f *sysFile) Truncate(size int64) error {
	if err := retry(func() error { return unix.Ftruncate(f.fd, size) }); err != nil {
		return f.fail("truncate", err)
	}
	if _, err := unix.Seek(f.fd, size, io.SeekStart); err != nil {
		return f.fail("seek", err)
	}
	return nil
}

func (f *sysFile) Sync() error {
	if err := retry(func() error { return unix.Fsync(f.fd) }); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

func (f *sysFile) Datasync() error {
	if err := retry(func() error { return fdatasync(f.fd) }); err != nil {
		return f.fail("sync", err)
	}
	return nil
}

func (f *sysFile) Close() error {
	fd := f.fd
	f.fd = -1
	return unix.Close(fd)
}

// sysLock is flock(2): its lock belongs to the open file, so two handles of one process exclude each other too, and no
// closing of another descriptor drops it, as it would with record locks.
type sysLock struct {
	dir  *sysDir
	name string
	lock *flock.Flock
}

func (l *sysLock) Try(shared bool) (got bool, err error) {
	if shared {
		got, err = l.lock.TryRLock()
	} else {
		got, err = l.lock.TryLock()
	}
	if err != nil {
		return false, l.dir.fail("lock", l.name, err)
	}
	return got, nil
}

func (l *sysLock) Unlock() error {
	if err := l.lock.Unlock(); err != nil {
		return l.dir.fail("unlock", l.name, err)
	}
	return nil
}

func (l *sysLock) Close() error { return l.lock.Close() }
