package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/require"
)

// tree is a repository with two commits, between which a name goes away.
func tree(tb testing.TB) *require.Repo {
	tb.Helper()
	r := require.NewRepo(tb)
	put := func(name, text string) {
		path := filepath.Join(r.Dir, "acme", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	commit := func(message string) {
		r.Git("add", "-A")
		r.Git("-c", "user.name=acme", "-c", "user.email=acme@localhost", "commit", "-qm", message)
	}
	put("__init__.py", "")
	put("agent.py", "def run():\n    from acme.wire import Frame\n")
	put("wire.py", "class Frame:\n    pass\n")
	commit("first")
	put("agent.py", "def run():\n    from acme.wire import Packet\n")
	put("wire.py", "class Packet:\n    pass\n")
	commit("second")
	return r
}

// update takes the tree from the first commit to the second, around the start of the first lives.
func update(repo *require.Repo, start func() ([]string, string)) ([]string, string) {
	repo.Git("checkout", "-q", "HEAD~1")
	beats, goFile := start()
	repo.Git("checkout", "-q", "main")
	return beats, goFile
}

// compare alternates two measurements and reports the ratio in two ways: the median over pairs, and of the 10th
// percentiles.
func compare(b *testing.B, ours, base func() time.Duration) {
	b.Helper()
	var as, bs, ratios []float64
	for b.Loop() {
		x, y := ours(), base()
		as, bs = append(as, float64(x)), append(bs, float64(y))
		ratios = append(ratios, float64(x)/float64(y))
	}
	at := func(s []float64, q float64) float64 {
		s = slices.Sorted(slices.Values(s))
		return s[int(q*float64(len(s)-1))]
	}
	b.ReportMetric(at(ratios, 0.5), "x-base")
	b.ReportMetric(at(as, 0.1)/at(bs, 0.1), "x-base-quiet")
	b.ReportMetric(at(as, 0.5)/1e6, "ms")
	b.ReportMetric(at(bs, 0.5)/1e6, "base-ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkRelaunch is P16: from a death to its replacement's first instruction, without a probe. Here and below the
// tree gets a new commit each time, since what is known of one that was seen before is not read again.
func BenchmarkRelaunch(b *testing.B) {
	repo := tree(b)
	e, base := newEngine(b, repo, freeProber{}, "", false), newBare(b, repo, nil)
	compare(b, func() time.Duration {
		fresh(repo)
		return back(b, repo, func() ([]string, string) { return e.start(1) })
	}, func() time.Duration {
		fresh(repo)
		return back(b, repo, base.start)
	})
}

// BenchmarkRelaunchProbed is P17: the same with a real probe.
func BenchmarkRelaunchProbed(b *testing.B) {
	interpreter := python3(b)
	repo := tree(b)
	prober, err := process.NewPython(process.PythonConfig{})
	if err != nil {
		b.Fatal(err)
	}
	e := newEngine(b, repo, prober, interpreter, false)
	base := newBare(b, repo, []string{interpreter, "-c",
		"import sys; sys.path.insert(0, " + quote(repo.Dir) + "); import acme.agent, acme.wire"})
	compare(b, func() time.Duration {
		fresh(repo)
		return back(b, repo, func() ([]string, string) { return e.start(1) })
	}, func() time.Duration {
		fresh(repo)
		return back(b, repo, base.start)
	})
}

// BenchmarkFiveAgents is P18: five agents that one update broke, against one. The measure is the time until the last is
// back.
func BenchmarkFiveAgents(b *testing.B) {
	for _, in := range []struct {
		name   string
		inHost bool
	}{{"host", true}, {"runners", false}} {
		b.Run(in.name, func(b *testing.B) {
			interpreter := python3(b)
			repo := tree(b)
			prober, err := process.NewPython(process.PythonConfig{})
			if err != nil {
				b.Fatal(err)
			}
			e := newEngine(b, repo, prober, interpreter, in.inHost)
			of := func(n int) time.Duration {
				fresh(repo)
				return back(b, repo, func() ([]string, string) { return e.start(n) })
			}
			compare(b, func() time.Duration { return of(5) }, func() time.Duration { return of(1) })
		})
	}
}

// back is the time from the death to the last replacement's first instruction, after an update.
func back(tb testing.TB, repo *require.Repo, start func() ([]string, string)) time.Duration {
	tb.Helper()
	beats, goFile := update(repo, start)
	return slices.Max(gaps(tb, beats, goFile))
}

// fresh gives the second commit another identity, which nobody has seen yet.
func fresh(repo *require.Repo) {
	repo.Git("-c", "user.name=acme", "-c", "user.email=acme@localhost", "commit", "-q", "--amend", "-m", "second, "+uuid.NewString())
}

func python3(tb testing.TB) string {
	tb.Helper()
	require.Program(tb, "python3", "apt-get install python3")
	path, err := exec.LookPath("python3")
	if err != nil {
		tb.Fatal(err)
	}
	out, err := exec.Command(path, "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tb.Fatal(err)
	}
	return string(out[:len(out)-1])
}

func quote(s string) string { return "'" + s + "'" }
