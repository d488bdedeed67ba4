// Package bench measures the whole way from a death to the relaunched program's first instruction, beside bare code that
// does the same durable writes, the same git reads and the same starts of processes, in the same run. Everything is in its
// benchmarks; what those of adapters/systemd need too is in the package relaunchtest.
//
//	go test -run '^$' -bench . ./internal/bench
//
// Each benchmark alternates engine and bare code and reports the median of the ratios pair by pair, and the ratio of
// the 10th percentiles, which is what is left when the machine is quiet.
package bench
