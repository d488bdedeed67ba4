package files_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/ledgertest"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/storm"
)

// TestConformanceOnAPlainFileSystem takes away what not every file system has: unnamed files and the exchange of names.
func TestConformanceOnAPlainFileSystem(t *testing.T) {
	t.Parallel()
	plain := faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.Unnamed || op.Kind == faultfs.Exchange {
			return errors.ErrUnsupported
		}
		return nil
	})
	open := func(t *testing.T) *files.Home {
		h, err := files.Open(files.Config{Dir: filepath.Join(t.TempDir(), "home"), FS: plain})
		must(t, err)
		t.Cleanup(func() { must(t, h.Close()) })
		return h
	}
	ledgertest.Run(t, func(t *testing.T) ledger.Store { return open(t).Ledger() })
	ledgertest.RunRuns(t, func(t *testing.T) run.Store { return open(t).Runs() })
	ledgertest.RunBreaker(t, func(t *testing.T) storm.Store { return open(t).Breaker() })
	ledgertest.RunDoorbell(t, func(t *testing.T) doorbell.Box { return open(t).Doorbell() })
}

// storyUntil is the child's side: it is killed before a numbered operation.
func storyUntil(dir, arg string) error {
	n, err := strconv.Atoi(arg)
	if err != nil {
		return err
	}
	h, err := files.Open(files.Config{Dir: dir, FS: faultfs.Tap(durable.System{}, faultfs.KillAt(n))})
	if err != nil {
		return err
	}
	for _, lineage := range []string{"l1", "l2"} {
		if err := story(h, lineage, func(step string) { fmt.Println(lineage, step) }); err != nil {
			return err
		}
	}
	fmt.Println("the end")
	return h.Close()
}

// slowed is set where not every operation can be tried in reasonable time.
var slowed bool

// TestKilledBeforeEachOperation kills the story before each operation that it makes, and looks at what is left: all that
// was acknowledged is there, nothing is damaged, and the story can be told again beside it.
func TestKilledBeforeEachOperation(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	must(t, err)
	step := 1
	if testing.Short() || slowed {
		step = 5
	}
	for n := 1; ; n += step {
		dir := filepath.Join(t.TempDir(), "home")
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), roleVar+"=story", dirVar+"="+dir, argVar+"="+fmt.Sprint(n))
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		ended := strings.HasSuffix(string(out), "the end\n")
		if !ended && err == nil {
			t.Fatalf("before operation %d: %q", n, out)
		}
		acked := map[string][]string{}
		for line := range strings.Lines(string(out)) {
			lineage, step, _ := strings.Cut(strings.TrimSpace(line), " ")
			acked[lineage] = append(acked[lineage], step)
		}
		h, err := files.Open(files.Config{Dir: dir})
		must(t, err)
		for _, bad := range append(broken(h, "l1", acked["l1"]), broken(h, "l2", acked["l2"])...) {
			t.Errorf("killed before operation %d: %v", n, bad)
		}
		same(t, h)
		for _, p := range ledger.Check(h.Ledger().List(t.Context())) {
			t.Errorf("before operation %d: %s", n, p)
		}
		if err := story(h, "l3", func(string) {}); err != nil {
			t.Errorf("before operation %d, and then again: %v", n, err)
		}
		must(t, h.Close())
		if ended {
			if n < 60 {
				t.Errorf("only %d operations were tried", n)
			}
			return
		}
	}
}
