package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// service is a host with its sessions in a database, which notes its turns.
type service struct {
	t     *testing.T
	dir   string
	home  *files.Home
	db    *sqlite.DB
	s     *sessions.Service
	mu    sync.Mutex
	notes []string
}

func start(t *testing.T, dir string) *service {
	t.Helper()
	v := &service{t: t, dir: dir}
	var err1, err2, err3 error
	v.home, err1 = files.Open(files.Config{Dir: filepath.Join(dir, "home")})
	v.db, err2 = sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "agents.db")})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	v.s, err3 = sessions.New(sessions.Config{Store: v.db.Sessions(), Instances: v.home.Instances()})
	if err3 != nil {
		t.Fatal(err3)
	}
	return v
}

func (v *service) end() {
	v.t.Helper()
	if err := errors.Join(v.s.Close(), v.db.Close(), v.home.Close()); err != nil {
		v.t.Error(err)
	}
}

func (v *service) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notes = append(v.notes, text)
}

func (v *service) noted() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Sorted(slices.Values(v.notes))
}

func (v *service) Workload(session.Status) (string, string) { return "agent", "" }

func (v *service) Turn(ctx context.Context, turn *sessions.Turn, notice *bootnotice.Delivery) error {
	v.note(fmt.Sprint("turn of ", turn.Session(), ", told ", notice != nil))
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

func (v *service) Undeliverable(context.Context, bootnotice.Notice) error { return nil }

func (v *service) coordinator() *boot.Coordinator {
	v.t.Helper()
	c, err := boot.NewCoordinator(v.t.Context(), boot.CoordinatorConfig{Dir: filepath.Join(v.dir, "boot"), Sessions: v.s, Host: v,
		Notice: bootnotice.Config{Wait: -1}, Rescan: 20 * time.Millisecond,
		Unreadable: func(err *session.UnreadableError) {
			v.note("unreadable: " + err.Session + " in " + filepath.Base(err.Place))
		}})
	if err != nil {
		v.t.Fatal(err)
	}
	return c
}

func (v *service) until(want ...string) {
	v.t.Helper()
	v.untilBut(func(string) bool { return false }, want...)
}

// untilBut is until without the notes that may or may not come.
func (v *service) untilBut(may func(note string) bool, want ...string) {
	v.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		got := slices.DeleteFunc(v.noted(), may)
		if slices.Equal(got, want) {
			return
		}
		if time.Now().After(deadline) {
			v.t.Fatalf("within a minute came %q, want %q", got, want)
		}
	}
}

// TestServiceBootsBesideAnUnreadableSession is the whole of it over a real database: three sessions are cut off, the head
// of one is damaged, the service boots and resumes the others, and the third as soon as it is mended.
func TestServiceBootsBesideAnUnreadableSession(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	before := start(t, dir)
	c := before.coordinator()
	for _, name := range []string{"a", "b", "c"} {
		h, err := before.s.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Begin(t.Context(), sessions.Start{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	before.end()

	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "agents.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	head := []byte{}
	if err := db.QueryRow("SELECT head FROM sessions WHERE name = 'b'").Scan(&head); err != nil {
		t.Fatal(err)
	}
	set := func(head []byte) {
		t.Helper()
		if _, err := db.Exec("UPDATE sessions SET head = ? WHERE name = 'b'", head); err != nil {
			t.Fatal(err)
		}
	}
	set([]byte(strings.Repeat("\x00", len(head))))

	after := start(t, dir)
	c = after.coordinator()
	over := make(chan error, 1)
	go func() { over <- c.Run(context.Background()) }()
	after.until("turn of a, told true", "turn of c, told true", "unreadable: b in agents.db, table sessions")
	set(head)
	after.until("turn of a, told true", "turn of b, told true", "turn of c, told true", "unreadable: b in agents.db, table sessions")
	if err := errors.Join(c.Close(), <-over); err != nil {
		t.Error(err)
	}
	after.end()
}
