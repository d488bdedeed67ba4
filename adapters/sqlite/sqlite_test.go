package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("SQLITE_TEST_APPEND"); path != "" {
		appendForEver(path, os.Getenv("SQLITE_TEST_NAME"))
	}
	os.Exit(m.Run())
}

func clock() stamp.Time { return stamp.Time{Wall: time.Now()} }

func mustOpen(t testing.TB, path string) *DB {
	t.Helper()
	db, err := Open(context.Background(), Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func TestConformance(t *testing.T) {
	t.Parallel()
	again := func(t *testing.T, s session.Store) session.Store {
		return mustOpen(t, s.(*Sessions).db.c.Path).Sessions()
	}
	sessiontest.Run(t, func(t *testing.T) session.Store {
		return mustOpen(t, filepath.Join(t.TempDir(), "m.db")).Sessions()
	}, sessiontest.Sheet{Watches: true, Another: again, Damage: damage, Reopen: func(t *testing.T, s session.Store) session.Store {
		if err := s.(*Sessions).db.Close(); err != nil {
			t.Fatal(err)
		}
		return again(t, s)
	}})
}

// damage spoils the head of a session, over a connection of its own.
func damage(t *testing.T, s session.Store, name string) (mend func()) {
	db, err := sql.Open("sqlite", dsn(s.(*Sessions).db.c, "_txlock=immediate"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	var head []byte
	if err := db.QueryRow("SELECT head FROM sessions WHERE name = ?", name).Scan(&head); err != nil {
		t.Fatal(err)
	}
	set := func(head []byte) {
		if _, err := db.Exec("UPDATE sessions SET head = ? WHERE name = ?", head, name); err != nil {
			t.Error(err)
		}
	}
	set(head[:len(head)-1])
	return func() { set(head) }
}

func say(id string) session.Draft { return session.Say(clock(), id, json.RawMessage(`"`+id+`"`)) }

// appendForEver is a process that appends and prints each event that was acknowledged, until it is killed.
func appendForEver(path, name string) {
	db, err := Open(context.Background(), Config{Path: path})
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

// Four processes begin a database at the same moment, append to one session, and are killed in the midst of it: what each
// was told is there, once, and the numbers have no hole.
func TestProcessesKilledWhileTheyAppend(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	told := make([]string, 4)
	for i := range told {
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), "SQLITE_TEST_APPEND="+path, fmt.Sprint("SQLITE_TEST_NAME=p", i))
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
	s := mustOpen(t, path).Sessions()
	for _, lines := range told {
		for id := range strings.FieldsSeq(lines) {
			if _, ok, err := s.Find(t.Context(), "shared", id); err != nil || !ok {
				t.Errorf("%s was acknowledged and is gone (%v)", id, err)
			}
		}
	}
	seen := map[string]bool{}
	for after := uint64(0); ; {
		page, err := s.Read(t.Context(), "shared", after, 0)
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
}

// A full database refuses, says so, and goes on when there is room.
func TestFull(t *testing.T) {
	t.Parallel()
	db := mustOpen(t, filepath.Join(t.TempDir(), "m.db"))
	s := db.Sessions()
	pragma := func(text string) (n int) {
		t.Helper()
		if err := s.writer.conn.QueryRowContext(t.Context(), text).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	pragma(fmt.Sprint("PRAGMA max_page_count=", pragma("PRAGMA page_count")+8))
	var full error
	told := 0
	for i := 0; full == nil; i++ {
		big := session.Say(clock(), fmt.Sprint(i), json.RawMessage(`"`+strings.Repeat("x", 5000)+`"`))
		if _, full = s.Append(t.Context(), "s", []session.Draft{big}); full == nil {
			told++
		}
	}
	if errors.Is(full, session.ErrOutcomeUnknown) || !strings.Contains(full.Error(), "nothing was written") {
		t.Errorf("a full database says %v", full)
	}
	pragma("PRAGMA max_page_count=100000")
	if r, err := s.Append(t.Context(), "s", []session.Draft{say("after")}); err != nil || r.Outcomes[0].Seq != uint64(told+1) {
		t.Errorf("when there is room again: %+v, %v", r, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	_, err := Open(t.Context(), Config{Busy: -1})
	for _, problem := range []string{"Path", "Busy"} {
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s is not named: %v", problem, err)
		}
	}
	if _, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "none", "m.db")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	var network *NetworkError
	if err := onNetwork("/srv", 0x6969); !errors.As(err, &network) || network.Kind != "NFS" {
		t.Errorf("NFS: %v", err)
	}

	path := filepath.Join(t.TempDir(), "m.db")
	db := mustOpen(t, path)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", path)
	if err == nil {
		_, err = raw.Exec("PRAGMA user_version = 99")
	}
	if err = errors.Join(err, raw.Close()); err != nil {
		t.Fatal(err)
	}
	var newer *SchemaError
	if _, err := Open(t.Context(), Config{Path: path}); !errors.As(err, &newer) || newer.Has != 99 {
		t.Errorf("a newer schema: %v", err)
	}
	if in, err := os.Stat(path); err != nil || in.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v, %v", in.Mode(), err)
	}
	if err := os.WriteFile(path+"x", []byte(strings.Repeat("not a database", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), Config{Path: path + "x"}); err == nil {
		t.Error("a file that is no database was taken")
	}
}

// Names that mean something in a URL, and settings that hold.
func TestOddPathAndSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a b?c#d%20é.db")
	db := mustOpen(t, path)
	if _, err := db.Sessions().Append(t.Context(), "s", []session.Draft{say("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
	for pragma, want := range map[string]string{"journal_mode": "wal", "synchronous": "2"} {
		var got string
		if err := db.Sessions().writer.conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %s, %v", pragma, got, err)
		}
	}
	if _, err := db.read.Exec("DELETE FROM events"); err == nil {
		t.Error("a reading connection wrote")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Sessions().Append(t.Context(), "s", []session.Draft{say("b")}); err == nil {
		t.Error("a closed database took an event")
	}
}

// A watcher in another process hears of what this one appends, and no less of what comes the moment it has begun to watch.
func TestWatchAcrossProcesses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.db")
	here, there := mustOpen(t, path).Sessions(), mustOpen(t, path).Sessions()
	last := uint64(0)
	for range 10 {
		ctx, cancel := context.WithCancel(t.Context())
		hints, err := there.Watch(ctx, "s")
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := here.Append(ctx, "s", []session.Draft{say(fmt.Sprint(last))}); err != nil {
				t.Fatal(err)
			}
			last++
			for heard := uint64(0); heard != last; {
				select {
				case <-hints:
				case <-time.After(30 * time.Second):
					t.Fatal("no hint came")
				}
				h, err := there.Head(ctx, "s")
				if err != nil {
					t.Fatal(err)
				}
				heard = h.Last
			}
		}
		cancel()
	}
}

// A database is closed while many append and watch: what was acknowledged stays, all others are told, and nobody looks on.
func TestCloseAmongMany(t *testing.T) {
	t.Parallel()
	for range 5 {
		path := filepath.Join(t.TempDir(), "m.db")
		db := mustOpen(t, path)
		s := db.Sessions()
		var all sync.WaitGroup
		var begun sync.WaitGroup
		told := make([]int, 8)
		for w := range told {
			begun.Add(1)
			all.Go(func() {
				for {
					_, err := s.Append(context.Background(), fmt.Sprint(w), []session.Draft{say(fmt.Sprint(told[w]))})
					if err != nil {
						if !errors.Is(err, errClosed) {
							t.Error(err)
						}
						return
					}
					if told[w]++; told[w] == 1 {
						begun.Done()
					}
				}
			})
			all.Go(func() {
				for {
					ctx, cancel := context.WithCancel(t.Context())
					_, err := s.Watch(ctx, "")
					cancel()
					if err != nil {
						if !errors.Is(err, errClosed) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		begun.Wait()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if s.watch.stop != nil {
			t.Error("somebody looks on in a closed database")
		}
		all.Wait()
		again := mustOpen(t, path).Sessions()
		for w, n := range told {
			if h, err := again.Head(t.Context(), fmt.Sprint(w)); err != nil || h.Last != uint64(n) {
				t.Errorf("session %d has %d events of %d, %v", w, h.Last, n, err)
			}
		}
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := Open(ctx, Config{Path: filepath.Join(dir, "mulligan.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	receipt, err := db.Sessions().Append(ctx, "s1", []session.Draft{say("hello")})
	fmt.Println(receipt.Outcomes[0].Seq, err)
	// Output: 1 <nil>
}
