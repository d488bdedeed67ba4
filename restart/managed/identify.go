package managed

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness"
)

// identities reads every root at once; a root that cannot be read has an identity that says why.
func (h *Host) identities(ctx context.Context, roots []witness.Root) []witness.Identity {
	out := make([]witness.Identity, len(roots))
	var wg sync.WaitGroup
	for i, r := range roots {
		src := h.cfg.Sources[r.Kind]
		if src == nil {
			out[i] = witness.Identity{Root: r.Name, Kind: r.Kind, Unknown: fmt.Sprintf("no source reads roots of kind %q", r.Kind)}
			continue
		}
		wg.Go(func() {
			id := h.reads.identify(ctx, src, r)
			id.Root, id.Kind, id.At = r.Name, r.Kind, h.cfg.Now()
			out[i] = id
		})
	}
	wg.Wait()
	return out
}

// foundFor is how long a runner believes what the healer found in the roots. Between the two lie a durable write and the
// start of a process. Nothing is decided by the identities at the boot of a replacement, whose end is always told.
const foundFor = 2 * time.Second

// found are the identities at the boot of a replacement. The victims of one update start at one moment, each with a
// runner of its own: what the healer read right before, on this machine, is not read once more by each of them.
func (h *Host) found(ctx context.Context, roots []witness.Root, by []ledger.RootChange) []witness.Identity {
	now := h.cfg.Now()
	out := make([]witness.Identity, len(roots))
	var unread []witness.Root
	var at []int
	for i, r := range roots {
		j := slices.IndexFunc(by, func(c ledger.RootChange) bool { return c.Root == r.Name })
		if j >= 0 && by[j].NowAt.SameBoot(now) && now.Sub(by[j].NowAt) <= foundFor {
			if id, ok := witness.Whole(by[j].Now); ok {
				id.Root, id.Kind, id.At = r.Name, r.Kind, by[j].NowAt
				out[i] = id
				continue
			}
		}
		unread, at = append(unread, r), append(at, i)
	}
	for i, id := range h.identities(ctx, unread) {
		out[at[i]] = id
	}
	return out
}

// reads shares the readings of a root among runs that start or end at the same moment, as the victims of one update do.
// Every caller gets a reading that began after it asked, so that nobody is told of an earlier tree.
type reads struct {
	mu   sync.Mutex
	next map[string]*reading // by what is read; not begun yet
	busy map[string]*reading // under way
}

// reading is one look at a root. done is closed when id is there.
type reading struct {
	id   witness.Identity
	done chan struct{}
}

func (s *reads) identify(ctx context.Context, src witness.Source, r witness.Root) witness.Identity {
	key := fmt.Sprintf("%s\n%q\n%q", r.Place(), r.Modules, r.Bindings)
	s.mu.Lock()
	mine := s.next[key]
	if mine == nil {
		mine = &reading{done: make(chan struct{})}
		if s.next == nil {
			s.next, s.busy = map[string]*reading{}, map[string]*reading{}
		}
		s.next[key] = mine
		before := s.busy[key]
		// The reading belongs to all who join it, so no one caller's context ends it.
		go s.read(context.WithoutCancel(ctx), key, src, r, before, mine)
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.id
	case <-ctx.Done():
		return witness.Identity{Unknown: ctx.Err().Error()}
	}
}

// read waits for the reading under way, begins its own, from when on nobody joins it, and hands it out.
func (s *reads) read(ctx context.Context, key string, src witness.Source, r witness.Root, before, mine *reading) {
	if before != nil {
		<-before.done
	}
	s.mu.Lock()
	delete(s.next, key)
	s.busy[key] = mine
	s.mu.Unlock()
	id, err := src.Identify(ctx, r)
	if err != nil {
		id = witness.Identity{Unknown: err.Error()}
	}
	mine.id = id
	s.mu.Lock()
	if s.busy[key] == mine {
		delete(s.busy, key)
	}
	s.mu.Unlock()
	close(mine.done)
}
