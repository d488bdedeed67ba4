package postgres

import (
	"context"
	"crypto/rand"
	"hash/fnv"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// look is how often watchers look for what other processes wrote, notified or not.
	look = time.Second
	// pause is the time between two notifications of this process. What is written meanwhile shares the next one.
	pause = 50 * time.Millisecond
	// again is when a listening connection that failed is tried again.
	again = 2 * time.Second
	// mostNotice bounds a notification. The server takes 8000 bytes.
	mostNotice = 7000
)

// watch hands out hints: at once for what this process appends; for what others do, when their notification comes or at
// the next look.
type watch struct {
	db     *DB
	listen *pgx.ConnConfig // nil without listening
	// topic is the channel of notifications, one for each schema. self is how we know our own.
	topic, self string

	mu        sync.Mutex
	channels  map[chan struct{}]string
	stop      context.CancelFunc // of the goroutines that look and listen; nil while nobody watches
	pending   map[string]bool    // keys of sessions to notify others of
	notifying bool
	closed    chan struct{}
	running   sync.WaitGroup
}

func newWatch(db *DB, listen *pgx.ConnConfig) *watch {
	return &watch{db: db, listen: listen, topic: "mulligan_" + key(db.c.Schema), self: rand.Text()[:8],
		channels: map[chan struct{}]string{}, pending: map[string]bool{}, closed: make(chan struct{})}
}

// key stands for a name in a notification, which everybody on the server may hear. Two names with one key share hints.
func key(name string) string {
	h := fnv.New64a()
	h.Write([]byte(name))
	return strconv.FormatUint(h.Sum64(), 36)
}

// Watch implements session.Watcher.
func (s *Sessions) Watch(ctx context.Context, name string) (<-chan struct{}, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	w := s.watch
	c := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isClosed() {
		return nil, errClosed
	}
	w.channels[c] = name
	if w.stop == nil {
		running, stop := context.WithCancel(context.Background())
		w.stop = stop
		w.running.Go(func() { w.look(running) })
		if w.listen != nil {
			w.running.Go(func() { w.hear(running) })
		}
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

func (w *watch) isClosed() bool {
	select {
	case <-w.closed:
		return true
	default:
		return false
	}
}

func (w *watch) close() {
	w.mu.Lock()
	if !w.isClosed() {
		close(w.closed)
	}
	if w.stop != nil {
		w.stop()
		w.stop = nil
	}
	w.mu.Unlock()
	w.running.Wait()
}

// tell hints those who watch a session that hit says yes to, and those who watch all.
func (w *watch) tell(hit func(name string) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c, name := range w.channels {
		if name != "" && !hit(name) {
			continue
		}
		select {
		case c <- struct{}{}:
		default: // one is waiting already
		}
	}
}

func everyone(string) bool { return true }

// wrote hints this process's watchers, and sees to it that others are notified.
func (w *watch) wrote(names []string) {
	w.tell(func(watched string) bool {
		for _, name := range names {
			if name == watched {
				return true
			}
		}
		return false
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.pending[key(name)] = true
	}
	if !w.notifying && !w.isClosed() {
		w.notifying = true
		w.running.Go(w.notify)
	}
}

// notify tells other processes what was written, until nothing is left to tell. It is no part of the commit: a notification
// in there would make all commits of the server wait for each other. One that fails is left to the looks.
func (w *watch) notify() {
	for {
		w.mu.Lock()
		if len(w.pending) == 0 {
			w.notifying = false
			w.mu.Unlock()
			return
		}
		var text strings.Builder
		text.WriteString(w.self)
		for k := range w.pending {
			if text.Len() > mostNotice {
				text.Reset()
				text.WriteString(w.self + " *")
				break
			}
			text.WriteString(" " + k)
		}
		clear(w.pending)
		w.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		_, _ = w.db.pool.Exec(ctx, `SELECT pg_notify($1::text, $2::text)`, w.topic, text.String())
		cancel()
		select {
		case <-w.closed:
		case <-time.After(pause):
		}
	}
}

// hear listens on a connection of its own, and makes a new one when it breaks.
func (w *watch) hear(ctx context.Context) {
	for ctx.Err() == nil {
		_ = w.hearOnce(ctx) // the looks go on meanwhile
		select {
		case <-ctx.Done():
		case <-time.After(again):
		}
	}
}

func (w *watch) hearOnce(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, w.listen.Copy())
	if err != nil {
		return err
	}
	defer func() {
		bounded, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(bounded)
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{w.topic}.Sanitize()); err != nil {
		return err
	}
	w.tell(everyone) // something may have been missed
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		parts := strings.Fields(n.Payload)
		if len(parts) == 0 || parts[0] == w.self {
			continue
		}
		keys := map[string]bool{}
		for _, k := range parts[1:] {
			keys[k] = true
		}
		w.tell(func(name string) bool { return keys["*"] || keys[key(name)] })
	}
}

// look looks for sessions that moved on. Who watches all sessions is hinted each time: to look at all costs the same here
// as there.
func (w *watch) look(ctx context.Context) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	seen := map[string]int64{}
	for {
		now, err := w.lasts(ctx)
		if ctx.Err() != nil {
			return
		}
		// A look that failed may have missed something. What is looked at for the first time may have, too.
		w.tell(func(name string) bool {
			last, looked := seen[name]
			return err != nil || !looked || last != now[name]
		})
		if err == nil {
			seen = now
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// lasts is the last sequence of each session that is watched by its name.
func (w *watch) lasts(ctx context.Context) (map[string]int64, error) {
	now := map[string]int64{}
	w.mu.Lock()
	var names []string
	for _, name := range w.channels {
		if name != "" {
			names = append(names, name)
			now[name] = 0
		}
	}
	w.mu.Unlock()
	if len(names) == 0 {
		return now, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	rows, err := w.db.pool.Query(ctx, w.db.q.watched, names)
	if err != nil {
		return nil, err
	}
	var name string
	var last int64
	_, err = pgx.ForEachRow(rows, []any{&name, &last}, func() error {
		now[name] = last
		return nil
	})
	return now, err
}
