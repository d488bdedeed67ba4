package postgres

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
)

// BenchmarkAppend measures what a durable event of 300 bytes costs when 1, 8 or 64 sessions append at once, judged and
// encoded, against the bare statement through pgx on tables of the same shape: it checks the fence, bumps the session's
// head, which is as large as ours, and inserts. The two take turns within one run; what is reported is the median of the
// ratios ("xbare") and their tenth percentile ("xbare-quiet").
func BenchmarkAppend(b *testing.B) {
	text := []byte(`"` + strings.Repeat("x", 180) + `"`) // with the rest of its event some 300 bytes
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			c := fresh(b)
			db := mustOpen(b, c)
			bare := newBare(b, db, c, writers)
			s := db.Sessions()
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
				x := round(func(w, i int) error { return bare.append(b, w, fmt.Sprint(turn, "-", i)) })
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

// bare is the statement that BenchmarkAppend measures against.
type bare struct {
	pool        *pgxpool.Pool
	text        string
	head, event []byte
}

func newBare(b *testing.B, db *DB, c Config, writers int) *bare {
	pc, err := pgxpool.ParseConfig(c.DSN)
	if err != nil {
		b.Fatal(err)
	}
	pc.MaxConns = int32(writers)
	pool, err := pgxpool.NewWithConfig(b.Context(), pc)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	for _, text := range []string{
		`CREATE TABLE {schema}.bare_sessions (session bigint PRIMARY KEY, last bigint NOT NULL, fence bigint NOT NULL, head bytea NOT NULL) WITH (fillfactor = 50)`,
		`CREATE TABLE {schema}.bare_events (session bigint, seq bigint, id text COLLATE "C", event bytea NOT NULL, PRIMARY KEY (session, seq), UNIQUE (session, id))`,
	} {
		if _, err := pool.Exec(b.Context(), db.q.in(text)); err != nil {
			b.Fatal(err)
		}
	}
	for w := range writers {
		if _, err := pool.Exec(b.Context(), db.q.in(`INSERT INTO {schema}.bare_sessions VALUES ($1, 0, 7, '')`), w); err != nil {
			b.Fatal(err)
		}
	}
	return &bare{pool: pool, head: []byte(strings.Repeat("h", 230)), event: []byte(strings.Repeat("x", 300)), text: db.q.in(`
		WITH h AS (UPDATE {schema}.bare_sessions SET last = last + 1, head = $3 WHERE session = $1 AND fence = $2 RETURNING session, last)
		INSERT INTO {schema}.bare_events (session, seq, id, event) SELECT h.session, h.last, $4, $5 FROM h`)}
}

func (x *bare) append(b *testing.B, w int, id string) error {
	tag, err := x.pool.Exec(b.Context(), x.text, w, 7, x.head, id, x.event)
	if err == nil && tag.RowsAffected() != 1 {
		err = errors.New("the bare statement wrote nothing")
	}
	return err
}

// BenchmarkRead reads a session of 100,000 events, by pages.
func BenchmarkRead(b *testing.B) { sessiontest.BenchRead(b, mustOpen(b, fresh(b)).Sessions()) }
