package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"
)

// look is how often watchers look for what other processes wrote. It costs some microseconds.
const look = 200 * time.Millisecond

// watch hands out hints: at once for what this process appends, and after a look for what others do.
type watch struct {
	db *sql.DB

	mu       sync.Mutex
	channels map[chan struct{}]string
	stop     context.CancelFunc // of the goroutine that looks; nil while nobody watches
	closed   bool
	looking  sync.WaitGroup
}

// Watch implements session.Watcher.
func (s *Sessions) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c := make(chan struct{}, 1)
	w := &s.watch
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	w.channels[c] = name
	if w.stop == nil {
		conn, err := w.db.Conn(ctx)
		if err != nil {
			delete(w.channels, c)
			return nil, err
		}
		// Before the caller goes on: what is written from then on must differ from what was seen here.
		seen, err := dataVersion(ctx, conn)
		if err != nil {
			delete(w.channels, c)
			return nil, errors.Join(err, conn.Close())
		}
		lookCtx, stop := context.WithCancel(context.Background())
		w.stop = stop
		w.looking.Go(func() { w.look(lookCtx, conn, seen) })
	}
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.channels, c)
		if len(w.channels) == 0 && w.stop != nil {
			w.stop()
			w.stop = nil
		}
	})
	return c, nil
}

// look hints everybody when the database is another than was seen. The number that it looks at changes with what other
// connections write, so what this process writes is hinted twice at most.
func (w *watch) look(ctx context.Context, conn *sql.Conn, seen int64) {
	defer conn.Close()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		version, err := dataVersion(ctx, conn)
		if ctx.Err() != nil {
			return
		}
		// A look that failed may have missed something.
		if err != nil || version != seen {
			w.tell(nil)
		}
		if err == nil {
			seen = version
		}
	}
}

func dataVersion(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	err = conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&version)
	return version, err
}

// tell hints those who watch one of the sessions; all of them for nil.
func (w *watch) tell(names []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, watched := range w.channels {
		hit := watched == "" || names == nil
		for _, name := range names {
			hit = hit || name == watched
		}
		if !hit {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // one is waiting already
		}
	}
}

func (w *watch) close() {
	w.mu.Lock()
	w.closed = true // who comes from here on would look beyond the end of the database
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.mu.Unlock()
	w.looking.Wait()
}
