package files

import (
	"context"
	"fmt"
	"hash/fnv"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// shards is how many lock files there are for records, and as many for runs and for names: enough that two keys rarely
// meet, never one file for each key, and few enough that each soon has its spare file (see durable.Rewrite).
const shards = 16

// locks are the locks of one open home. Each is a gate between the goroutines of this home and a kernel lock between
// homes, of this process or another.
type locks struct {
	dir      durable.Dir
	patience time.Duration

	mu   sync.Mutex
	open map[string]*lock
}

type lock struct {
	gate chan struct{}
	file durable.Lock
}

// shard names the lock of a file name.
func shard(kind, name string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return fmt.Sprintf("%s-%02x", kind, h.Sum32()%shards)
}

// LockHeldError is a lock of the folder that was not to be had for a minute: everybody holds one for a moment only, so
// whoever has it is stopped or hangs. It names the lock and, where the kernel tells, the process.
type LockHeldError = durable.HeldError

// with runs f under a lock. Waiting for it ends with ctx, or with our patience; f is not interrupted.
func (l *locks) with(ctx context.Context, name string, f func() error) error {
	k, err := l.get(name)
	if err != nil {
		return err
	}
	select {
	case k.gate <- struct{}{}:
	default:
		over := time.NewTimer(l.patience)
		defer over.Stop()
		select {
		case k.gate <- struct{}{}:
		case <-over.C:
			return fmt.Errorf("wait for lock %s: %w", name, durable.Held(k.file, l.patience))
		case <-ctx.Done():
			return fmt.Errorf("wait for lock %s: %w", name, context.Cause(ctx))
		}
	}
	defer func() { <-k.gate }()
	if err := durable.Take(ctx, k.file, 5*time.Millisecond, l.patience); err != nil {
		return fmt.Errorf("wait for lock %s: %w", name, err)
	}
	err = f()
	if e := k.file.Unlock(); err == nil {
		err = e
	}
	return err
}

func (l *locks) get(name string) (*lock, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.open[name]; k != nil {
		return k, nil
	}
	f, err := l.dir.Lock(name)
	if err != nil {
		return nil, err
	}
	k := &lock{gate: make(chan struct{}, 1), file: f}
	l.open[name] = k
	return k, nil
}

func (l *locks) close() {
	for _, k := range l.open {
		_ = k.file.Close()
	}
}
