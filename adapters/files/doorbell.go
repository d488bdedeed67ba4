package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

const (
	// noteLimit bounds what is read as one note: the text in base64, and identities with many changed files.
	noteLimit = 1 << 20
	// lookLimit bounds what one look into the box reads. Whoever decides the notes holds them all in memory for as long.
	lookLimit = 64 << 20
	// watchSlow is how often the box is looked at where the kernel does not tell.
	watchSlow = 500 * time.Millisecond
)

// box is the doorbell folder: a file for each note, under any name that does not begin with a dot.
type box struct {
	dir    durable.Dir
	create *durable.Creator

	mu sync.Mutex
	// next is the first name that the last look had no room for, empty when it had room for all. The next look begins
	// there, so that notes which stay (their runs wait, or they cannot be used) never keep others from being read.
	next string
}

func newBox(dir durable.Dir, id string) *box {
	return &box{dir: dir, create: durable.NewCreator(dir, id)}
}

// Ring implements doorbell.Box.
func (s *box) Ring(ctx context.Context, n doorbell.Note) error {
	if n.Schema == 0 {
		n.Schema = doorbell.Schema
	}
	if err := n.Validate(); err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("ring for run %s: %w", n.Run, context.Cause(ctx))
	}
	b, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("ring for run %s: %w", n.Run, err)
	}
	if len(b) >= noteLimit {
		return fmt.Errorf("ring for run %s: a note of %d bytes, want less than %d: shorten the identities", n.Run, len(b), noteLimit)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("ring for run %s: %w", n.Run, err)
	}
	if err := s.create.CreateWhole(durable.Escape(n.Run)+"."+id.String(), append(b, '\n')); err != nil {
		return fmt.Errorf("ring for run %s: %w", n.Run, err)
	}
	return nil
}

// Pending implements doorbell.Box.
func (s *box) Pending(ctx context.Context) ([]doorbell.Item, error) {
	names, err := s.dir.Names(0)
	if err != nil {
		return nil, fmt.Errorf("look into the doorbell: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.Sort(names)
	first, _ := slices.BinarySearch(names, s.next)
	names = slices.Concat(names[first:], names[:first])
	s.next = ""
	items := make([]doorbell.Item, 0, len(names))
	for room := int64(lookLimit); len(names) > 0; names = names[1:] {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("look into the doorbell: %w", context.Cause(ctx))
		}
		name := names[0]
		if strings.HasPrefix(name, ".") {
			continue // still being written
		}
		if room <= 0 {
			s.next = cmp.Or(s.next, name)
			items = append(items, doorbell.Item{ID: name, Place: s.place(name), Err: doorbell.ErrLater})
			continue
		}
		n, size, err := s.read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		room -= size
		items = append(items, doorbell.Item{ID: name, Place: s.place(name), Note: n, Err: err})
	}
	return items, nil
}

func (s *box) place(name string) string { return filepath.Join(s.dir.Path(), name) }

// read reads one note, and tells how much of it stays in memory.
func (s *box) read(name string) (n doorbell.Note, size int64, err error) {
	b, in, err := durable.ReadFile(s.dir, name, noteLimit)
	if err == nil {
		n, err = doorbell.Parse(b)
	}
	if err != nil {
		return doorbell.Note{}, 0, fmt.Errorf("note %s cannot be used: %w", s.place(name), err)
	}
	if n.At.IsZero() {
		n.At = stamp.Wall(time.Unix(0, in.MTime), 0)
	}
	return n, int64(len(b)), nil
}

// Remove implements doorbell.Box.
func (s *box) Remove(_ context.Context, id string) error {
	if err := durable.Remove(s.dir, id); err != nil {
		return fmt.Errorf("remove note %s: %w", id, err)
	}
	return nil
}

// Watch implements doorbell.Box. Where the kernel tells of changes it is told at once; else it looks twice a second.
func (s *box) Watch(ctx context.Context, wake chan<- struct{}) error {
	err := watch(ctx, s.dir.Path(), wake)
	if !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return s.poll(ctx, wake, watchSlow)
}

// poll is Watch without the kernel's help: it wakes the receiver whenever something lies there.
func (s *box) poll(ctx context.Context, wake chan<- struct{}, every time.Duration) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		names, err := s.dir.Names(0)
		if err != nil {
			return fmt.Errorf("watch the doorbell: %w", err)
		}
		for _, n := range names {
			if !strings.HasPrefix(n, ".") {
				send(wake)
				break
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func send(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
