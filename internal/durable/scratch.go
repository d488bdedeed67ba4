//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Scratch makes a folder for files of the moment, with a name of its own that begins with prefix, in the folder in (empty
// is the system's temporary folder). remove takes it away with all that is in it; what cannot be removed stays where
// temporary files lie.
//
// A process that is killed removes nothing. So the maker holds the kernel's lock on its folder for as long as it lives, in
// whatever namespace, and Scratch first takes away those of the same prefix and user whose lock is free. Where the file
// system has no locks nothing is held and nothing is taken away.
func Scratch(in, prefix string) (dir string, remove func(), err error) {
	if in == "" {
		in = os.TempDir()
	}
	sweepScratch(in, prefix)
	for range 100 {
		dir, err = os.MkdirTemp(in, prefix)
		if err != nil {
			return "", nil, err
		}
		release, held := holdFolder(dir)
		if errors.Is(held, errTaken) {
			continue // somebody who sweeps was faster than we, and takes it away
		}
		return dir, func() {
			_ = os.RemoveAll(dir)
			if held == nil {
				release()
			}
		}, nil
	}
	return "", nil, &fs.PathError{Op: "make a temporary folder", Path: dir, Err: errTaken}
}

// sweepScratch is housekeeping: what fails is tried again with the next folder.
func sweepScratch(in, prefix string) {
	d, err := os.Open(in)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		dir := filepath.Join(in, name)
		if release, err := holdFolder(dir); err == nil {
			_ = os.RemoveAll(dir)
			release()
		}
	}
}

var errTaken = errors.New("it is held by another, or gone")

// holdFolder locks a folder of this user's, without waiting. Any other error than errTaken means that it cannot be locked.
func holdFolder(dir string) (release func(), err error) {
	fd, err := openat(unix.AT_FDCWD, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	err = retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errTaken
	}
	if err != nil {
		return nil, err
	}
	// Whoever had the lock before may have taken the folder away meanwhile.
	var held, there unix.Stat_t
	if err := retry(func() error { return unix.Fstat(fd, &held) }); err != nil {
		return nil, err
	}
	err = retry(func() error { return unix.Lstat(dir, &there) })
	if err != nil || held.Dev != there.Dev || held.Ino != there.Ino {
		return nil, errTaken
	}
	if int(held.Uid) != os.Geteuid() {
		return nil, fs.ErrPermission
	}
	return func() { _ = unix.Close(fd) }, nil
}
