package relaunchtest

import (
	"slices"
	"testing"
	"time"
)

// Contender is one way to do the same, and measures it once.
type Contender struct {
	Name string
	Once func() time.Duration
}

// Compare lets ours and the others take turns. For each of the others it reports the ratio in two ways: the median of the
// ratios turn by turn (x-NAME), and the ratio of the 10th percentiles (x-NAME-quiet); and the medians in milliseconds.
func Compare(b *testing.B, ours func() time.Duration, others ...Contender) {
	b.Helper()
	var mine []float64
	theirs := make([][]float64, len(others))
	ratios := make([][]float64, len(others))
	for b.Loop() {
		x := float64(ours())
		mine = append(mine, x)
		for i, o := range others {
			y := float64(o.Once())
			theirs[i], ratios[i] = append(theirs[i], y), append(ratios[i], x/y)
		}
	}
	at := func(s []float64, q float64) float64 {
		s = slices.Sorted(slices.Values(s))
		return s[int(q*float64(len(s)-1))]
	}
	for i, o := range others {
		b.ReportMetric(at(ratios[i], 0.5), "x-"+o.Name)
		b.ReportMetric(at(mine, 0.1)/at(theirs[i], 0.1), "x-"+o.Name+"-quiet")
		b.ReportMetric(at(theirs[i], 0.5)/1e6, o.Name+"-ms")
	}
	b.ReportMetric(at(mine, 0.5)/1e6, "ms")
	b.ReportMetric(0, "ns/op")
}
