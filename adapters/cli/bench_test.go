package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// BenchmarkExec measures what a managed run costs beside the program itself: one registered run with one git root, from
// the shell's view, against git's own look at the same tree and against a run without a root. The contenders alternate
// and the medians are reported: "beyond-ms" is what exec takes more than git and the program together, "boot-ms" what
// the identity at boot takes more than git alone. The goal is a boot of less than 50 ms.
func BenchmarkExec(b *testing.B) {
	git := require.Program(b, "git", "apt-get install git")
	for _, files := range []int{10, 5000} {
		b.Run(fmt.Sprintf("files=%d", files), func(b *testing.B) {
			dir := b.TempDir()
			repo := makeRepo(b, git, dir, files)
			env := append(os.Environ(), "MULLIGAN_HOME="+filepath.Join(dir, "state"))
			timed := func(name string, args ...string) time.Duration {
				c := exec.Command(name, args...)
				c.Env, c.Dir = env, repo
				began := time.Now()
				if out, err := c.CombinedOutput(); err != nil {
					b.Fatalf("%s: %v\n%s", c, err, out)
				}
				return time.Since(began)
			}
			timed("mulligan", "list") // makes the state folder
			var whole, base, beyond, boot []time.Duration
			for b.Loop() {
				g, bare := timed(git, "status", "--porcelain=v2", "--branch"), timed("true")
				without := timed("mulligan", "exec", "--phases", "--name", "bench", "--", "true")
				m := timed("mulligan", "exec", "--phases", "--name", "bench", "--root", "acme=.,modules=acme", "--", "true")
				whole, base, beyond = append(whole, m), append(base, g), append(beyond, m-g-bare)
				boot = append(boot, m-without-g)
			}
			b.ReportMetric(ms(whole), "exec-ms")
			b.ReportMetric(ms(base), "git-ms")
			b.ReportMetric(ms(beyond), "beyond-ms")
			b.ReportMetric(ms(boot), "boot-ms")
		})
	}
}

func ms(d []time.Duration) float64 {
	slices.Sort(d)
	return float64(d[len(d)/2].Microseconds()) / 1000
}

func makeRepo(b *testing.B, git, dir string, files int) string {
	repo := filepath.Join(dir, "repo")
	for i := range files {
		d := filepath.Join(repo, "acme", fmt.Sprintf("p%d", i%100))
		if err := os.MkdirAll(d, 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(d, fmt.Sprintf("m%d.py", i)), []byte("x = 1\n"), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "one"}} {
		c := exec.Command(git, append([]string{"-C", repo}, args...)...)
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("%s: %v\n%s", c, err, out)
		}
	}
	return repo
}
