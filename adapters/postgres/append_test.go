package postgres

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// appendForEver is a process that appends and prints each event that was acknowledged, until it is killed.
func appendForEver(dsn, schema, name string) {
	db, err := Open(context.Background(), Config{DSN: dsn, Schema: schema})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		id := fmt.Sprint(name, "-", i)
		r, err := db.Sessions().Append(context.Background(), "shared", []session.Draft{say(id)})
		if err = errors.Join(err, r.Err()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(id)
	}
}

// wants reads a session through: what was acknowledged is there, nothing twice, and the numbers have no hole.
func wants(t *testing.T, s *Sessions, name string, told []string) {
	t.Helper()
	seen := map[string]bool{}
	for after := uint64(0); ; {
		page, err := s.Read(t.Context(), name, after, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			if e.Seq != after+1 || seen[e.ID] {
				t.Errorf("event %d (%s) after %d", e.Seq, e.ID, after)
			}
			after, seen[e.ID] = e.Seq, true
		}
	}
	for _, id := range told {
		if !seen[id] {
			t.Errorf("%s was acknowledged and is gone", id)
		}
	}
	if h, err := s.Head(t.Context(), name); err != nil || h.Last != uint64(len(seen)) {
		t.Errorf("the head is at %d of %d events, %v", h.Last, len(seen), err)
	}
}

// Four processes begin a schema at the same moment, append to one session, and are killed in the midst of it.
func TestProcessesKilledWhileTheyAppend(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	told := make([]string, 4)
	for i := range told {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "POSTGRES_TEST_APPEND="+c.DSN, "POSTGRES_TEST_SCHEMA="+c.Schema, fmt.Sprint("POSTGRES_TEST_NAME=p", i))
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			// Until it was told of twenty, and then whatever comes before the kill arrives.
			var b strings.Builder
			buf := make([]byte, 256)
			killed := false
			for {
				n, err := out.Read(buf)
				b.Write(buf[:n])
				if !killed && strings.Count(b.String(), "\n") >= 20 {
					killed = true
					_ = cmd.Process.Kill()
				}
				if err != nil {
					break
				}
			}
			_ = cmd.Wait()
			told[i] = b.String()
			if !killed {
				t.Errorf("process %d ended by itself: %s", i, errs.String())
			}
		})
	}
	wg.Wait()
	wants(t, mustOpen(t, c).Sessions(), "shared", strings.Fields(strings.Join(told, "\n")))
}

