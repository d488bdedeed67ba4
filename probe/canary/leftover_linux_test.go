package canary

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// triesVar is the role of the candidate that a host tries.
const triesVar = "CANARY_TEST_TRIES"

func init() {
	roles["host"] = func() error {
		k, err := New(Config{
			Command: []string{"/proc/self/exe"}, Env: append(bare(os.Getenv(triesVar)), "NOTES="+os.Getenv("NOTES")),
			Within: 10 * time.Minute,
		})
		if err != nil {
			return err
		}
		if r := k.Run(context.Background()); r.Outcome != Passed {
			return fmt.Errorf("%+v", r)
		}
		return nil
	}
}

// TestKilledHostLeavesNothing: the folder of a canary whose host was killed is there no longer than to the next canary, and
// that of a living one stays.
//
// Seen to fail: with a folder that nobody holds, and with one that nobody takes away.
func TestKilledHostLeavesNothing(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	temp, notes := t.TempDir(), t.TempDir()
	host := func(tries string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), self)
		c.Env = append(bare("host"), triesVar+"="+tries, "NOTES="+notes, "TMPDIR="+temp)
		c.Stderr = os.Stderr
		return c
	}
	left := func() []string {
		found, err := filepath.Glob(filepath.Join(temp, "*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	killed := host("hangs")
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFile(t, filepath.Join(notes, "pid"))
	if err := host("healthy").Run(); err != nil {
		t.Fatal(err)
	}
	if found := left(); len(found) != 1 {
		t.Errorf("beside a living canary there are %v", found)
	}
	if err := killed.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = killed.Wait()
	if err := host("healthy").Run(); err != nil {
		t.Fatal(err)
	}
	if found := left(); len(found) != 0 {
		t.Errorf("the killed host's folder is still there: %v", found)
	}
}
