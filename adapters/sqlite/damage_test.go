package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// interrupted is a folder whose service was cut off in the middle of a turn of each of many sessions.
func interrupted(t *testing.T, many int) (dir string, names []string) {
	t.Helper()
	dir = t.TempDir()
	before := start(t, dir)
	c := before.coordinator()
	for i := range many {
		names = append(names, fmt.Sprintf("s%03d-%s", i, strings.Repeat("x", 150)))
		h, err := before.s.Open(t.Context(), names[i])
		if err == nil {
			_, err = h.Begin(t.Context(), sessions.Start{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	before.end()
	return dir, names
}

// wreck overwrites a leaf in the middle of a table or index, which nobody has open.
func wreck(t *testing.T, dir, tree string) {
	t.Helper()
	path := filepath.Join(dir, "agents.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	var page, size int64
	_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	err = errors.Join(err, db.QueryRow("PRAGMA page_size").Scan(&size),
		db.QueryRow("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path LIMIT 1 OFFSET 1", tree).Scan(&page), db.Close())
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(strings.Repeat("\xff", int(size))), (page-1)*size)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func mends(err error) bool {
	return err != nil && strings.Contains(err.Error(), ".recover") && strings.Contains(err.Error(), "backup")
}

// TestServiceBootsBesideADamagedPage: the sessions whose heads lie on a damaged page are told one by one, with what can be
// done, and the service boots and resumes the others.
//
// Seen to fail: with a list that ends at the page.
func TestServiceBootsBesideADamagedPage(t *testing.T) {
	t.Parallel()
	dir, names := interrupted(t, 40)
	wreck(t, dir, "sessions")
	after := start(t, dir)
	var good, lost []string
	for head, err := range session.All(t.Context(), after.db.Sessions().List) {
		var bad *session.UnreadableError
		switch {
		case err == nil:
			good = append(good, head.Session)
		case errors.As(err, &bad) && mends(err):
			lost = append(lost, bad.Session)
		default:
			t.Fatalf("the list: %v", err)
		}
	}
	if len(good) == 0 || len(lost) == 0 || !slices.Equal(slices.Sorted(slices.Values(append(slices.Clone(good), lost...))), names) {
		t.Fatalf("of %d sessions the list has %d, and names %d as unreadable", len(names), len(good), len(lost))
	}
	var bad *session.UnreadableError
	if _, err := after.db.Sessions().Head(t.Context(), lost[0]); !errors.As(err, &bad) || !mends(err) {
		t.Errorf("the head of one that is lost: %v", err)
	}
	if err := after.s.Abort(t.Context(), lost[0], "enough"); !errors.As(err, &bad) || !mends(err) {
		t.Errorf("a change of one that is lost: %v", err)
	}
	// A head that grows may have SQLite divide its page anew with the pages beside it. So what lies next to the damage may be
	// read, and not always changed.
	beside := func(name string) bool {
		at := slices.Index(names, name)
		return slices.ContainsFunc(lost, func(l string) bool { return slices.Index(names, l)-at <= 8 && at-slices.Index(names, l) <= 8 })
	}
	good = slices.DeleteFunc(good, beside)
	if len(good) == 0 {
		t.Fatal("all sessions lie beside the damage")
	}
	// In one transaction with others it fails none of them.
	var all sync.WaitGroup
	for _, name := range append(good, lost...) {
		all.Go(func() {
			err := after.s.Say(t.Context(), name, []byte(`"go on"`))
			if isLost := slices.Contains(lost, name); isLost && !errors.As(err, new(*session.UnreadableError)) || !isLost && err != nil {
				t.Errorf("a change of %s: %v", name[:4], err)
			}
		})
	}
	all.Wait()

	c := after.coordinator()
	over := make(chan error, 1)
	go func() { over <- c.Run(context.Background()) }()
	var want []string
	for _, name := range good {
		want = append(want, "turn of "+name+", told true")
	}
	for _, name := range lost {
		want = append(want, "unreadable: "+name+" in agents.db, table sessions")
	}
	slices.Sort(want)
	after.untilBut(func(note string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return strings.Contains(note, n) && beside(n) && !slices.Contains(lost, n) })
	}, want...)
	if err := errors.Join(c.Close(), <-over); err != nil {
		t.Error(err)
	}
	after.end()
}

// TestDamagedIndex: names that cannot be had from their index are had from the table.
//
// Seen to fail: with names from the index alone.
func TestDamagedIndex(t *testing.T) {
	t.Parallel()
	dir, names := interrupted(t, 40)
	wreck(t, dir, "sqlite_autoindex_sessions_1")
	db, err := sqlite.Open(t.Context(), sqlite.Config{Path: filepath.Join(dir, "agents.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var got []string
	for head, err := range session.All(t.Context(), db.Sessions().List) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, head.Session)
	}
	if !slices.Equal(got, names) {
		t.Errorf("of %d sessions the list has %d", len(names), len(got))
	}
	if _, err := db.Sessions().Head(t.Context(), names[len(names)-1]); !mends(err) {
		t.Errorf("one that cannot be found: %v", err)
	}
}

// TestDamagedEvents: sessions whose events lie on a damaged page fail each for itself, and say what can be done.
//
// Seen to fail: with one transaction that fails for all, and without the advice.
func TestDamagedEvents(t *testing.T) {
	t.Parallel()
	dir, names := interrupted(t, 40)
	wreck(t, dir, "events")
	v := start(t, dir)
	for what, ask := range map[string]func(name string) error{
		"read": func(name string) error {
			_, err := v.db.Sessions().Read(t.Context(), name, 0, 0)
			return err
		},
		"append": func(name string) error { return v.s.Say(t.Context(), name, []byte(`"go on"`)) },
	} {
		var all sync.WaitGroup
		errs := make([]error, len(names))
		for i, name := range names {
			all.Go(func() { errs[i] = ask(name) })
		}
		all.Wait()
		bad := 0
		for i, err := range errs {
			if err != nil {
				bad++
			}
			if err != nil && !mends(err) {
				t.Errorf("%s %s: %v", what, names[i][:4], err)
			}
		}
		if bad == 0 || bad > len(names)/2 {
			t.Errorf("%d of %d cannot be used: %s", bad, len(names), what)
		}
	}
	if heads, err := v.db.Sessions().List(t.Context(), "", 0); err != nil || len(heads) != len(names) {
		t.Errorf("the list has %d of %d: %v", len(heads), len(names), err)
	}
	v.end()
}

// TestNoDatabaseAtAll: a file that is nothing of SQLite's says what can be done, too.
func TestNoDatabaseAtAll(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agents.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), sqlite.Config{Path: path}); !mends(err) {
		t.Errorf("%v", err)
	}
}
