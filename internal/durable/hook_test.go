package durable_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// hookDir tells a function of every operation before it is done; the function may refuse it.
type hookDir struct {
	durable.Dir
	hook func(op string) error
}

func (d hookDir) file(op string, open func() (durable.File, error)) (durable.File, error) {
	if err := d.hook(op); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	return hookFile{f, d.hook}, nil
}

func (d hookDir) do(op string, f func() error) error {
	if err := d.hook(op); err != nil {
		return err
	}
	return f()
}

func (d hookDir) Create(n string) (durable.File, error) {
	return d.file("create", func() (durable.File, error) { return d.Dir.Create(n) })
}

func (d hookDir) Overwrite(n string) (durable.File, error) {
	return d.file("overwrite", func() (durable.File, error) { return d.Dir.Overwrite(n) })
}

func (d hookDir) Append(n string) (durable.File, error) {
	return d.file("append", func() (durable.File, error) { return d.Dir.Append(n) })
}
func (d hookDir) Unnamed() (durable.File, error) { return d.file("unnamed", d.Dir.Unnamed) }
func (d hookDir) Publish(f durable.File, n string) error {
	return d.do("publish", func() error { return d.Dir.Publish(f.(hookFile).File, n) })
}
func (d hookDir) Link(a, b string) error {
	return d.do("link", func() error { return d.Dir.Link(a, b) })
}
func (d hookDir) Rename(a, b string) error {
	return d.do("rename", func() error { return d.Dir.Rename(a, b) })
}
func (d hookDir) Exchange(a, b string) error {
	return d.do("exchange", func() error { return d.Dir.Exchange(a, b) })
}
func (d hookDir) Remove(n string) error {
	return d.do("remove", func() error { return d.Dir.Remove(n) })
}
func (d hookDir) Sync() error { return d.do("sync folder", d.Dir.Sync) }

type hookFile struct {
	durable.File
	hook func(op string) error
}

// Write writes half of what it was given when it is refused, as a full disk does.
func (f hookFile) Write(b []byte) (int, error) {
	if err := f.hook("write"); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f hookFile) Sync() error {
	if err := f.hook("sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f hookFile) Datasync() error {
	if err := f.hook("datasync"); err != nil {
		return err
	}
	return f.File.Datasync()
}

func (f hookFile) Truncate(n int64) error {
	if err := f.hook("truncate"); err != nil {
		return err
	}
	return f.File.Truncate(n)
}

// folder is an open folder of the test's own.
func folder(t *testing.T) durable.Dir {
	t.Helper()
	d, err := durable.System{}.Open(filepath.Join(t.TempDir(), "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// counter counts operations and refuses one of them.
type counter struct {
	mu   sync.Mutex
	ops  []string
	fail int // 1 is the first; 0 none
}

var errFault = errors.New("the disk is broken")

func (c *counter) hook(op string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ops = append(c.ops, op)
	if len(c.ops) == c.fail {
		return errFault
	}
	return nil
}

func (c *counter) count(op string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.ops {
		if o == op {
			n++
		}
	}
	return n
}

func content(t *testing.T, d durable.Dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(d.Path(), name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

func names(t *testing.T, d durable.Dir) []string {
	t.Helper()
	ns, err := d.Names(0)
	if err != nil {
		t.Fatal(err)
	}
	return ns
}
