package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"sync"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
)

// lineLimit bounds one line of a log.
const lineLimit = 1 << 20

// lines is an append-only log of sealed JSON lines in which the last entry of an id counts. What was read once is kept,
// and only what was appended since is read again.
type lines[T any] struct {
	h    *Home
	name string
	// id is what an entry is keyed by; read decodes one.
	id   func(T) string
	read func(body []byte) (T, *ledger.DamageError)
	// wanted chooses the entries that are kept at hand; nil for none.
	wanted func(T) bool

	mu   sync.Mutex
	ino  uint64
	off  int64
	line int
	// mark is the beginning of a line that was read, which lies at markAt. A file's number alone may come back with another
	// file: a log that was pruned twice since it was looked at.
	mark   []byte
	markAt int64

	order []string
	last  map[string]T
	hand  map[string]bool // ids whose last entry is wanted
	bad   []error
}

// append adds an entry, durably.
func (l *lines[T]) append(ctx context.Context, v T) error {
	b, _, err := sealed(v)
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	if len(b) > lineLimit {
		return fmt.Errorf("append to %s: an entry of %d bytes, want at most %d", l.name, len(b), lineLimit)
	}
	err = l.h.locks.with(ctx, l.name, func() error {
		f, err := l.h.root.Append(l.name)
		if err != nil {
			return err
		}
		in, err := f.Stat()
		if err == nil && in.Size == 0 {
			// The name is made durable before the first entry: whoever finds an entry may then rely on the name, also when
			// the one who wrote it was killed.
			err = l.h.root.Sync()
		}
		if err == nil {
			err = durable.AppendLine(f, b)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("append to %s: %w", l.name, err)
	}
	return nil
}

// entries are the last entry of each id, in the order of the first, and what could not be read.
func (l *lines[T]) entries() (all []T, bad []error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", l.name, err)
	}
	all = make([]T, len(l.order))
	for i, id := range l.order {
		all[i] = l.last[id]
	}
	return all, append([]error(nil), l.bad...), nil
}

// atHand are the wanted entries, and what could not be read.
func (l *lines[T]) atHand() (some []T, bad []error, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", l.name, err)
	}
	for id := range l.hand {
		some = append(some, l.last[id])
	}
	return some, append([]error(nil), l.bad...), nil
}

// entry is the last entry of an id.
func (l *lines[T]) entry(id string) (v T, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.follow(); err != nil {
		return v, false, fmt.Errorf("read %s: %w", l.name, err)
	}
	v, ok = l.last[id]
	return v, ok, nil
}

// markSize is how much of a line is kept to know its log by: its checksum is among it.
const markSize = 256

// same reports whether a file is the one that was read so far.
func (l *lines[T]) same(f durable.File, in durable.Info) (bool, error) {
	if in.Ino != l.ino || in.Size < l.off {
		return false, nil
	}
	b := make([]byte, len(l.mark))
	if _, err := f.ReadAt(b, l.markAt); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(b, l.mark), nil
}

// follow reads what was appended since the last time. A log that was replaced or shortened is read from its start.
func (l *lines[T]) follow() error {
	f, err := l.h.root.Open(l.name)
	if errors.Is(err, fs.ErrNotExist) {
		l.reset(0)
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	in, err := f.Stat()
	if err != nil {
		return err
	}
	if same, err := l.same(f, in); err != nil {
		return err
	} else if !same {
		l.reset(in.Ino)
	}
	var rest []byte
	long := false // the line that is being read is over the limit: skip to its end
	block := make([]byte, 64<<10)
	for at := l.off; at < in.Size; {
		n, err := f.ReadAt(block[:min(int64(len(block)), in.Size-at)], at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if n == 0 {
			break // shortened while it was read: what was cut was never acknowledged
		}
		at += int64(n)
		for b := block[:n]; len(b) > 0; {
			i := bytes.IndexByte(b, '\n')
			if i < 0 {
				if rest = append(rest, b...); len(rest) > lineLimit {
					long, rest = true, rest[:0]
				}
				break
			}
			line := b[:i]
			if len(rest) > 0 {
				rest = append(rest, line...)
				line = rest
			}
			if !long {
				l.mark, l.markAt = append(l.mark[:0], line[:min(len(line), markSize)]...), l.off
			}
			l.take(line, long || len(line) > lineLimit)
			b, rest, long = b[i+1:], rest[:0], false
			l.off = at - int64(len(b))
		}
	}
	return nil
}

func (l *lines[T]) reset(ino uint64) {
	l.ino, l.off, l.line, l.order, l.last, l.hand, l.bad, l.mark, l.markAt = ino, 0, 0, nil, map[string]T{}, map[string]bool{}, nil, nil, 0
}

func (l *lines[T]) take(line []byte, long bool) {
	l.line++
	v, bad := l.decode(line, long)
	if bad != nil {
		bad.Path, bad.Torn = fmt.Sprintf("%s:%d", filepath.Join(l.h.dir, l.name), l.line), false
		l.bad = append(l.bad, bad)
		return
	}
	id := l.id(v)
	if _, ok := l.last[id]; !ok {
		l.order = append(l.order, id)
	}
	l.last[id] = v
	delete(l.hand, id)
	if l.wanted != nil && l.wanted(v) {
		l.hand[id] = true
	}
}

func (l *lines[T]) decode(line []byte, long bool) (v T, bad *ledger.DamageError) {
	if long {
		return v, &ledger.DamageError{Why: fmt.Sprintf("it is longer than %d bytes", lineLimit)}
	}
	body, bad := unseal(line)
	if bad != nil {
		return v, bad
	}
	return l.read(body)
}
