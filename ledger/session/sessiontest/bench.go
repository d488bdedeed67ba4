package sessiontest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Writers are how many append at once in Bench.
var Writers = []int{1, 8, 64}

// Bench measures appends of one event of about 300 bytes, by one writer and by many, each to a session of its own. Put the
// bare writes that the store makes into the same benchmark, so that the ratio and not the machine is measured.
func Bench(b *testing.B, open func(b *testing.B) session.Store) {
	said := json.RawMessage(`"` + strings.Repeat("x", 200) + `"`)
	for _, writers := range Writers {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			s := open(b)
			errs := make(chan error, writers)
			var next atomic.Int64
			b.ReportAllocs()
			b.ResetTimer()
			for w := range writers {
				go func() {
					name := fmt.Sprint("session", w)
					for {
						n := next.Add(1)
						if n > int64(b.N) {
							errs <- nil
							return
						}
						if _, err := put(b.Context(), s, name, session.Say(day(0), fmt.Sprint("event", n), said)); err != nil {
							errs <- err
							return
						}
					}
				}()
			}
			for range writers {
				if err := <-errs; err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchRead fills a session with 100,000 events and reads it from the beginning, by pages ("ns/event").
func BenchRead(b *testing.B, s session.Store) {
	const events, batch = 100_000, 1000
	for i := 0; i < events; i += batch {
		drafts := make([]session.Draft, batch)
		for j := range drafts {
			id := fmt.Sprint(i + j)
			drafts[j] = session.Say(day(0), id, json.RawMessage(`"`+id+`"`))
		}
		if _, err := s.Append(b.Context(), "s", drafts); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		n := 0
		for after := uint64(0); ; {
			page, err := s.Read(b.Context(), "s", after, 0)
			if err != nil {
				b.Fatal(err)
			}
			if len(page) == 0 {
				break
			}
			n += len(page)
			after = page[len(page)-1].Seq
		}
		if n != events {
			b.Fatalf("%d events", n)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/events, "ns/event")
}
