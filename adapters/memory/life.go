package memory

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Spawn makes another living instance, as if a process had opened the home.
func (h *Home) Spawn() ledger.Instance {
	i := host.Self()
	i.ID = "instance-" + strconv.FormatInt(h.ids.Add(1), 10)
	h.Set(i, ledger.Alive)
	return i
}

// Kill makes an instance dead for everybody.
func (h *Home) Kill(i ledger.Instance) { h.Set(i, ledger.Dead) }

// Set says what is known of an instance from now on.
func (h *Home) Set(i ledger.Instance, l ledger.Liveness) {
	h.mu.life.Lock()
	defer h.mu.life.Unlock()
	h.life[i.ID] = l
}

// As is the view of one instance.
func As(h *Home, self ledger.Instance) ledger.Instances { return instances{h, self} }

type instances struct {
	h    *Home
	self ledger.Instance
}

func (s instances) Self() ledger.Instance { return s.self }

// Liveness implements ledger.Instances: what was said of an instance counts; one that holds no lock of its own is asked
// of the kernel.
func (s instances) Liveness(i ledger.Instance) ledger.Liveness {
	s.h.mu.life.Lock()
	l, ok := s.h.life[i.ID]
	s.h.mu.life.Unlock()
	if ok && i.ID != "" {
		return l
	}
	if i.Unlocked || i.ID == "" && i.PID != 0 {
		return host.Liveness(i)
	}
	return ledger.LifeUnknown
}

// writer is who holds the writer lock.
type writer struct {
	next    int
	holders map[int]holder
	freed   chan struct{} // closed at the next release, nil while nobody waits
}

type holder struct {
	name      string
	exclusive bool
	since     stamp.Time
}

type lock Home

// Exclusive implements journal.Lock.
func (s *lock) Exclusive(ctx context.Context, name string) (func() error, error) {
	for {
		s.mu.writer.Lock()
		if len(s.writer.holders) == 0 {
			defer s.mu.writer.Unlock()
			return s.hold(name, true), nil
		}
		who := s.whom()
		if s.writer.freed == nil {
			s.writer.freed = make(chan struct{})
		}
		freed := s.writer.freed
		s.mu.writer.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, fmt.Errorf("take the writer lock: %w", &journal.HeldError{Holder: who, Err: context.Cause(ctx)})
		}
	}
}

// Shared implements journal.Lock.
func (s *lock) Shared(_ context.Context, name string) (func() error, error) {
	s.mu.writer.Lock()
	defer s.mu.writer.Unlock()
	for _, h := range s.writer.holders {
		if h.exclusive {
			return nil, fmt.Errorf("share the writer lock: %w", &journal.HeldError{Holder: s.whom()})
		}
	}
	return s.hold(name, false), nil
}

// Holder implements journal.Lock.
func (s *lock) Holder(context.Context) (string, bool, error) {
	s.mu.writer.Lock()
	defer s.mu.writer.Unlock()
	if len(s.writer.holders) == 0 {
		return "", false, nil
	}
	return s.whom(), true, nil
}

func (s *lock) hold(name string, exclusive bool) func() error {
	s.writer.next++
	id := s.writer.next
	s.writer.holders[id] = holder{name, exclusive, s.now()}
	return func() error {
		s.mu.writer.Lock()
		defer s.mu.writer.Unlock()
		if _, ok := s.writer.holders[id]; !ok {
			return nil
		}
		delete(s.writer.holders, id)
		if s.writer.freed != nil {
			close(s.writer.freed)
			s.writer.freed = nil
		}
		return nil
	}
}

func (s *lock) whom() string {
	var who []string
	for _, h := range s.writer.holders {
		who = append(who, fmt.Sprintf("%s (pid %d, since %s)", h.name, s.self.PID, h.since.Wall.Local().Format("15:04:05")))
	}
	slices.Sort(who)
	return strings.Join(who, ", ")
}
