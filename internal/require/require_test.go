package require_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// recorder is a test that remembers how it was ended.
type recorder struct {
	testing.TB
	skipped, failed string
}

func (r *recorder) Helper() {}

func (r *recorder) Skipf(format string, args ...any) {
	r.skipped = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func run(f func(t testing.TB)) *recorder {
	r := &recorder{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r
}

// Not parallel: the environment belongs to the process.
func TestSkipIsAFailureWhereAllIsRequired(t *testing.T) {
	absent := func(t testing.TB) { require.Program(t, "no-such-program", "apt-get install it") }
	useless := func(t testing.TB) { require.Works(t, "apt-get install it", "go", "no-such-command") }
	impossible := func(t testing.TB) { require.Possible(t, "apt-get install it", "flying", fmt.Errorf("no wings")) }
	for name, f := range map[string]func(testing.TB){"absent": absent, "useless": useless, "impossible": impossible} {
		t.Setenv("MULLIGAN_REQUIRE", "")
		if r := run(f); !strings.Contains(r.skipped, "apt-get install it") || r.failed != "" {
			t.Errorf("%s: skipped %q, failed %q; want a skip that says how to get it", name, r.skipped, r.failed)
		}
		t.Setenv("MULLIGAN_REQUIRE", "all")
		if r := run(f); !strings.Contains(r.failed, "apt-get install it") || r.skipped != "" {
			t.Errorf("%s: skipped %q, failed %q; want a failure that says how to get it", name, r.skipped, r.failed)
		}
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if r := run(func(t testing.TB) { require.Installer(t, "bun") }); !strings.Contains(r.failed, ".ci/run packages") {
		t.Errorf("without installers: failed %q; want a failure that says how to get them", r.failed)
	}
	if r := run(func(t testing.TB) { require.Possible(t, "", "walking", nil) }); r.failed != "" || r.skipped != "" {
		t.Errorf("what is possible: skipped %q, failed %q", r.skipped, r.failed)
	}
	if at := require.Program(t, "go", ""); filepath.Base(at) != "go" {
		t.Errorf("program go is at %q", at)
	}
}

func TestRepoIsFixed(t *testing.T) {
	t.Parallel()
	a, b := require.NewRepo(t), require.NewRepo(t)
	for _, r := range []*require.Repo{a, b} {
		r.Clock = r.Clock.AddDate(2000, 0, 0)
		r.Commit("one", "x/y", "z")
	}
	if a.Head() != b.Head() {
		t.Errorf("the same story has the commits %s and %s", a.Head(), b.Head())
	}
	a.Remove("x")
	if _, err := os.Stat(filepath.Join(a.Dir, "x")); !os.IsNotExist(err) {
		t.Errorf("Remove left %v", err)
	}
	if _, err := a.Try("no-such-command"); err == nil {
		t.Error("a git command that fails returned no error")
	}
}
