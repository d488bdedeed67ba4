package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"sync/atomic"
)

// Creator makes whole files in one folder, each exclusively: of all callers that want a name, in this process or
// another, exactly one gets nil, and nobody ever sees a part of a file.
//
// It keeps one unnamed file ready, so that a create costs no inode at the moment it is needed; right after many files
// nearby were deleted that is most of its price. Nothing unnamed outlives the process.
type Creator struct {
	dir   Dir
	temps atomic.Uint64
	pid   string

	mu      sync.Mutex
	spare   File
	closed  bool
	named   bool // the folder has no unnamed files
	filling sync.WaitGroup
}

// NewCreator is a Creator for a folder. id tells this process from all others that create in it; it becomes part of the
// names of temporary files where the file system has no unnamed ones. It opens nothing yet: a process that creates no
// file should not pay for the spare.
func NewCreator(d Dir, id string) *Creator { return &Creator{dir: d, pid: id} }

// Close releases the spare file. No call may be under way.
func (c *Creator) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.filling.Wait()
	if c.spare != nil {
		return c.spare.Close()
	}
	return nil
}

// Create makes the file name with this content. A name that is taken is fs.ErrExist, at the price of one look and
// without a flush.
//
// The file is flushed after its name is decided: in a race the losers then pay for no flush. So a power cut can leave
// a torn file under the name, but only while Create has not returned; content needs a checksum. before, when it is not
// nil, is told what the file will look like, right before it may become visible.
func (c *Creator) Create(name string, content []byte, before func(Info)) error {
	return c.create(name, content, before, false)
}

// CreateWhole is Create for names that nobody races for, and files that must not be found torn: the content is flushed
// before it has its name. It costs one commit of the file system more.
func (c *Creator) CreateWhole(name string, content []byte) error {
	return c.create(name, content, nil, true)
}

func (c *Creator) create(name string, content []byte, before func(Info), whole bool) error {
	switch _, err := c.dir.Stat(name); {
	case err == nil:
		return &fs.PathError{Op: "create", Path: c.dir.Path() + "/" + name, Err: fs.ErrExist}
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	f, temp, err := c.take()
	if err != nil {
		return err
	}
	if err = c.publish(f, temp, name, content, before, whole); err != nil {
		c.discard(f, temp, errors.Is(err, fs.ErrExist))
		return err
	}
	if !whole {
		err = f.Sync()
	}
	if err == nil {
		err = c.dir.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	c.refill()
	return err
}

// publish writes the content, flushes it when it must be whole, and puts the name on it.
func (c *Creator) publish(f File, temp, name string, content []byte, before func(Info), whole bool) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	if whole {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	if before != nil {
		in, err := f.Stat()
		if err != nil {
			return err
		}
		before(in)
	}
	if temp == "" {
		return c.dir.Publish(f, name)
	}
	if err := c.dir.Link(temp, name); err != nil {
		return err
	}
	return c.dir.Remove(temp)
}

// take is an empty file to write to: the spare, else a new one, else one with a temporary name.
func (c *Creator) take() (f File, temp string, err error) {
	c.mu.Lock()
	f, c.spare = c.spare, nil
	named := c.named
	c.mu.Unlock()
	if f != nil {
		return f, "", nil
	}
	if !named {
		f, err = c.dir.Unnamed()
		if !errors.Is(err, errors.ErrUnsupported) {
			return f, "", err
		}
		c.mu.Lock()
		c.named = true
		c.mu.Unlock()
	}
	temp = fmt.Sprintf(".new-%s-%d", c.pid, c.temps.Add(1))
	f, err = c.dir.Create(temp)
	return f, temp, err
}

// discard takes back a file that got no name. A loser's unnamed file becomes the spare again.
func (c *Creator) discard(f File, temp string, lost bool) {
	if temp != "" {
		_ = c.dir.Remove(temp)
		_ = f.Close()
		return
	}
	if !lost || f.Truncate(0) != nil || !c.keep(f) {
		_ = f.Close()
	}
}

func (c *Creator) keep(f File) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.spare != nil {
		return false
	}
	c.spare = f
	return true
}

// fill makes the spare. What goes wrong here is met again, and reported, by the create that needs the file.
func (c *Creator) fill() {
	f, err := c.dir.Unnamed()
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		c.mu.Lock()
		c.named = true
		c.mu.Unlock()
	case err == nil && !c.keep(f):
		_ = f.Close()
	}
}

