package gitcli_test

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// BenchmarkIdentify measures an identity against a bare git status of the same tree, contenders alternating. It reports
// the medians and how much the identity costs beyond git's own time.
func BenchmarkIdentify(b *testing.B) {
	for _, files := range []int{200, 5000} {
		for _, dirty := range []int{0, 20} {
			b.Run(fmt.Sprintf("files=%d/dirty=%d", files, dirty), func(b *testing.B) {
				r := require.NewRepo(b)
				var all []string
				for i := range files {
					all = append(all, fmt.Sprintf("acme/p%d/m%d.py", i%50, i), fmt.Sprintf("x = %d\n", i))
				}
				r.Commit("all", all...)
				for i := range dirty {
					r.Write(all[2*i], "changed\n")
				}
				src, root := newSource(b), rootOf(r)
				var bare, ours []time.Duration
				for b.Loop() {
					bare = append(bare, timed(func() {
						cmd := exec.Command("git", "--no-optional-locks", "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all")
						cmd.Dir = r.Dir
						if _, err := cmd.Output(); err != nil {
							b.Fatal(err)
						}
					}))
					ours = append(ours, timed(func() {
						if id, err := src.Identify(context.Background(), root); err != nil || !id.Known() || len(id.Dirty) != dirty {
							b.Fatal(id, err)
						}
					}))
				}
				base, own := median(bare), median(ours)
				b.ReportMetric(float64(base)/1e6, "ms-git-status")
				b.ReportMetric(float64(own)/1e6, "ms-identity")
				b.ReportMetric(float64(own-base)/1e6, "ms-beyond")
				b.ReportMetric(float64(own)/float64(base), "x-git-status")
			})
		}
	}
}

// BenchmarkGather measures the whole search for witnesses against the bare git questions that it cannot do without:
// what changed between two commits, the old files, and which commits touched them.
func BenchmarkGather(b *testing.B) {
	s := newStory(b)
	s.boots(-30 * time.Minute)
	from := s.repo.Head()
	s.clock(-20 * time.Minute)
	for i := range 20 {
		s.repo.Commit("unrelated", "acme/other.py", fmt.Sprintf("x = %d\n", i))
	}
	s.repo.Commit("drop Frame", "acme/wire.py", withoutFrame)
	s.diesReading(-10 * time.Minute)
	to := s.repo.Head()
	questions := [][]string{
		{"diff-tree", "-r", "-z", "--name-status", from, to, "--", "."},
		{"cat-file", "--batch"},
		{"log", "-z", "--format=%H", to, "^" + from, "--", "acme/wire.py"},
		{"cat-file", "--batch"},
	}
	names := fmt.Sprintf("%s:acme/wire.py\n%s:acme/wire.py\n", from, to)
	var bare, ours []time.Duration
	for b.Loop() {
		bare = append(bare, timed(func() {
			for _, q := range questions {
				cmd := exec.Command("git", q...)
				cmd.Dir = s.repo.Dir
				if q[0] == "cat-file" {
					cmd.Stdin = strings.NewReader(names)
				}
				if _, err := cmd.Output(); err != nil {
					b.Fatal(err)
				}
			}
		}))
		ours = append(ours, timed(func() {
			if f := s.gather(); f.Culprit() == nil || f.Culprit().Commit != to {
				b.Fatal(dump(f))
			}
		}))
	}
	base, own := median(bare), median(ours)
	b.ReportMetric(float64(base)/1e6, "ms-git")
	b.ReportMetric(float64(own)/1e6, "ms-gather")
	b.ReportMetric(float64(own)/float64(base), "x-git")
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
