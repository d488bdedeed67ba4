package faultfs

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// Hook is asked before each operation. An error refuses the operation, and is what its caller gets, with the path; a hook
// that does not return ends the story there. It is called by whoever does the operation, also at the same time.
type Hook func(Op) error

// Tap passes every operation on to another file system, after asking the hook.
func Tap(under durable.FS, hook Hook) durable.FS { return &tap{under: under, hook: hook} }

type tap struct {
	under          durable.FS
	hook           Hook
	changes, looks atomic.Int64
}

func (t *tap) ask(k Kind, path string) error {
	count := &t.changes
	if k == Look {
		count = &t.looks
	}
	if err := t.hook(Op{N: int(count.Add(1)), Kind: k, Path: path}); err != nil {
		return &fs.PathError{Op: string(k), Path: path, Err: err}
	}
	return nil
}

// Open implements durable.FS. Making the root is not counted.
func (t *tap) Open(path string) (durable.Dir, error) {
	if err := t.ask(Look, path); err != nil {
		return nil, err
	}
	d, err := t.under.Open(path)
	if err != nil {
		return nil, err
	}
	return &tapDir{t, d}, nil
}

// At is the hook that does something at the n-th operation that changes anything.
func At(n int, do func(Op) error) Hook {
	return func(op Op) error {
		if op.Kind != Look && op.N == n {
			return do(op)
		}
		return nil
	}
}

// KillAt is the hook that ends its own process before the n-th operation, without a word and without a chance to tidy up.
func KillAt(n int) Hook {
	return At(n, func(Op) error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way; not a line more may run
	})
}

// FailAt is the hook that refuses the n-th operation alone.
func FailAt(n int, err error) Hook { return At(n, func(Op) error { return err }) }

// FailFrom is the hook that refuses the n-th operation and all that change anything after it, like a disk that is full
// or has become read-only.
func FailFrom(n int, err error) Hook {
	return func(op Op) error {
		if op.Kind != Look && op.N >= n {
			return err
		}
		return nil
	}
}

// FailLook is the hook that refuses the n-th look alone: a file that cannot be read, a folder that cannot be listed.
func FailLook(n int, err error) Hook {
	return func(op Op) error {
		if op.Kind == Look && op.N == n {
			return err
		}
		return nil
	}
}

// ErrPowerCut is what everything gets after [CutAfter].
var ErrPowerCut = errors.New("the power is cut")

// CutAfter is the hook after whose n-th operation nothing works any more, looking included.
func CutAfter(n int) Hook {
	var off atomic.Bool
	return func(op Op) error {
		if op.Kind != Look && op.N > n {
			off.Store(true)
		}
		if off.Load() {
			return ErrPowerCut
		}
		return nil
	}
}

// Short makes an error of a write one that comes after half of the bytes. Other operations get it as it is.
func Short(err error) error { return &shortError{err} }

type shortError struct{ err error }

func (e *shortError) Error() string { return e.err.Error() }
func (e *shortError) Unwrap() error { return e.err }

type tapDir struct {
	t *tap
	d durable.Dir
}

func (d *tapDir) at(name string) string { return filepath.Join(d.d.Path(), name) }

// do asks and does one thing.
func (d *tapDir) do(k Kind, name string, f func() error) error {
	if err := d.t.ask(k, d.at(name)); err != nil {
		return err
	}
	return f()
}