// refill makes the spare beside the caller's way.
func (c *Creator) refill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed && !c.named && c.spare == nil {
		c.filling.Go(c.fill)
	}
}

// Replace writes name as a whole: readers see the old content or the new one, and so does the next boot. temp is a name
// that nobody else uses meanwhile; what a killed process left there is overwritten. before is as in [Creator.Create].
func Replace(d Dir, temp, name string, content []byte, before func(Info)) error {
	if err := Stage(d, temp, content, before); err != nil {
		return err
	}
	if err := d.Rename(temp, name); err != nil {
		_ = d.Remove(temp)
		return err
	}
	return d.Sync()
}

// block is the unit in which [Pad] fills files up.
const block = 4096

// Pad fills content up with spaces, and a newline at the end, to whole blocks. Files of one size can take each other's
// place without a change to their metadata, which a flush would have to write as well.
func Pad(content []byte) []byte { return padTo(content, (int64(len(content))/block+1)*block) }

func padTo(content []byte, size int64) []byte {
	b := make([]byte, size)
	for i := copy(b, content); i < len(b); i++ {
		b[i] = ' '
	}
	b[size-1] = '\n'
	return b
}

// Rewrite is Replace for files whose readers ignore spaces at the end and use [ReadPublished]. It costs about half: the
// file that it replaces is kept under the name spare, and is written over by the next Rewrite, so that no inode is made,
// no block is allocated, and the first of the two flushes has data alone to write. spare is a
// name that nobody else uses meanwhile.
func Rewrite(d Dir, spare, name string, content []byte, before func(Info)) error {
	ok, err := overwrite(d, spare, content, before)
	if err != nil {
		_ = d.Remove(spare)
		return err
	}
	if !ok {
		if err := Stage(d, spare, Pad(content), before); err != nil {
			return err
		}
	}
	err = d.Exchange(spare, name)
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
		err = d.Rename(spare, name)
	}
	if err != nil {
		_ = d.Remove(spare)
		return err
	}
	return d.Sync()
}

// overwrite puts the content into the spare and flushes it. ok is false when there is none that fits: a spare with a
// second name is somebody's copy, and is left to him.
func overwrite(d Dir, spare string, content []byte, before func(Info)) (ok bool, err error) {
	f, err := d.Overwrite(spare)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	in, err := f.Stat()
	if err != nil {
		return false, err
	}
	if in.Links != 1 || in.Size%block != 0 || in.Size <= int64(len(content)) || in.Size > 4*int64(len(content))+4*block {
		return false, nil
	}
	if _, err := f.Write(padTo(content, in.Size)); err != nil {
		return false, err
	}
	if err := f.Datasync(); err != nil {
		return false, err
	}
	if before != nil {
		if in, err = f.Stat(); err != nil {
			return false, err
		}
		before(in)
	}
	return true, nil
}

// Stage writes and flushes a file that is about to be renamed.
func Stage(d Dir, temp string, content []byte, before func(Info)) error {
	f, err := d.Create(temp)
	if errors.Is(err, fs.ErrExist) {
		if err = d.Remove(temp); err == nil {
			f, err = d.Create(temp)
		}
	}
	if err != nil {
		return err
	}
	if _, err = f.Write(content); err == nil {
		err = f.Sync()
	}
	if err == nil && before != nil {
		var in Info
		if in, err = f.Stat(); err == nil {
			before(in)
		}
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = d.Remove(temp)
	}
	return err
}

// Entry is one file of several.
type Entry struct {
	Name    string
	Content []byte
}

// StageAll writes and flushes files into a folder that is about to be renamed. All are written before the first is
// flushed: the file system then has them all in one of its own transactions, and the later flushes find little to do.
func StageAll(d Dir, files []Entry) (err error) {
	open := make([]File, 0, len(files))
	defer func() {
		for _, f := range open {
			if e := f.Close(); err == nil {
				err = e
			}
		}
	}()
	for _, e := range files {
		f, err := d.Create(e.Name)
		if err != nil {
			return err
		}
		open = append(open, f)
		if _, err := f.Write(e.Content); err != nil {
			return err
		}
	}
	for _, f := range open {
		if err := f.Sync(); err != nil {
			return err
		}
	}
	return d.Sync()
}

// Leave replaces a file as a whole without flushing it: for what nobody needs any more when the machine has gone down.
func Leave(d Dir, temp, name string, content []byte) error {
	f, err := d.Create(temp)
	if errors.Is(err, fs.ErrExist) {
		if err = d.Remove(temp); err == nil {
			f, err = d.Create(temp)
		}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = d.Rename(temp, name)
	}
	if err != nil {
		_ = d.Remove(temp)
	}
	return err
}

