package sqlite

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

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
)

// BenchmarkAppend measures what a durable event of 300 bytes costs when 1, 8 or 64 sessions append at once, judged and
// encoded, against the bare statements with the same pragmas on one connection that they take turns on: check the fence
// and bump the session's head, which is as large as ours, insert, commit. The two alternate within one run; what is
// reported is the median of the ratios ("xbare") and their tenth percentile ("xbare-quiet").
func BenchmarkAppend(b *testing.B) {
	text := []byte(`"` + strings.Repeat("x", 180) + `"`) // with the rest of its event some 300 bytes
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := mustOpen(b, filepath.Join(b.TempDir(), "m.db")).Sessions()
			bare := newBare(b, filepath.Join(b.TempDir(), "bare.db"), writers)
			const each = 6
			turn := 0
			round := func(one func(w, i int) error) time.Duration {
				began := time.Now()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for i := range each {
							if err := one(w, i); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			var ratios []float64
			for b.Loop() {
				turn++
				x := round(func(w, i int) error { return bare.append(w, fmt.Sprint(turn, "-", i)) })
				y := round(func(w, i int) error {
					_, err := s.Append(b.Context(), fmt.Sprint("session-", w), []session.Draft{session.Say(clock(), fmt.Sprint(turn, "-", i), text)})
					return err
				})
				ratios = append(ratios, float64(y)/float64(x))
			}
			slices.Sort(ratios)
			b.ReportMetric(ratios[len(ratios)/2], "xbare")
			b.ReportMetric(ratios[len(ratios)/10], "xbare-quiet")
		})
	}
}

// bare is what BenchmarkAppend measures against.
type bare struct {
	mu                            sync.Mutex
	begin, commit, update, insert *sql.Stmt
	head, event                   []byte
	last                          []int64
}

func newBare(b *testing.B, path string, writers int) *bare {
	db, err := sql.Open("sqlite", dsn(Config{Path: path, Busy: time.Minute}, "_txlock=immediate"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	_, err = conn.ExecContext(ctx, `CREATE TABLE sessions (id INTEGER PRIMARY KEY, last INTEGER NOT NULL, fence INTEGER NOT NULL, head BLOB NOT NULL) STRICT;
		CREATE TABLE events (session INTEGER NOT NULL, seq INTEGER NOT NULL, id TEXT NOT NULL, event BLOB NOT NULL, PRIMARY KEY (session, seq)) STRICT, WITHOUT ROWID;
		CREATE UNIQUE INDEX events_by_id ON events (session, id);`)
	if err != nil {
		b.Fatal(err)
	}
	x := &bare{head: []byte(strings.Repeat("h", 230)), event: []byte(strings.Repeat("x", 300)), last: make([]int64, writers)}
	for to, text := range map[**sql.Stmt]string{
		&x.begin: "BEGIN IMMEDIATE", &x.commit: "COMMIT",
		&x.update: "UPDATE sessions SET last = last + 1, head = ? WHERE id = ? AND fence = ?",
		&x.insert: "INSERT INTO events (session, seq, id, event) VALUES (?, ?, ?, ?)",
	} {
		if *to, err = conn.PrepareContext(ctx, text); err != nil {
			b.Fatal(err)
		}
	}
	for w := range writers {
		if _, err := conn.ExecContext(ctx, "INSERT INTO sessions VALUES (?, 0, 7, x'')", w); err != nil {
			b.Fatal(err)
		}
	}
	return x
}

func (x *bare) append(w int, id string) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, err1 := x.begin.Exec()
	_, err2 := x.update.Exec(x.head, w, 7)
	x.last[w]++
	_, err3 := x.insert.Exec(w, x.last[w], id, x.event)
	_, err4 := x.commit.Exec()
	return errors.Join(err1, err2, err3, err4)
}

// BenchmarkRead reads a session of 100,000 events, by pages.
func BenchmarkRead(b *testing.B) {
	sessiontest.BenchRead(b, mustOpen(b, filepath.Join(b.TempDir(), "m.db")).Sessions())
}
