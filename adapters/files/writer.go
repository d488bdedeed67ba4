package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

const (
	writerName = "writer"
	// holderPrefix begins the names of the notes that holders leave beside the lock, for people to read.
	holderPrefix = "writer."
	holderLimit  = 64 << 10
	// unknownHolder stands for one that left no note.
	unknownHolder = "unknown"
)

// writer is the writer lock: the kernel lock on locks/writer, and a note for each holder beside it. The kernel lock
// alone decides; a note says only whom to show, and one whose instance is dead is nobody's.
type writer struct{ h *Home }

type holderNote struct {
	Schema    int             `json:"schema"`
	Holder    string          `json:"holder"`
	Exclusive bool            `json:"exclusive"`
	Since     stamp.Time      `json:"since"`
	Instance  ledger.Instance `json:"instance"`
}

func (n holderNote) String() string {
	return fmt.Sprintf("%s (pid %d, since %s)", n.Holder, n.Instance.PID, n.Since.Wall.Local().Format("15:04:05"))
}

// Exclusive implements journal.Lock.
func (s *writer) Exclusive(ctx context.Context, holder string) (func() error, error) {
	l, err := s.h.locks.dir.Lock(writerName)
	if err != nil {
		return nil, fmt.Errorf("take the writer lock: %w", err)
	}
	ok, err := l.Try(false)
	if err == nil && !ok {
		err = durable.Await(ctx, l, 50*time.Millisecond)
	}
	if err != nil {
		if !ok && ctx.Err() != nil {
			err = &journal.HeldError{Holder: s.whom(), Err: err}
		}
		_ = l.Close()
		return nil, fmt.Errorf("take the writer lock: %w", err)
	}
	return s.hold(l, holder, true)
}

// Shared implements journal.Lock.
func (s *writer) Shared(_ context.Context, holder string) (func() error, error) {
	l, err := s.h.locks.dir.Lock(writerName)
	if err != nil {
		return nil, fmt.Errorf("share the writer lock: %w", err)
	}
	ok, err := l.Try(true)
	if err != nil || !ok {
		if err == nil {
			err = &journal.HeldError{Holder: s.whom()}
		}
		_ = l.Close()
		return nil, fmt.Errorf("share the writer lock: %w", err)
	}
	return s.hold(l, holder, false)
}

// hold leaves the holder's note. Without one the lock would be held by nobody that can be shown.
func (s *writer) hold(l durable.Lock, holder string, exclusive bool) (func() error, error) {
	name, err := s.leave(holder, exclusive)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("take the writer lock: %w", err), l.Close())
	}
	released := false
	return func() error {
		if released {
			return nil
		}
		released = true
		return errors.Join(s.h.locks.dir.Remove(name), l.Close())
	}, nil
}

func (s *writer) leave(holder string, exclusive bool) (string, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(holderNote{Schema: 1, Holder: holder, Exclusive: exclusive, Since: s.h.now(), Instance: s.h.instances.Self()})
	if err != nil {
		return "", err
	}
	name := holderPrefix + id.String()
	f, err := s.h.locks.dir.Create(name)
	if err != nil {
		return "", err
	}
	_, err = f.Write(append(b, '\n'))
	return name, errors.Join(err, f.Close())
}

// Holder implements journal.Lock. It asks for a shared lock only, so that looking turns no healer away.
func (s *writer) Holder(context.Context) (string, bool, error) {
	l, err := s.h.locks.dir.Lock(writerName)
	if err != nil {
		return "", false, fmt.Errorf("look at the writer lock: %w", err)
	}
	free, err := l.Try(true)
	if e := l.Close(); err == nil {
		err = e
	}
	if err != nil {
		return "", false, fmt.Errorf("look at the writer lock: %w", err)
	}
	who := s.whom()
	if free && who == unknownHolder {
		return "", false, nil
	}
	return who, true, nil
}

// whom names the living holders. Notes of dead ones, whose locks the kernel dropped, are taken away.
func (s *writer) whom() string {
	dir := s.h.locks.dir
	names, err := dir.Names(0)
	if err != nil {
		return unknownHolder
	}
	var who []string
	for _, name := range names {
		if !strings.HasPrefix(name, holderPrefix) {
			continue
		}
		var n holderNote
		b, _, err := durable.ReadFile(dir, name, holderLimit)
		if errors.Is(err, os.ErrNotExist) || json.Unmarshal(b, &n) != nil {
			continue
		}
		if s.h.instances.Liveness(n.Instance) == ledger.Dead {
			_ = dir.Remove(name)
			continue
		}
		who = append(who, n.String())
	}
	if len(who) == 0 {
		return unknownHolder
	}
	sort.Strings(who)
	return strings.Join(who, ", ")
}