// file asks and opens a file.
func (d *tapDir) file(k Kind, name string, open func() (durable.File, error)) (durable.File, error) {
	if err := d.t.ask(k, d.at(name)); err != nil {
		return nil, err
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	return &tapFile{File: f, t: d.t, path: d.at(name)}, nil
}

// absent makes an operation that may create what it opens a change only when it does.
func (d *tapDir) absent(name string) bool {
	_, err := d.d.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

func (d *tapDir) Path() string { return d.d.Path() }

func (d *tapDir) Sub(name string) (durable.Dir, error) {
	if d.absent(name) {
		made, err := d.Make(name)
		if err == nil {
			err = made.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if err := d.Sync(); err != nil {
			return nil, err
		}
	}
	sub, err := d.d.Sub(name)
	if err != nil {
		return nil, err
	}
	return &tapDir{d.t, sub}, nil
}

func (d *tapDir) Make(name string) (durable.Dir, error) {
	if err := d.t.ask(MakeFolder, d.at(name)); err != nil {
		return nil, err
	}
	made, err := d.d.Make(name)
	if err != nil {
		return nil, err
	}
	return &tapDir{d.t, made}, nil
}

func (d *tapDir) Stat(name string) (in durable.Info, err error) {
	err = d.do(Look, name, func() error { in, err = d.d.Stat(name); return err })
	return in, err
}

func (d *tapDir) Names(limit int) (names []string, err error) {
	err = d.do(Look, "", func() error { names, err = d.d.Names(limit); return err })
	return names, err
}

func (d *tapDir) Open(name string) (durable.File, error) {
	return d.file(Look, name, func() (durable.File, error) { return d.d.Open(name) })
}

func (d *tapDir) Create(name string) (durable.File, error) {
	return d.file(Create, name, func() (durable.File, error) { return d.d.Create(name) })
}

func (d *tapDir) Overwrite(name string) (durable.File, error) {
	return d.file(Look, name, func() (durable.File, error) { return d.d.Overwrite(name) })
}

func (d *tapDir) Append(name string) (durable.File, error) {
	k := Look
	if d.absent(name) {
		k = Create
	}
	return d.file(k, name, func() (durable.File, error) { return d.d.Append(name) })
}

func (d *tapDir) Unnamed() (durable.File, error) { return d.file(Unnamed, "", d.d.Unnamed) }

func (d *tapDir) Publish(f durable.File, name string) error {
	file, ok := f.(*tapFile)
	if !ok {
		return &fs.PathError{Op: string(Publish), Path: d.at(name), Err: fs.ErrInvalid}
	}
	return d.do(Publish, name, func() error {
		err := d.d.Publish(file.File, name)
		if err == nil {
			file.path = d.at(name)
		}
		return err
	})
}

func (d *tapDir) Link(from, to string) error {
	return d.do(Link, to, func() error { return d.d.Link(from, to) })
}

func (d *tapDir) Rename(from, to string) error {
	return d.do(Rename, to, func() error { return d.d.Rename(from, to) })
}

func (d *tapDir) Exchange(a, b string) error {
	return d.do(Exchange, b, func() error { return d.d.Exchange(a, b) })
}

func (d *tapDir) Remove(name string) error {
	return d.do(Remove, name, func() error { return d.d.Remove(name) })
}

func (d *tapDir) Sync() error { return d.do(SyncFolder, "", d.d.Sync) }

func (d *tapDir) Lock(name string) (durable.Lock, error) {
	k := Look
	if d.absent(name) {
		k = Create
	}
	if err := d.t.ask(k, d.at(name)); err != nil {
		return nil, err
	}
	return d.d.Lock(name)
}

// Close is never refused: a handle that cannot be closed is nobody's test.
func (d *tapDir) Close() error { return d.d.Close() }

type tapFile struct {
	durable.File
	t    *tap
	path string
}

func (f *tapFile) Read(b []byte) (int, error) {
	if err := f.t.ask(Look, f.path); err != nil {
		return 0, err
	}
	return f.File.Read(b)
}

func (f *tapFile) ReadAt(b []byte, off int64) (int, error) {
	if err := f.t.ask(Look, f.path); err != nil {
		return 0, err
	}
	return f.File.ReadAt(b, off)
}

func (f *tapFile) Stat() (durable.Info, error) {
	if err := f.t.ask(Look, f.path); err != nil {
		return durable.Info{}, err
	}
	return f.File.Stat()
}

func (f *tapFile) Write(b []byte) (int, error) { return f.write(b, f.File.Write) }

func (f *tapFile) WriteAt(b []byte, off int64) (int, error) {
	return f.write(b, func(b []byte) (int, error) { return f.File.WriteAt(b, off) })
}

func (f *tapFile) write(b []byte, under func([]byte) (int, error)) (int, error) {
	err := f.t.ask(Write, f.path)
	var short *shortError
	switch {
	case errors.As(err, &short):
		n, e := under(b[:len(b)/2])
		return n, errors.Join(err, e)
	case err != nil:
		return 0, err
	}
	return under(b)
}

func (f *tapFile) Truncate(size int64) error {
	if err := f.t.ask(Truncate, f.path); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *tapFile) Sync() error {
	if err := f.t.ask(SyncFile, f.path); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *tapFile) Datasync() error {
	if err := f.t.ask(SyncFile, f.path); err != nil {
		return err
	}
	return f.File.Datasync()
}