// Remove takes a name away for good. One that is gone already is no error.
func Remove(d Dir, name string) error {
	if err := d.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.Sync()
}

// RemoveAll takes a folder of plain files away, if it is there, without making that durable.
func RemoveAll(d Dir, name string) error {
	if in, err := d.Stat(name); err != nil || !in.Folder {
		if err == nil {
			return d.Remove(name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	sub, err := d.Sub(name)
	if err != nil {
		return err
	}
	defer sub.Close()
	names, err := sub.Names(0)
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := sub.Remove(n); err != nil {
			return err
		}
	}
	return d.Remove(name)
}

// AppendLine appends a line, without its newline, to a file opened with [Dir.Append], whose writers exclude each other.
// It is durable when AppendLine returns. A line that could not be written whole is cut off again; what an earlier
// writer that was killed left of its own, up to the last newline, is cut off first: nobody was ever told that it was
// written.
func AppendLine(f File, line []byte) error {
	if bytes.IndexByte(line, '\n') >= 0 {
		return errors.New("append: the line holds a newline")
	}
	in, err := f.Stat()
	if err != nil {
		return err
	}
	end, err := lastNewline(f, in.Size)
	if err != nil {
		return err
	}
	if end < in.Size {
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	if _, err := f.Write(append(append(make([]byte, 0, len(line)+1), line...), '\n')); err != nil {
		if cut := f.Truncate(end); cut != nil {
			return errors.Join(err, cut)
		}
		return err
	}
	return f.Datasync()
}

// lastNewline is the offset after the last newline before size.
func lastNewline(f io.ReaderAt, size int64) (int64, error) {
	var one [1]byte
	if size == 0 {
		return 0, nil
	}
	if _, err := f.ReadAt(one[:], size-1); err != nil {
		return 0, err
	}
	if one[0] == '\n' {
		return size, nil
	}
	const step = 64 << 10
	for buf := make([]byte, step); size > 0; {
		from := max(0, size-step)
		b := buf[:size-from]
		if _, err := f.ReadAt(b, from); err != nil {
			return 0, err
		}
		// Forward inside the block: bytes.LastIndexByte is a plain loop as well, and the tail is short.
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}
		size = from
	}
	return 0, nil
}

// TooLargeError is a file over the bound that its reader set.
type TooLargeError struct {
	Path        string
	Size, Limit int64
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the %d that are read", e.Path, e.Size, e.Limit)
}

// ReadFile reads a regular file of at most limit bytes.
func ReadFile(d Dir, name string, limit int64) ([]byte, Info, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil {
		return nil, Info{}, err
	}
	if in.Size > limit {
		return nil, in, &TooLargeError{Path: d.Path() + "/" + name, Size: in.Size, Limit: limit}
	}
	b := make([]byte, in.Size)
	n, err := f.ReadAt(b, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, in, err
	}
	return b[:n], in, nil
}

// ReadPublished is ReadFile for files that [Rewrite] changes. A file that was opened right before it was replaced may be
// the spare while it is read, and hold what is not published yet, or half of it; so the name is looked at again, and the
// file read anew when it is another by now, or not whole. sound reports whether content is whole. Content that stays as it
// is and is not whole is returned for the caller to say so.
func ReadPublished(d Dir, name string, limit int64, sound func([]byte) bool) (b []byte, in Info, err error) {
	const tries = 100 // a writer needs many times longer than a reader
	var before []byte
	for range tries {
		if b, in, err = ReadFile(d, name, limit); err != nil {
			return b, in, err
		}
		now, err := d.Stat(name)
		if err != nil {
			return nil, in, err
		}
		if now.Ino != in.Ino {
			continue
		}
		// The time of the change does not tell: a write sets it once, before the content is there. What is damaged reads the
		// same twice, and what was read in the middle of a write does not.
		if sound(b) || now.MTime == in.MTime && before != nil && bytes.Equal(before, b) {
			return b, in, nil
		}
		before = b
	}
	return nil, in, fmt.Errorf("read %s/%s: it changes faster than it can be read", d.Path(), name)
}

// IsSymlink reports that a name was not opened because it is a symlink.
func IsSymlink(err error) bool { return errors.Is(err, errSymlink) }

var errSymlink = errors.New("a symlink is not followed")
