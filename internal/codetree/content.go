package codetree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Content digests what files hold, so that the same code put into place again is the same tree. Every method adds to it;
// its errors are reasons for people.
type Content struct {
	digest hash.Hash
	newest time.Time
	files  int
	left   int
	bytes  int64
	limits Limits
	above  map[string]bool // folders taken into account already
	buffer []byte
}

// Limits bound what is read for one identity.
type Limits struct {
	Files int   // entries that are looked at, whether they count or not
	Bytes int64 // content that is read
}

// NewContent returns the digest of nothing.
func NewContent(l Limits) *Content {
	return &Content{digest: sha256.New(), left: l.Files, bytes: l.Bytes, limits: l, above: map[string]bool{}, buffer: make([]byte, 64<<10)}
}

// Sum is the digest of everything added so far, shortened as people read it.
func (c *Content) Sum() string { return hex.EncodeToString(c.digest.Sum(nil))[:16] }

// Files is how many files were added.
func (c *Content) Files() int { return c.files }

// Newest is the newest change of a file that was added, and of the folders that were taken into account.
func (c *Content) Newest() time.Time { return c.newest }

// Fact adds a text under a name.
func (c *Content) Fact(name, text string) {
	fmt.Fprintf(c.digest, "fact\x00%d\x00%s\x00%d\x00%s\x00", len(name), name, len(text), text)
}

// Visit counts one entry that is looked at against the bound.
func (c *Content) Visit() error {
	if c.left--; c.left < 0 {
		return fmt.Errorf("the root holds more than %d files", c.limits.Files)
	}
	return nil
}

// File adds a file's content under a name of the caller's, and the file that a link leads to under the link's. check may
// refuse the open file, of the given size. A file that changes while it is read is refused: half of it is old.
func (c *Content) File(ctx context.Context, name, as string, check func(f io.ReaderAt, size int64) error) error {
	// Before it is opened: opening a pipe would wait for its other end.
	if fi, err := os.Stat(name); err != nil {
		return unreadable(name, err)
	} else if !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return unreadable(name, err)
	}
	defer f.Close()
	before, err := f.Stat()
	if err != nil {
		return unreadable(name, err)
	}
	if c.bytes -= before.Size(); c.bytes < 0 {
		return fmt.Errorf("the code of the root is larger than %d bytes", c.limits.Bytes)
	}
	h := sha256.New()
	// One byte more than there should be shows a file that grows.
	n, err := io.CopyBuffer(h, &reader{ctx, io.LimitReader(f, before.Size()+1)}, c.buffer)
	if err != nil {
		return unreadable(name, err)
	}
	if check != nil {
		if err := check(f, before.Size()); err != nil {
			return err
		}
	}
	after, err := f.Stat()
	if err != nil {
		return unreadable(name, err)
	}
	if n != before.Size() || after.Size() != before.Size() || !ChangeTime(after).Equal(ChangeTime(before)) {
		return fmt.Errorf("%s is being written", name)
	}
	// Last: a link that was switched after a look at it would date what it leads to now by what it led to then.
	link, err := os.Lstat(name)
	if err != nil {
		return unreadable(name, err)
	}
	fmt.Fprintf(c.digest, "file\x00%d\x00%s\x00%x\x00", len(as), as, h.Sum(nil))
	c.files++
	c.take(ChangeTime(before), ChangeTime(link))
	return nil
}

// Above takes the folders into account that lead from top to a file which counts: a deletion leaves no file to look at,
// but the folder that held it changes. Where no file counts nobody looks, so that a folder of logs may come and go.
func (c *Content) Above(name, top string) {
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if c.above[dir] {
			return
		}
		c.above[dir] = true
		if fi, err := os.Stat(dir); err == nil {
			c.take(ChangeTime(fi))
		}
		if dir == top || dir == filepath.Dir(dir) {
			return
		}
	}
}

// Tree adds the files below a folder that counts accepts, by their paths relative to it, with slashes. Hidden folders and
// those that skip names are left out. Links are told by their target's name and not followed.
func (c *Content) Tree(ctx context.Context, dir, as string, counts func(rel string) bool, skip ...string) error {
	return filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return unreadable(name, err)
		}
		if err := c.Visit(); err != nil {
			return err
		}
		if e.IsDir() {
			if name != dir && (strings.HasPrefix(e.Name(), ".") || slices.Contains(skip, e.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return fmt.Errorf("%s lies outside %s: %w", name, dir, err)
		}
		rel = filepath.ToSlash(rel)
		if !counts(rel) {
			return nil
		}
		c.Above(name, dir)
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			return c.link(name, as+rel)
		case !e.Type().IsRegular():
			return nil // a socket or a pipe is no code, whatever it is called
		}
		return c.File(ctx, name, as+rel, nil)
	})
}

func (c *Content) link(name, as string) error {
	target, err := os.Readlink(name)
	if err != nil {
		return unreadable(name, err)
	}
	fi, err := os.Lstat(name)
	if err != nil {
		return unreadable(name, err)
	}
	c.Fact("link "+as, target)
	c.files++
	c.take(ChangeTime(fi))
	return nil
}

func (c *Content) take(times ...time.Time) {
	for _, t := range times {
		c.newest = newer(c.newest, t)
	}
}

// reader ends with its context: a file may be large, and its disk slow.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// ReadFile reads a small file whole. Its errors are reasons for people, except that a file that is not there is
// fs.ErrNotExist.
func ReadFile(name string, most int64) ([]byte, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, unreadable(name, err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, unreadable(name, err)
	}
	if int64(len(text)) > most {
		return nil, fmt.Errorf("%s holds more than %d bytes", name, most)
	}
	return text, nil
}

func unreadable(name string, err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return fmt.Errorf("%s cannot be read: %w", name, err)
}

// Seen takes a file into account whose content the caller adds itself, and the folder that holds it.
func (c *Content) Seen(name string) error {
	fi, err := os.Stat(name)
	if err != nil {
		return unreadable(name, err)
	}
	c.take(ChangeTime(fi))
	c.Above(name, filepath.Dir(name))
	return nil
}
