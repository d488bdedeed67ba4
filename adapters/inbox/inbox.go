// Package inbox keeps notices as files: a folder with one JSON file per key. It is the notifier for hosts that show
// notices themselves, and what the command line's list of notices reads.
//
// Call [New] with a folder and hand the result to the engine; whoever shows notices calls [Inbox.Entries], and
// [Inbox.Dismiss] when a person has seen one. Several processes may use one folder at once.
//
// Promised: an acknowledged row is on disk and survives a power cut; a key has one file, readers see the old content or
// the new one; an entry's count of toasts rises once a key, also when the process ends between delivery and
// acknowledgement and the row comes a second time; a dismissed row that tells something new stands there again, without
// a toast.
//
// Refused: a row without a key, a folder on a network disk, the service's folder in a canary (inside.ErrOutside), and a
// file written by a newer version. A file that cannot
// be read is set aside as "NAME.damaged" when its key comes again, and reported by Entries until then. Errors are
// returned, and then the row comes again.
package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// Schema is the version of the file format that this package writes.
const Schema = 1

// sizeLimit bounds a file that is read; a row of the largest episode is far below it.
const sizeLimit = 4 << 20

// Config says where the inbox lies.
type Config struct {
	// Dir is the absolute path of the folder; it is made when it is absent.
	Dir string
}

// Inbox is a notify.Notifier that keeps rows in files.
type Inbox struct {
	dir durable.Dir
	// turn is held by whoever works on the folder, as far as this process goes; the lock file does the rest.
	turn chan struct{}
}

// Entry is one row as it stands in the inbox.
type Entry struct {
	Schema int        `json:"schema"`
	Row    notify.Row `json:"row"`
	// Toasts is how many toasts were asked for under this key. Whoever shows notices sounds when it is higher than what
	// it has sounded.
	Toasts int `json:"toasts"`
	// Dismissed is set once a person has seen the row, until it tells something new.
	Dismissed bool `json:"dismissed,omitempty"`
}

// DamagedError is a file of the inbox that cannot be used.
type DamagedError struct {
	Path string
	Why  string
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("notice %s cannot be read: %s", e.Path, e.Why)
}

// New opens the inbox. Close it when done.
func New(c Config) (*Inbox, error) {
	if !filepath.IsAbs(c.Dir) {
		return nil, fmt.Errorf("open inbox: Dir is %q, want an absolute path", c.Dir)
	}
	if err := inside.Refuse(c.Dir); err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	d, err := durable.System{}.Open(c.Dir)
	if err != nil {
		return nil, fmt.Errorf("open inbox: %w", err)
	}
	return &Inbox{dir: d, turn: make(chan struct{}, 1)}, nil
}

// Close releases the folder. No call may be under way.
func (b *Inbox) Close() error { return b.dir.Close() }

// Notify puts the row under its key, on disk when it returns nil.
func (b *Inbox) Notify(ctx context.Context, r notify.Row) error {
	if r.Key == "" {
		return errors.New("file notice: the row has no key")
	}
	err := b.exclusive(ctx, func() error {
		held, err := b.read(fileName(r.Key), r.Key)
		var damaged *DamagedError
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.As(err, &damaged):
			if err := b.dir.Rename(fileName(r.Key), fileName(r.Key)+".damaged"); err != nil {
				return err
			}
		case err != nil:
			return err
		}
		next := Entry{Schema: Schema, Row: notify.Merge(held.Row, clean(r)), Toasts: held.Toasts, Dismissed: held.Dismissed}
		if next.Row.Toast {
			next.Toasts++
			next.Row.Toast = false // counted
		}
		if news(held.Row, next.Row) {
			next.Dismissed = false
		}
		return b.write(held, next)
	})
	if err != nil {
		return fmt.Errorf("file notice %s: %w", r.Key, err)
	}
	return nil
}

