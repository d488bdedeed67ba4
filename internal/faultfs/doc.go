// Package faultfs breaks the file seam of internal/durable on purpose, so that tests can show what holds when a process is
// killed, the power goes, or the disk says no. It has two parts that can be put together: [Tap] stands before any
// [durable.FS] and asks a hook before each operation; [Disk] is a file system in memory that keeps what was flushed apart
// from what was only written.
//
// Which call first: for a process that is to be killed, Tap(durable.System{}, KillAt(n)) as the seam of the re-executed
// test binary, for n from 1 until it ends by itself. For a power cut, a story on Tap(disk, hook) whose hook looks at
// [Disk.Boot] before each operation, which is to say after each prefix of the story; or CutAfter(n) as the hook, and Boot
// afterwards. For a broken disk, [FailAt] and [FailFrom], with [Short] for a write that gets half of its bytes down.
//
// What counts as an operation: everything that changes a name or content, and every flush. Opening what is there already,
// and taking a lock, changes nothing on a disk and is not counted; looks (reading, listing, asking for the size) are
// counted apart. A folder that is opened durably ([durable.Dir.Sub]) is two operations when it is absent, so that a cut
// can come between its name and the flush of it.
//
// What is promised: a Disk behaves like the machine's files in all that package durable promises of a Dir and a File (a
// test compares the two), and Boot keeps nothing that was not flushed unless it was asked to. Given the same operations
// and the same seed it makes the same disk.
//
// What it does not show: devices that lie about flushes, content that rots after it was flushed, and folders whose
// unflushed names survive out of order, which no journalling file system does.
package faultfs

import "fmt"

// Kind is what an operation does.
type Kind string

// The operations that change something.
const (
	MakeFolder Kind = "make folder"
	Create     Kind = "create"
	Unnamed    Kind = "unnamed"
	Publish    Kind = "publish"
	Link       Kind = "link"
	Rename     Kind = "rename"
	Exchange   Kind = "exchange"
	Remove     Kind = "remove"
	Write      Kind = "write"
	Truncate   Kind = "truncate"
	SyncFile   Kind = "sync"
	SyncFolder Kind = "sync folder"
)

// Look is every operation that changes nothing.
const Look Kind = "look"

// Op is one operation that is about to be done.
type Op struct {
	// N is its number; 1 is the first. Looks are counted apart.
	N    int
	Kind Kind
	// Path is the file or folder; of an operation on two names the later one.
	Path string
}

func (o Op) String() string { return fmt.Sprintf("%d: %s %s", o.N, o.Kind, o.Path) }
