// Package durable is the only code of the module that writes files. It has two layers.
//
// Below lies the file seam: [FS], [Dir], [File] and [Lock] are the few operations on which everything else is built, and
// [System] is their real implementation. A test puts another one in their place, to cut the power after any operation,
// to make one fail, or to end the process before it.
//
// Above are the ways in which Mulligan writes, each durable when it returns: [Creator] (a whole file appears at once,
// for exactly one caller), [Replace], [Rewrite], [AppendLine] and [Remove]; [Sealed] is a small file with a checksum over
// Replace. [ReadFile] reads with a bound, [Await] and [Take] wait for a lock, and [Escape] makes a file name of any text. [Scratch] is
// the one thing that is not meant to last: a folder that is taken away, if need be by another process.
//
// What it refuses: to follow a symlink in place of a file or folder below the root, to open a device or a pipe, and to
// work on a network file system, where neither locks nor exclusive creation hold between machines
// ([*NetworkError]). Folders are made with mode 0700, files with 0600. Nothing is inherited by child processes.
//
// Names given to a [Dir] are single path components. Errors are [*fs.PathError] and answer errors.Is for fs.ErrExist,
// fs.ErrNotExist and errors.ErrUnsupported.
package durable

import (
	"fmt"
	"io"
)

// FS opens the root of a tree.
type FS interface {
	// Open opens the folder at an absolute path, with its missing parents made first.
	Open(path string) (Dir, error)
}

// Dir is an open folder. It is safe for concurrent use and stays the same folder when its path is renamed.
//
// Operations change what is visible at once and what is durable at [Dir.Sync].
type Dir interface {
	// Path is where the folder was opened, for messages.
	Path() string
	// Sub opens a folder in this one, made durably when it is absent.
	Sub(name string) (Dir, error)
	// Stat looks at a name without following it.
	Stat(name string) (Info, error)
	// Names are the names in the folder, in no order, at most limit when it is positive.
	Names(limit int) ([]string, error)
	// Open opens a regular file for reading, and never waits for a pipe.
	Open(name string) (File, error)
	// Create makes an empty file with a name that must be free.
	Create(name string) (File, error)
	// Overwrite opens a file that is there for writing from its start, without cutting it.
	Overwrite(name string) (File, error)
	// Append opens a file for reading and for writing at its end, made when it is absent.
	Append(name string) (File, error)
	// Unnamed makes an empty file that has no name and is gone with the last handle; errors.ErrUnsupported where the file
	// system has none.
	Unnamed() (File, error)
	// Publish gives an unnamed file its name, which must be free.
	Publish(f File, name string) error
	// Link gives a file a second name, which must be free.
	Link(from, to string) error
	// Rename moves a file over whatever file has the new name, or a folder to a name that is free or an empty folder.
	Rename(from, to string) error
	// Exchange gives each of two files the other's name, as one step; errors.ErrUnsupported where that cannot be done.
	Exchange(a, b string) error
	// Make makes a new folder, private to the user, without flushing that it is there: for one that is renamed when it is
	// full.
	Make(name string) (Dir, error)
	// Remove takes away a file's name, or an empty folder.
	Remove(name string) error
	// Sync makes the names in the folder durable.
	Sync() error
	// Lock opens the lock file of that name, made when it is absent.
	Lock(name string) (Lock, error)
	// Close releases the handle.
	Close() error
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	// Write writes at the handle's position, or at the end of a file opened with Append.
	io.Writer
	// WriteAt writes at an offset and leaves the handle's position alone. Not for a file opened with Append.
	io.WriterAt
	// Stat looks at the file itself.
	Stat() (Info, error)
	// Truncate cuts the file, and moves the handle's position there.
	Truncate(size int64) error
	// Sync makes the content durable, with all that is known of the file.
	Sync() error
	// Datasync makes the content durable, with what is needed to read it back.
	Datasync() error
	Close() error
}

// Lock is a kernel lock on an open file. It ends with the process, however that ends, and excludes other handles also
// within one process.
type Lock interface {
	// Try takes the lock if that is possible without waiting. Taking a lock that the handle holds already converts it.
	Try(shared bool) (bool, error)
	Unlock() error
	// Close unlocks and releases the handle.
	Close() error
}

// Info is what is known of a name or a file.
type Info struct {
	// Ino and MTime (Unix nanoseconds) with Size tell one written state of a file from another.
	Ino     uint64
	Size    int64
	MTime   int64
	Links   uint64 // names of the file
	Regular bool
	Folder  bool
}

// NetworkError refuses a folder on a network file system.
type NetworkError struct {
	Path string
	Kind string // "NFS", "SMB", "FUSE (fuse.sshfs)"
}

func (e *NetworkError) Error() string {
	return fmt.Sprintf("%s is on %s, where locks do not hold between machines: choose a state folder on a local disk ($MULLIGAN_HOME)", e.Path, e.Kind)
}

// Private refuses a folder that another user (but root) could put files into. A folder that is not one of the machine's
// passes.
func Private(d Dir) error {
	if p, ok := d.(interface{ private() error }); ok {
		return p.private()
	}
	return nil
}