// The server crashes again and again while sixteen append. Each goes on as its errors tell it to: what is unknown is
// appended again, of what certainly was not written nothing may be there.
func TestServerCrashes(t *testing.T) {
	t.Parallel()
	p := require.NewPostgres(t)
	s := mustOpen(t, Config{DSN: p.URL("postgres")}).Sessions()
	const writers, rounds = 16, 3
	var (
		mu            sync.Mutex
		told          = map[string][]string{}
		maybe         = map[string]bool{} // was unknown at least once
		progress      = make(chan struct{}, 1)
		notWritten    = map[string]string{} // event to session
		stop          = make(chan struct{})
		wg            sync.WaitGroup
		acknowledged  int
		unknown, sure int
	)
	for w := range writers {
		wg.Go(func() {
			name := fmt.Sprint("session-", w%8) // two writers in each
			for i := 0; ; {
				id := fmt.Sprint(w, "-", i)
				r, err := s.Append(context.Background(), name, []session.Draft{say(id)})
				if err == nil {
					err = r.Err()
				}
				mu.Lock()
				switch {
				case err == nil:
					told[name] = append(told[name], id)
					acknowledged++
					i++
				case errors.Is(err, session.ErrOutcomeUnknown):
					unknown++ // the same again
					maybe[id] = true
				case strings.Contains(err.Error(), "nothing was written"):
					sure++
					if !maybe[id] && len(notWritten) < 50 {
						notWritten[id] = name
						i++ // never again, so that it can be looked for
					}
				default:
					t.Errorf("neither unknown nor sure: %v", err)
				}
				mu.Unlock()
				select {
				case <-stop:
					return
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	wait := func(more int) {
		t.Helper()
		mu.Lock()
		goal := acknowledged + more
		mu.Unlock()
		for deadline := time.After(time.Minute); ; {
			select {
			case <-progress:
			case <-deadline:
				t.Fatal("the store did not go on within a minute")
			}
			mu.Lock()
			there := acknowledged >= goal
			mu.Unlock()
			if there {
				return
			}
		}
	}
	met := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return unknown > 0
	}
	// A crash may come while no append is under way: then there is another.
	for round := 0; round < rounds || !met() && round < 4*rounds; round++ {
		wait(200)
		p.Crash(t)
		p.Start(t)
	}
	wait(200)
	close(stop)
	wg.Wait()
	t.Logf("%d acknowledged, %d unknown, %d not written", acknowledged, unknown, sure)
	if unknown == 0 {
		t.Error("no append was under way at any crash")
	}
	for name, ids := range told {
		wants(t, s, name, ids)
	}
	for id, name := range notWritten {
		if _, ok, err := s.Find(t.Context(), name, id); err != nil || ok {
			t.Errorf("%s was not written, it was said, and is there: %v %v", id, ok, err)
		}
	}
}

// until waits for what has to happen.
func until(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !happened(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("within a minute it did not happen that " + what)
		}
	}
}

// hold takes the row of a session, as a process would that was stopped under its lock.
func hold(t *testing.T, db *DB, name string) (release func()) {
	t.Helper()
	tx, err := db.pool.Begin(t.Context())
	if err == nil {
		_, err = tx.Exec(t.Context(), db.q.lock, name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(context.Background()); err != nil && !errors.Is(err, pgx.ErrTxClosed) {
			t.Error(err)
		}
	}
}

// waitsForRow tells whether a statement in the schema waits for a lock.
func waitsForRow(t *testing.T, db *DB) (waiting bool) {
	t.Helper()
	err := db.pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_stat_activity a USING (pid)
		WHERE NOT l.granted AND position($1 IN a.query) > 0)`, db.q.schema).Scan(&waiting)
	return err == nil && waiting
}

// overdue lets the Timeout of what is under way be over: a short one might end before the server was asked.
func overdue(t *testing.T, db *DB) {
	t.Helper()
	s := db.Sessions()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.flights) == 0 {
		t.Error("nothing is under way")
	}
	for f := range s.flights {
		if left := time.Until(f.deadline); left > db.c.Timeout {
			t.Errorf("a write has %v left of %v", left, db.c.Timeout)
		}
		f.deadline = time.Time{}
	}
}

// A session that somebody else has locked waits for its row, and no other does. A context that ends meanwhile has an unknown
// outcome; when the row is free the rest is written.
func TestLockedSession(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	db, other := mustOpen(t, c), mustOpen(t, c)
	s := db.Sessions()
	if _, err := s.Append(t.Context(), "locked", []session.Draft{say("a")}); err != nil {
		t.Fatal(err)
	}
	release := hold(t, other, "locked")
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error, 1)
	go func() {
		_, err := s.Append(ctx, "locked", []session.Draft{say("b")})
		ends <- err
	}()
	until(t, "the server waits for the row", func() bool { return waitsForRow(t, other) })
	waits := make(chan error, 1)
	go func() {
		_, err := s.Append(t.Context(), "locked", []session.Draft{say("c")})
		waits <- err
	}()
	for i := range 20 {
		if _, err := s.Append(t.Context(), "free", []session.Draft{say(fmt.Sprint(i))}); err != nil {
			t.Fatalf("beside a locked session: %v", err)
		}
	}
	cancel()
	if err := <-ends; !errors.Is(err, session.ErrOutcomeUnknown) || !errors.Is(err, context.Canceled) {
		t.Errorf("a context that ended under the write: %v", err)
	}
	release()
	if err := <-waits; err != nil {
		t.Errorf("when the row is free: %v", err)
	}
	wants(t, other.Sessions(), "locked", []string{"a", "c"})
}

// A row that stays locked is given up after the Timeout. The server goes on waiting for it, so nobody knows.
func TestTimeout(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	other := mustOpen(t, c)
	if _, err := other.Sessions().Append(t.Context(), "s", []session.Draft{say("a")}); err != nil {
		t.Fatal(err)
	}
	release := hold(t, other, "s")
	defer release()
	c.Timeout = 20 * time.Second
	db := mustOpen(t, c)
	ends := make(chan error, 1)
	go func() {
		_, err := db.Sessions().Append(t.Context(), "s", []session.Draft{say("b")})
		ends <- err
	}()
	until(t, "the server waits for the row", func() bool { return waitsForRow(t, other) })
	overdue(t, db)
	if err := <-ends; !errors.Is(err, session.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a row that stays locked: %v", err)
	}
}

// A process that knows an old head judges on the new one before it refuses, accepts or repeats anything.
func TestOldHead(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	here, there := mustOpen(t, c).Sessions(), mustOpen(t, c).Sessions()
	put := func(s *Sessions, d session.Draft) session.Outcome {
		t.Helper()
		r, err := s.Append(t.Context(), "s", []session.Draft{d})
		if err != nil {
			t.Fatal(err)
		}
		return r.Outcomes[0]
	}
	put(here, say("a"))
	put(there, session.NewGate(clock(), session.Pause{Interrupt: "q"}))
	answer := session.NewAnswer(clock(), session.Answer{Interrupt: "q", Value: []byte("true")})
	if o := put(here, answer); o.Seq != 3 || o.Repeated {
		t.Errorf("an answer to a question that this process has not seen: %+v", o)
	}
	if o := put(there, answer); o.Seq != 3 || !o.Repeated {
		t.Errorf("the same answer from the other: %+v", o)
	}
	put(here, say("b"))
	if o := put(there, say("b")); o.Seq != 4 || !o.Repeated {
		t.Errorf("what the other wrote, again: %+v", o)
	}
	if o := put(there, say("c").Seen(3)); !errors.Is(o.Err(), session.ErrSuperseded) {
		t.Errorf("a condition that does not hold: %+v", o)
	}
	wants(t, here, "s", []string{"a", "b"})
}

// A watcher elsewhere hears of it by notification, and without that by its looks.
func TestWatchAcrossProcesses(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "&default_query_exec_mode=exec"} {
		c := fresh(t)
		here := mustOpen(t, c).Sessions()
		c.DSN += more
		there := mustOpen(t, c).Sessions()
		if listens := there.watch.listen != nil; listens != (more == "") {
			t.Errorf("%q: it listens: %v", more, listens)
		}
		hints, err := there.Watch(t.Context(), "s")
		if err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			if _, err := here.Append(t.Context(), "s", []session.Draft{say(fmt.Sprint(i))}); err != nil {
				t.Fatal(err)
			}
			for {
				select {
				case <-hints:
				case <-time.After(time.Minute):
					t.Fatal("no hint came")
				}
				if h, err := there.Head(t.Context(), "s"); err != nil {
					t.Fatal(err)
				} else if h.Last == uint64(i+1) {
					break
				}
			}
		}
	}
}

// Notifications alone: without a look, and after the listening connection was taken away.
func TestListens(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	here, there := mustOpen(t, c).Sessions(), mustOpen(t, c)
	w := there.Sessions().watch
	hints := make(chan struct{}, 1)
	w.channels[hints] = "s"
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { w.hear(ctx) })
	defer wg.Wait()
	defer cancel()
	hint := func(what string) {
		t.Helper()
		select {
		case <-hints:
		case <-time.After(time.Minute):
			t.Fatal("no hint came " + what)
		}
	}
	for round := range 2 {
		hint("when the connection was made")
		if _, err := here.Append(t.Context(), "s", []session.Draft{say(fmt.Sprint(round))}); err != nil {
			t.Fatal(err)
		}
		hint("by notification")
		if round == 0 {
			if _, err := there.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query = $1`,
				"LISTEN "+pgx.Identifier{w.topic}.Sanitize()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
