package files

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Every benchmark here measures one of our operations beside the bare one that it is built on, in turns, so that a busy
// machine hits both alike. x-base is the median over rounds of ours / bare, x-base-quiet compares the tenth percentiles.
// Set TMPDIR to a folder on a real disk, and give rounds: go test -bench . -benchtime 200x
// With MULLIGAN_BENCH_FULL=1 those that need many files take as many as their goal names, which needs minutes.

// many is how many files a benchmark makes: a tenth of the goal's number, unless all of them are asked for.
func many(full int) int {
	if os.Getenv("MULLIGAN_BENCH_FULL") != "" {
		return full
	}
	return full / 10
}

// compare measures both in turns, a number of operations a round.
func compare(b *testing.B, ops int, bare, ours func() error) {
	b.Helper()
	var ratios, bares, ourss []float64
	timed := func(f func() error) float64 {
		start := time.Now()
		for range ops {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		return float64(time.Since(start).Nanoseconds()) / float64(ops)
	}
	for round := 0; b.Loop(); round++ {
		var x, y float64
		if round%2 == 0 {
			x, y = timed(bare), timed(ours)
		} else {
			y, x = timed(ours), timed(bare)
		}
		bares, ourss, ratios = append(bares, x), append(ourss, y), append(ratios, y/x)
	}
	report(b, bares, ourss, ratios)
}

func report(b *testing.B, bares, ourss, ratios []float64) {
	b.ReportMetric(at(ratios, 50), "x-base")
	b.ReportMetric(at(ourss, 10)/at(bares, 10), "x-base-quiet")
	b.ReportMetric(at(bares, 10)/1e3, "us-base-quiet")
	b.ReportMetric(at(ourss, 10)/1e3, "us-ours-quiet")
	b.ReportMetric(at(bares, 50)/1e3, "us-base")
	b.ReportMetric(at(ourss, 50)/1e3, "us-ours")
	b.ReportMetric(0, "ns/op") // of a round of both; it says nothing
}

// at is a percentile.
func at(v []float64, percent int) float64 {
	v = slices.Sorted(slices.Values(v))
	return v[len(v)*percent/100]
}

type bareDir struct {
	path string
	f    *os.File
	n    int
}

func newBare(b *testing.B) *bareDir {
	d := &bareDir{path: b.TempDir()}
	f, err := os.Open(d.path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	d.f = f
	return d
}

// claim is O_EXCL, write, fsync, fsync of the folder.
func (d *bareDir) claim(name string, rec []byte) error {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(rec); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return d.f.Sync()
}

// replace is a temporary file, fsync, rename, fsync of the folder.
func (d *bareDir) replace(name string, rec []byte) error {
	temp := filepath.Join(d.path, "temp")
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(rec); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(d.path, name)); err != nil {
		return err
	}
	return d.f.Sync()
}

func (d *bareDir) next() string { d.n++; return fmt.Sprintf("p__k%08d.json", d.n) }

func benchHome(b *testing.B) *Home {
	b.Helper()
	h, err := Open(Config{Dir: filepath.Join(b.TempDir(), "home")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	return h
}

// typical is a record as a healer leaves it after a claim.
func typical(h *Home, lineage string) ledger.Record {
	facts := ledger.Facts{
		Death: ledger.Death{Run: "0198c1d2-7c00-7000-8000-000000000000", Name: "agent-7", At: h.now(), Booted: h.now(), Phase: "booting", Exit: 1,
			Workspace: "/home/user/work/agent-7", Log: "/home/user/.local/state/host/agent-7.log"},
		Signature: ledger.Signature{Family: "torn_import", Reason: "py_import_name", Exception: "ImportError", Module: "core.wire", Symbol: "SCHEMA", Root: "app",
			Message: "cannot import name 'SCHEMA' from 'core.wire'"},
		Witnesses: []ledger.Witness{{Kind: "boot_identity", Root: "app", From: "9fd8a08", To: "1c2d3e4", Detail: "the tree changed between boot and death"}},
	}
	r, err := ledger.New(ledger.Key{Project: "p", Lineage: lineage}, ledger.Change{Event: ledger.Claim, Now: h.now(), Actor: h.instances.self, Facts: &facts})
	if err != nil {
		panic(err)
	}
	return r
}

// BenchmarkClaim is goal P1: at most 1.10.
func BenchmarkClaim(b *testing.B) {
	h, d := benchHome(b), newBare(b)
	envelope, _, err := sealed(typical(h, "k00000000"))
	if err != nil {
		b.Fatal(err)
	}
	n := 0
	compare(b, 3, func() error { return d.claim(d.next(), envelope) }, func() error {
		n++
		return h.Ledger().Create(b.Context(), typical(h, fmt.Sprintf("k%08d", n)))
	})
}

// BenchmarkRefusal is goal P5: at most 1.0.
func BenchmarkRefusal(b *testing.B) {
	h, d := benchHome(b), newBare(b)
	r := typical(h, "taken")
	if err := errors.Join(h.Ledger().Create(b.Context(), r), d.claim("p__taken.json", []byte("x"))); err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(d.path, "p__taken.json")
	compare(b, 200, func() error {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if !errors.Is(err, os.ErrExist) {
			_ = f.Close()
			return errors.New("won a taken key")
		}
		return nil
	}, func() error {
		if err := h.Ledger().Create(b.Context(), r); !errors.Is(err, ledger.ErrExists) {
			return fmt.Errorf("won a taken key: %w", err)
		}
		return nil
	})
}

// BenchmarkTransition is goal P21: at most 1.0.
func BenchmarkTransition(b *testing.B) {
	h, d := benchHome(b), newBare(b)
	r := typical(h, "k")
	if err := h.Ledger().Create(b.Context(), r); err != nil {
		b.Fatal(err)
	}
	envelope, _, err := sealed(r)
	if err != nil {
		b.Fatal(err)
	}
	compare(b, 3, func() error { return d.replace("p__k.json", envelope) }, func() error {
		_, err := h.Ledger().Update(b.Context(), r.Key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			return ledger.Apply(cur, ledger.Change{Event: ledger.Renew, Now: now, Actor: h.instances.self})
		})
		return err
	})
}

// BenchmarkClaimAfterDeletion is goal P3a: a claim right after many files nearby were deleted costs at most 1.2 of one
// before. The bare claim's own ratio is bare-after.
func BenchmarkClaimAfterDeletion(b *testing.B) {
	const claims = 20
	n := 0
	for b.Loop() {
		h, d := benchHome(b), newBare(b)
		envelope, _, err := sealed(typical(h, "k"))
		if err != nil {
			b.Fatal(err)
		}
		measure := func() (bare, ours []float64) {
			for range claims {
				start := time.Now()
				if err := d.claim(d.next(), envelope); err != nil {
					b.Fatal(err)
				}
				bare = append(bare, float64(time.Since(start)))
				n++
				r := typical(h, fmt.Sprintf("k%08d", n))
				start = time.Now()
				if err := h.Ledger().Create(b.Context(), r); err != nil {
					b.Fatal(err)
				}
				ours = append(ours, float64(time.Since(start)))
			}
			return bare, ours
		}
		tree := b.TempDir()
		for i := range many(50_000) {
			if err := os.WriteFile(filepath.Join(tree, fmt.Sprint(i)), []byte("x"), 0o600); err != nil {
				b.Fatal(err)
			}
		}
		unix.Sync()
		bareBefore, before := measure()
		if err := os.RemoveAll(tree); err != nil {
			b.Fatal(err)
		}
		bareAfter, after := measure()
		b.ReportMetric(after[0]/at(before, 50), "x-first")
		b.ReportMetric(at(after, 50)/at(before, 50), "x-before")
		b.ReportMetric(at(bareAfter, 50)/at(bareBefore, 50), "bare-after")
	}
}

// BenchmarkNewest is goal P20: the newest 50 cost at most 1.3 of the end of one log, however many there are.
func BenchmarkNewest(b *testing.B) {
	for _, n := range []int{1_000, many(100_000)} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			h, d := benchHome(b), newBare(b)
			var log bytes.Buffer
			for i := range n {
				r := typical(h, fmt.Sprintf("k%08d", i))
				envelope, body, err := sealed(r)
				if err == nil {
					err = os.WriteFile(filepath.Join(h.dir, "ledger", fileName(r.Key)+recordSuffix), envelope, 0o600)
				}
				if err != nil {
					b.Fatal(err)
				}
				log.Write(append(body, '\n'))
			}
			path := filepath.Join(d.path, "log")
			if err := os.WriteFile(path, log.Bytes(), 0o600); err != nil {
				b.Fatal(err)
			}
			_ = os.Remove(filepath.Join(h.dir, "ledger", indexName)) // these records were written past it
			if _, err := h.records.Newest(b.Context(), 1); err != nil {
				b.Fatal(err)
			}
			compare(b, 5, func() error { return endOfLog(path, 50) }, func() error {
				rs, err := h.records.Newest(b.Context(), 50)
				if err == nil && len(rs) != 50 {
					err = fmt.Errorf("%d records", len(rs))
				}
				return err
			})
		})
	}
}

