package files_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// hint is everything whose failure may stay without a word, for it decides nothing: the index beside the records, the spare
// file, the notes for people, and what is only tidied up.
func hint(op faultfs.Op) bool {
	name := path.Base(op.Path)
	return strings.HasPrefix(name, ".newest") || strings.HasSuffix(op.Path, "locks/index") || op.Kind == faultfs.Unnamed || op.Kind == faultfs.Remove && strings.HasPrefix(name, ".")
}

// TestEveryFaultSurfaces lets each operation of the story fail: for a moment or for good, with nothing or with half of it
// done. The step says so with the disk's own error, what was acknowledged before is durable, and, where the fault was
// for a moment, the same home goes on.
func TestEveryFaultSurfaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		err  error
		look bool
		hook func(n int, err error) faultfs.Hook
	}{
		{"a failing write or flush", syscall.EIO, false, faultfs.FailAt},
		{"a short write", faultfs.Short(syscall.ENOSPC), false, faultfs.FailAt},
		{"a full disk", syscall.ENOSPC, false, faultfs.FailFrom},
		{"a full disk that takes half of a write", faultfs.Short(syscall.ENOSPC), false, faultfs.FailFrom},
		{"a failing read", syscall.EIO, true, faultfs.FailLook},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			silent := map[string]int{}
			for n := 1; ; n++ {
				f := fault{t: t, n: n, err: c.err, look: c.look, hook: c.hook(n, c.err)}
				f.tell(&faultfs.Disk{})
				if !f.hit {
					if n < 100 {
						t.Errorf("only %d operations were tried", n)
					}
					break
				}
				if f.silent {
					silent[string(f.op.Kind)+" "+path.Base(f.op.Path)]++
				}
			}
			t.Logf("without a word: %v", silent)
		})
	}
}

// fault is one story with one fault in it.
type fault struct {
	t    *testing.T
	n    int
	err  error
	look bool
	hook faultfs.Hook

	mu     sync.Mutex
	op     faultfs.Op // the first that failed
	hit    bool
	silent bool
}

func (f *fault) before(op faultfs.Op) error {
	err := f.hook(op)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil && !f.hit {
		f.op, f.hit = op, true
	}
	return err
}

func (f *fault) errorf(format string, args ...any) {
	f.t.Helper()
	f.t.Errorf("%s fails: %s", f.op, fmt.Sprintf(format, args...))
}

// tell tells the story on a disk, and another one after the fault.
func (f *fault) tell(disk *faultfs.Disk) {
	var told acks
	h, err := files.Open(files.Config{Dir: "/home", FS: faultfs.Tap(disk, f.before)})
	if err == nil {
		for _, lineage := range []string{"l1", "l2"} {
			if err == nil {
				err = story(h, lineage, told.note(lineage))
			}
		}
		over := f.happened()
		e := story(h, "l3", told.note("l3"))
		switch {
		case !over:
			err = e // the fault is in this one
		case e != nil && !f.lasting():
			f.errorf("the next story: %v", e)
		}
		if e := h.Close(); e != nil && !errors.Is(e, f.err) {
			f.errorf("close: %v", e)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.hit {
		return
	}
	var bad *fs.PathError
	switch {
	case err == nil:
		f.silent = true
		if !f.look && !hint(f.op) {
			f.errorf("nobody was told")
		}
	case !errors.Is(err, f.err) || !errors.As(err, &bad) || bad.Path == "":
		f.errorf("the error is %v, want the disk's with its path", err)
	}
	found := booted(f.t, disk.Boot(faultfs.Survival{}))
	for _, lineage := range []string{"l1", "l2", "l3"} {
		for _, bad := range broken(found, lineage, told.at(lineage)) {
			f.errorf("%v", bad)
		}
	}
	if err := found.Close(); err != nil {
		f.errorf("%v", err)
	}
}

func (f *fault) happened() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hit
}

// lasting reports that the fault did not pass.
func (f *fault) lasting() bool { return f.hook(faultfs.Op{N: f.n + 1, Kind: faultfs.Write}) != nil }