// Dismiss marks a row as seen. The file stays, so that the same row, delivered once more, neither sounds nor comes
// back. A key that is not there is fs.ErrNotExist.
func (b *Inbox) Dismiss(ctx context.Context, key string) error {
	err := b.exclusive(ctx, func() error {
		held, err := b.read(fileName(key), key)
		if err != nil {
			return err
		}
		next := held
		next.Dismissed = true
		return b.write(held, next)
	})
	if err != nil {
		return fmt.Errorf("dismiss notice %s: %w", key, err)
	}
	return nil
}

// Entries are all rows, the newest first, dismissed ones among them. Files that cannot be used are in the error, as
// *DamagedError, beside the entries that can.
func (b *Inbox) Entries(ctx context.Context) ([]Entry, error) {
	names, err := b.dir.Names(0)
	if err != nil {
		return nil, fmt.Errorf("list notices: %w", err)
	}
	var all []Entry
	var errs []error
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list notices: %w", err)
		}
		if !strings.HasSuffix(name, ".json") {
			continue
		}
		e, err := b.read(name, "")
		switch {
		case errors.Is(err, fs.ErrNotExist): // taken away meanwhile
		case err != nil:
			errs = append(errs, err)
		default:
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y Entry) int {
		if c := y.Row.At.Compare(x.Row.At); c != 0 {
			return c
		}
		return strings.Compare(x.Row.Key, y.Row.Key)
	})
	return all, errors.Join(errs...)
}

func fileName(key string) string { return durable.Escape(key) + ".json" }

// clean makes a row of a host's own as harmless as ours are.
func clean(r notify.Row) notify.Row {
	r.Title, r.Report = notify.Line(r.Title, 0), notify.Line(r.Report, 0)
	r.Notes = slices.Clone(r.Notes)
	for i := range r.Notes {
		r.Notes[i].Text = r.Notes[i].Shown()
	}
	return r
}

// news reports whether next tells a person something that held did not.
func news(held, next notify.Row) bool {
	return held.Title != next.Title || !slices.Equal(held.Notes, next.Notes)
}

// read is the entry in a file. want is its key, empty when any will do.
func (b *Inbox) read(name, want string) (Entry, error) {
	content, _, err := durable.ReadFile(b.dir, name, sizeLimit)
	if err != nil {
		return Entry{}, err
	}
	damaged := func(format string, args ...any) (Entry, error) {
		return Entry{}, &DamagedError{Path: filepath.Join(b.dir.Path(), name), Why: fmt.Sprintf(format, args...)}
	}
	var e Entry
	if err := json.Unmarshal(content, &e); err != nil {
		return damaged("%v", err)
	}
	switch {
	case e.Schema > Schema:
		return Entry{}, fmt.Errorf("%s was written by a newer version (schema %d, this one knows %d): update mulligan", name, e.Schema, Schema)
	case e.Schema < 1 || fileName(e.Row.Key) != name:
		return damaged("it holds the notice %q of schema %d", e.Row.Key, e.Schema)
	case want != "" && e.Row.Key != want:
		return damaged("it holds the notice %q", e.Row.Key)
	}
	return e, nil
}

// write replaces the file when there is something to write.
func (b *Inbox) write(held, next Entry) error {
	was, err := json.Marshal(held)
	if err != nil {
		return err
	}
	now, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if bytes.Equal(was, now) {
		return nil
	}
	return durable.Replace(b.dir, ".new", fileName(next.Row.Key), append(now, '\n'), nil)
}

// exclusive runs f while nobody else, in this process or another, changes the folder.
func (b *Inbox) exclusive(ctx context.Context, f func() error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case b.turn <- struct{}{}:
		defer func() { <-b.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	lock, err := b.dir.Lock(".lock")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	// Another process holds it for one write, so looking again soon is enough.
	if err := durable.Take(ctx, lock, 2*time.Millisecond, durable.Patience); err != nil {
		return err
	}
	return f()
}
