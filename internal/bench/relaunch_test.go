package bench

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/bench/relaunchtest"
)

// TestMain runs the part that this process plays, or the tests.
func TestMain(m *testing.M) {
	if code, played := relaunchtest.Main(); played {
		os.Exit(code)
	}
	code := m.Run()
	if err := relaunchtest.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// BenchmarkRelaunch is P16: from a death to its replacement's first instruction, without a probe. Here and below the
// tree gets a new commit each time, since what is known of one that was seen before is not read again.
func BenchmarkRelaunch(b *testing.B) {
	repo := relaunchtest.Tree(b)
	e := relaunchtest.NewEngine(b, relaunchtest.EngineConfig{Repo: repo, Prober: relaunchtest.Free{}})
	base := relaunchtest.NewBare(b, relaunchtest.BareConfig{Repo: repo})
	compare(b, e, base)
}

// BenchmarkRelaunchProbed is P17: the same with a real probe.
func BenchmarkRelaunchProbed(b *testing.B) {
	interpreter := relaunchtest.Python(b)
	repo := relaunchtest.Tree(b)
	prober, err := process.NewPython(process.PythonConfig{})
	if err != nil {
		b.Fatal(err)
	}
	e := relaunchtest.NewEngine(b, relaunchtest.EngineConfig{Repo: repo, Prober: prober, Interpreter: interpreter})
	base := relaunchtest.NewBare(b, relaunchtest.BareConfig{Repo: repo, Probe: relaunchtest.ProbeCommand(interpreter, repo)})
	compare(b, e, base)
}

func compare(b *testing.B, e *relaunchtest.Engine, base *relaunchtest.Bare) {
	relaunchtest.Compare(b, func() time.Duration {
		return relaunchtest.Back(b, e.Repo, func() ([]string, string) { return e.Start(1) })
	},
		relaunchtest.Contender{Name: "base", Once: func() time.Duration {
			return relaunchtest.Back(b, base.Repo, func() ([]string, string) { return base.First(1) })
		}})
}

// BenchmarkFiveAgents is P18: five agents that one update broke, against one. The measure is the time until the last is
// back.
func BenchmarkFiveAgents(b *testing.B) {
	for _, in := range []struct {
		name   string
		inHost bool
	}{{"host", true}, {"runners", false}} {
		b.Run(in.name, func(b *testing.B) {
			interpreter := relaunchtest.Python(b)
			repo := relaunchtest.Tree(b)
			prober, err := process.NewPython(process.PythonConfig{})
			if err != nil {
				b.Fatal(err)
			}
			e := relaunchtest.NewEngine(b, relaunchtest.EngineConfig{Repo: repo, Prober: prober, Interpreter: interpreter, InHost: in.inHost})
			bare := relaunchtest.NewBare(b, relaunchtest.BareConfig{Repo: repo, Probe: relaunchtest.ProbeCommand(interpreter, repo)})
			of := func(start func(int) ([]string, string), n int) func() time.Duration {
				return func() time.Duration {
					return relaunchtest.Back(b, repo, func() ([]string, string) { return start(n) })
				}
			}
			relaunchtest.Compare(b, of(e.Start, 5),
				relaunchtest.Contender{Name: "base", Once: of(e.Start, 1)},
				relaunchtest.Contender{Name: "bare-five", Once: of(bare.First, 5)},
				relaunchtest.Contender{Name: "bare-one", Once: of(bare.First, 1)})
		})
	}
}
