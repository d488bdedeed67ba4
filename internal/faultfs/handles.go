package faultfs

import (
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// dir is an open folder of a Disk.
type dir struct {
	d      *Disk
	n      *node
	path   string
	closed bool
}

func (d *dir) fail(op Kind, name string, err error) error {
	return &fs.PathError{Op: string(op), Path: filepath.Join(d.path, name), Err: err}
}

// do does one thing to the folder under the disk's lock, with names that are single path components.
func (d *dir) do(op Kind, f func() error, names ...string) error {
	d.d.mu.Lock()
	defer d.d.mu.Unlock()
	last := ""
	err := error(nil)
	if d.closed {
		err = fs.ErrClosed
	}
	for _, last = range names {
		if last == "" || last == "." || last == ".." || strings.ContainsAny(last, "/\x00") {
			err = fs.ErrInvalid
		}
	}
	if err == nil {
		err = f()
	}
	if err != nil {
		return d.fail(op, last, err)
	}
	return nil
}

// find is the node of a name.
func (d *dir) find(name string) (*node, error) {
	if n := d.n.names[name]; n != nil {
		return n, nil
	}
	return nil, fs.ErrNotExist
}

// free reports as an error that a name is taken, or that the folder is gone and takes no more names.
func (d *dir) free(name string) error {
	switch {
	case d.n.names[name] != nil:
		return fs.ErrExist
	case d.n.links == 0:
		return fs.ErrNotExist
	}
	return nil
}

func (d *dir) Path() string { return d.path }

func (d *dir) Sub(name string) (durable.Dir, error) {
	var n *node
	err := d.do("open folder", func() (err error) {
		if n, err = d.find(name); err == nil {
			if !n.folder {
				return fs.ErrInvalid
			}
			return nil
		}
		if n, err = d.make(name); err == nil {
			d.n.flush()
		}
		return err
	}, name)
	if err != nil {
		return nil, err
	}
	return &dir{d: d.d, n: n, path: filepath.Join(d.path, name)}, nil
}

func (d *dir) make(name string) (*node, error) {
	if err := d.free(name); err != nil {
		return nil, err
	}
	n := d.d.newNode(true)
	d.n.move(move{name: n}, d.d.now())
	return n, nil
}

func (d *dir) Make(name string) (durable.Dir, error) {
	var n *node
	err := d.do(MakeFolder, func() (err error) { n, err = d.make(name); return err }, name)
	if err != nil {
		return nil, err
	}
	return &dir{d: d.d, n: n, path: filepath.Join(d.path, name)}, nil
}

func (d *dir) Stat(name string) (in durable.Info, err error) {
	err = d.do(Look, func() error {
		n, err := d.find(name)
		if err == nil {
			in = n.info()
		}
		return err
	}, name)
	return in, err
}

func (d *dir) Names(limit int) (names []string, err error) {
	err = d.do(Look, func() error {
		if names = sorted(d.n.names); limit > 0 && len(names) > limit {
			names = names[:limit]
		}
		return nil
	})
	return names, err
}

// open opens the file that get finds or makes.
func (d *dir) open(op Kind, name string, how file, get func() (*node, error)) (durable.File, error) {
	f := &how
	err := d.do(op, func() error {
		n, err := get()
		if err == nil && n.folder {
			err = fs.ErrInvalid
		}
		f.n = n
		return err
	}, name)
	if err != nil {
		return nil, err
	}
	f.dir, f.name = d, name
	return f, nil
}

func (d *dir) create(name string) (*node, error) {
	if err := d.free(name); err != nil {
		return nil, err
	}
	n := d.d.newNode(false)
	d.n.move(move{name: n}, d.d.now())
	return n, nil
}

func (d *dir) Open(name string) (durable.File, error) {
	return d.open(Look, name, file{readOnly: true}, func() (*node, error) { return d.find(name) })
}

func (d *dir) Create(name string) (durable.File, error) {
	return d.open(Create, name, file{}, func() (*node, error) { return d.create(name) })
}

func (d *dir) Overwrite(name string) (durable.File, error) {
	return d.open(Look, name, file{}, func() (*node, error) { return d.find(name) })
}

func (d *dir) Append(name string) (durable.File, error) {
	return d.open(Create, name, file{atEnd: true}, func() (*node, error) { return d.findOrCreate(name) })
}

func (d *dir) findOrCreate(name string) (*node, error) {
	if n, err := d.find(name); err == nil {
		return n, nil
	}
	return d.create(name)
}

func (d *dir) Unnamed() (durable.File, error) {
	f := &file{dir: d}
	err := d.do(Unnamed, func() error {
		if d.d.Plain {
			return errors.ErrUnsupported
		}
		f.n = d.d.newNode(false)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *dir) Publish(f durable.File, name string) error {
	return d.do(Publish, func() error {
		file, ok := f.(*file)
		if !ok || file.dir.d != d.d {
			return fs.ErrInvalid
		}
		if err := d.free(name); err != nil {
			return err
		}
		d.n.move(move{name: file.n}, d.d.now())
		file.name = name
		return nil
	}, name)
}

func (d *dir) Link(from, to string) error {
	return d.do(Link, func() error {
		n, err := d.find(from)
		if err == nil {
			err = d.free(to)
		}
		switch {
		case err != nil:
			return err
		case n.folder:
			return fs.ErrPermission
		}
		d.n.move(move{to: n}, d.d.now())
		return nil
	}, from, to)
}

func (d *dir) Rename(from, to string) error {
	return d.do(Rename, func() error {
		n, err := d.find(from)
		if err != nil {
			return err
		}
		switch old := d.n.names[to]; {
		case old == n:
			return nil // two names of one file: both stay
		case old != nil && old.folder != n.folder:
			return fs.ErrInvalid
		case old != nil && len(old.names) > 0:
			return fs.ErrExist
		}
		d.n.move(move{from: nil, to: n}, d.d.now())
		return nil
	}, from, to)
}

func (d *dir) Exchange(a, b string) error {
	return d.do(Exchange, func() error {
		if d.d.Plain {
			return errors.ErrUnsupported
		}
		x, err1 := d.find(a)
		y, err2 := d.find(b)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if a != b {
			d.n.move(move{a: y, b: x}, d.d.now())
		}
		return nil
	}, a, b)
}

func (d *dir) Remove(name string) error {
	return d.do(Remove, func() error {
		n, err := d.find(name)
		switch {
		case err != nil:
			return err
		case len(n.names) > 0:
			return fs.ErrExist
		}
		d.n.move(move{name: nil}, d.d.now())
		return nil
	}, name)
}

func (d *dir) Sync() error {
	return d.do(SyncFolder, func() error { d.n.flush(); return nil })
}

func (d *dir) Lock(name string) (durable.Lock, error) {
	l := &lock{dir: d, name: name}
	err := d.do(Create, func() (err error) {
		if l.n, err = d.findOrCreate(name); err == nil && l.n.folder {
			err = fs.ErrInvalid
		}
		return err
	}, name)
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (d *dir) Close() error {
	return d.do("close", func() error { d.closed = true; return nil })
}

// file is an open file of a Disk.
type file struct {
	dir             *dir
	name            string
	n               *node
	at              int64
	readOnly, atEnd bool
	closed          bool
}

func (f *file) do(op Kind, change bool, do func() error) error {
	d := f.dir.d
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case f.closed:
		return f.dir.fail(op, f.name, fs.ErrClosed)
	case change && f.readOnly:
		return f.dir.fail(op, f.name, fs.ErrPermission)
	}
	return do()
}

func (f *file) Read(b []byte) (n int, err error) {
	err = f.do(Look, false, func() error {
		n, err = f.read(b, f.at)
		f.at += int64(n)
		if n > 0 {
			err = nil // the end is told by the next one
		}
		return err
	})
	return n, err
}

func (f *file) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.do(Look, false, func() error { n, err = f.read(b, off); return err })
	return n, err
}

func (f *file) read(b []byte, off int64) (int, error) {
	n := copy(b, f.n.content[min(off, int64(len(f.n.content))):])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(b []byte) (int, error) {
	err := f.do(Write, true, func() error {
		if len(b) == 0 {
			return nil
		}
		if f.atEnd {
			f.at = int64(len(f.n.content))
		}
		f.n.write(write{off: f.at, data: append([]byte(nil), b...)}, f.dir.d.now())
		f.at += int64(len(b))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) WriteAt(b []byte, off int64) (int, error) {
	err := f.do(Write, true, func() error {
		if off < 0 || f.atEnd {
			return f.dir.fail(Write, f.name, fs.ErrInvalid)
		}
		if len(b) > 0 {
			f.n.write(write{off: off, data: append([]byte(nil), b...)}, f.dir.d.now())
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f *file) Truncate(size int64) error {
	return f.do(Truncate, true, func() error {
		f.n.write(write{off: size, cut: true}, f.dir.d.now())
		f.at = size
		return nil
	})
}

func (f *file) Stat() (in durable.Info, err error) {
	err = f.do(Look, false, func() error { in = f.n.info(); return nil })
	return in, err
}

func (f *file) Sync() error {
	return f.do(SyncFile, false, func() error { f.n.flush(); return nil })
}

func (f *file) Datasync() error { return f.Sync() }

func (f *file) Close() error {
	return f.do("close", false, func() error { f.closed = true; return nil })
}

// lock is a handle on a lock file.
type lock struct {
	dir  *dir
	name string
	n    *node
}

func (l *lock) Try(shared bool) (bool, error) {
	l.dir.d.mu.Lock()
	defer l.dir.d.mu.Unlock()
	for h, exclusive := range l.n.holders {
		if h != l && (exclusive || !shared) {
			return false, nil
		}
	}
	if l.n.holders == nil {
		l.n.holders = map[*lock]bool{}
	}
	l.n.holders[l] = !shared
	return true, nil
}

func (l *lock) Unlock() error {
	l.dir.d.mu.Lock()
	defer l.dir.d.mu.Unlock()
	delete(l.n.holders, l)
	return nil
}

func (l *lock) Close() error { return l.Unlock() }
