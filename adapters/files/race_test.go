package files_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// racer is the child's side of BenchmarkRace: it claims each key that it is told, and answers.
func racer(h *files.Home, in io.Reader) error {
	bare := os.Getenv(argVar)
	self := h.Instances().Self()
	var dir *os.File
	if bare != "" {
		d, err := os.Open(bare)
		if err != nil {
			return err
		}
		defer d.Close()
		dir = d
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		r, err := ledger.New(ledger.Key{Project: "race", Lineage: lines.Text()},
			ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: self})
		if err != nil {
			return err
		}
		if dir != nil {
			err = bareClaim(dir, lines.Text(), []byte(fmt.Sprintf("%4096v", r)))
		} else {
			err = h.Ledger().Create(context.Background(), r)
		}
		if err != nil && !errors.Is(err, ledger.ErrExists) && !errors.Is(err, os.ErrExist) {
			return err
		}
		fmt.Println(err == nil)
	}
	return nil
}

func bareClaim(dir *os.File, name string, rec []byte) error {
	f, err := os.OpenFile(filepath.Join(dir.Name(), name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(rec); err != nil {
		return err
	}
	return errors.Join(f.Sync(), dir.Sync())
}

// BenchmarkRace is goal P2: eight processes race for each key, until all have their answer; at most 1.15 of the bare
// O_EXCL claim.
func BenchmarkRace(b *testing.B) {
	const racers = 8
	team := func(bare string) func(key string) float64 {
		dir := filepath.Join(b.TempDir(), "home")
		var ins []io.Writer
		var outs []*bufio.Scanner
		for range racers {
			self, err := os.Executable()
			must(b, err)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), roleVar+"=race", dirVar+"="+dir, argVar+"="+bare)
			cmd.Stderr = os.Stderr
			in, err := cmd.StdinPipe()
			must(b, err)
			out, err := cmd.StdoutPipe()
			must(b, err)
			must(b, cmd.Start())
			b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
			lines := bufio.NewScanner(out)
			lines.Scan() // ready
			ins, outs = append(ins, in), append(outs, lines)
		}
		return func(key string) float64 {
			start := time.Now()
			for _, in := range ins {
				_, err := fmt.Fprintln(in, key)
				must(b, err)
			}
			var answers []string
			for _, out := range outs {
				out.Scan()
				answers = append(answers, out.Text())
			}
			took := time.Since(start)
			if n := strings.Count(strings.Join(answers, " "), "true"); n != 1 {
				b.Fatalf("%d won %s", n, key)
			}
			return float64(took)
		}
	}
	bare, ours := team(b.TempDir()), team("")
	var bares, ourss, ratios []float64
	for round := 0; b.Loop(); round++ {
		var x, y float64
		key := fmt.Sprintf("k%08d", round)
		if round%2 == 0 {
			x, y = bare(key), ours(key)
		} else {
			y, x = ours(key), bare(key)
		}
		bares, ourss, ratios = append(bares, x), append(ourss, y), append(ratios, y/x)
	}
	at := func(v []float64, percent int) float64 {
		v = slices.Sorted(slices.Values(v))
		return v[len(v)*percent/100]
	}
	b.ReportMetric(at(ratios, 50), "x-base")
	b.ReportMetric(at(ourss, 10)/at(bares, 10), "x-base-quiet")
	b.ReportMetric(at(bares, 50)/1e3, "us-base")
	b.ReportMetric(at(ourss, 50)/1e3, "us-ours")
	b.ReportMetric(0, "ns/op") // of a round of both; it says nothing
}
