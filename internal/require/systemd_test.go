package require

import "testing"

func TestMetricsOfABenchmark(t *testing.T) {
	t.Parallel()
	got := benchmarked("goos: linux\nBenchmarkX-2   \t 3\t  0.5 ms\t 1.25 x-base\nPASS\n")
	if len(got) != 2 || got["ms"] != 0.5 || got["x-base"] != 1.25 {
		t.Errorf("%v", got)
	}
	if got := benchmarked("--- FAIL: BenchmarkX\nBenchmarkY\n"); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