// endOfLog reads and decodes the last n lines of a log.
func endOfLog(path string, n int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	for size := int64(tailBlock); ; size *= 2 {
		size = min(size, st.Size())
		b := make([]byte, size)
		if _, err := f.ReadAt(b, st.Size()-size); err != nil {
			return err
		}
		lines := bytes.Split(bytes.TrimSuffix(b, []byte{'\n'}), []byte{'\n'})
		if len(lines) <= n && size < st.Size() {
			continue
		}
		var rs []ledger.Record
		for _, line := range slices.Backward(lines[len(lines)-n:]) {
			var r ledger.Record
			if err := json.Unmarshal(line, &r); err != nil {
				return err
			}
			rs = append(rs, r)
		}
		return nil
	}
}

// BenchmarkWatch is goal P19: from a new file in the doorbell to a healer that runs, at most 1.2 of bare inotify on the
// runtime's poller.
func BenchmarkWatch(b *testing.B) {
	h, d := benchHome(b), newBare(b)
	wake := make(chan struct{}, 1)
	go func() { _ = h.Doorbell().Watch(b.Context(), wake) }()
	<-wake // it stands
	bare := bareWatch(b, d.path)
	n := 0
	ring := func(dir string, woken <-chan struct{}) float64 {
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		start := time.Now()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		<-woken
		took := time.Since(start)
		_ = f.Close()
		time.Sleep(200 * time.Microsecond)
		for { // the closing wakes as well
			select {
			case <-woken:
				continue
			default:
			}
			return float64(took)
		}
	}
	var bares, ourss, ratios []float64
	for b.Loop() {
		x, y := ring(d.path, bare), ring(filepath.Join(h.dir, "doorbell"), wake)
		bares, ourss, ratios = append(bares, x), append(ourss, y), append(ratios, y/x)
	}
	report(b, bares, ourss, ratios)
}

