package framelog

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// BenchmarkAppend measures what one event of 300 bytes costs when 1, 8 or 64 writers append at once, against the bare way
// with a file for each of them: append and fdatasync. The two take turns within one run; what is reported is the ratio
// of their medians ("xbare").
func BenchmarkAppend(b *testing.B) {
	event := make([]byte, 300)
	for i := range event {
		event[i] = byte(i)
	}
	for _, writers := range []int{1, 8, 64} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			d, err := durable.System{}.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			l := mustOpen(b, Config{Dir: d, Name: "events"})
			var files []durable.File
			for i := range writers {
				f, err := d.Append(fmt.Sprint("bare", i))
				if err != nil {
					b.Fatal(err)
				}
				files = append(files, f)
			}
			const each = 6
			round := func(one func(w int) error) time.Duration {
				began := time.Now()
				var wg sync.WaitGroup
				for w := range writers {
					wg.Go(func() {
						for range each {
							if err := one(w); err != nil {
								b.Error(err)
							}
						}
					})
				}
				wg.Wait()
				return time.Since(began)
			}
			bare := func(w int) error {
				if _, err := files[w].Write(event); err != nil {
					return err
				}
				return files[w].Datasync()
			}
			ours := func(int) error {
				_, ticket, err := l.Add(event)
				if err == nil {
					err = l.Wait(b.Context(), ticket)
				}
				return err
			}
			var ratios, times []time.Duration
			for b.Loop() {
				x, y := round(bare), round(ours)
				ratios = append(ratios, time.Duration(float64(time.Second)*float64(y)/float64(x)))
				times = append(times, y/time.Duration(writers*each))
			}
			b.ReportMetric(median(ratios).Seconds(), "xbare")
			b.ReportMetric(float64(median(times).Nanoseconds()), "ns/event")
		})
	}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