func bareWatch(b *testing.B, dir string) <-chan struct{} {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err == nil {
		_, err = unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_CLOSE_WRITE)
	}
	if err != nil {
		b.Fatal(err)
	}
	f := os.NewFile(uintptr(fd), "inotify")
	b.Cleanup(func() { _ = f.Close() })
	woken := make(chan struct{}, 1)
	go func() {
		for buf := make([]byte, 4096); ; {
			if _, err := f.Read(buf); err != nil {
				return
			}
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}()
	return woken
}

// BenchmarkRing is a doorbell note beside the bare claim, which writes as much.
func BenchmarkRing(b *testing.B) {
	h, d := benchHome(b), newBare(b)
	n := doorbell.Note{Schema: 1, Run: "0198c1d2-7c00-7000-8000-000000000000", At: h.now(), Text: doorbell.Text(strings.Repeat("traceback\n", 200))}
	raw, err := json.Marshal(n)
	if err != nil {
		b.Fatal(err)
	}
	compare(b, 3, func() error { return d.claim(d.next(), raw) }, func() error { return h.Doorbell().Ring(b.Context(), n) })
}

// BenchmarkWorking: what a pass reads of a ledger in which nothing is open costs about the same over 100,000 settled
// records as over 100. The note and the index are there; "fresh" opens the home anew each time, as a command does.
func BenchmarkWorking(b *testing.B) {
	settled := func(n int) *Home {
		h := benchHome(b)
		for i := range n {
			r := typical(h, fmt.Sprintf("k%08d", i))
			r.State, r.Owner = ledger.Declined, nil
			envelope, _, err := sealed(r)
			if err == nil {
				err = os.WriteFile(filepath.Join(h.dir, "ledger", fileName(r.Key)+recordSuffix), envelope, 0o600)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
		return h
	}
	look := func(h *Home) error {
		for r, err := range h.records.Working(b.Context(), "bench", func(ledger.Record) bool { return false }) {
			return errors.Join(err, fmt.Errorf("%s needs work", r.Key))
		}
		return nil
	}
	few, lots := settled(100), settled(many(100_000))
	for _, h := range []*Home{few, lots} {
		if err := look(h); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("again", func(b *testing.B) {
		compare(b, 20, func() error { return look(few) }, func() error { return look(lots) })
	})
	b.Run("fresh", func(b *testing.B) {
		fresh := func(dir string) error {
			h, err := Open(Config{Dir: dir})
			if err != nil {
				return err
			}
			return errors.Join(look(h), h.Close())
		}
		compare(b, 5, func() error { return fresh(few.dir) }, func() error { return fresh(lots.dir) })
	})
	b.Run("every-record", func(b *testing.B) { // what a pass cost before
		compare(b, 1, func() error { return look(lots) }, func() error {
			for _, err := range lots.records.List(b.Context()) {
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
}
