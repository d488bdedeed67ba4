package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
)

// asIs changes nothing.
func asIs(s storm.State, _ stamp.Time) (storm.State, error) { return s, nil }

// TestStoppedProcessIsNamed: a process that is stopped in the middle of a change holds up who wants the same lock for a
// minute and no longer; then it is named, with what to do about it. When it goes on so does everybody.
//
// Seen to fail: without a bound, and with nobody named.
func TestStoppedProcessIsNamed(t *testing.T) {
	t.Parallel()
	dir := home(t).Dir()
	goOn := filepath.Join(t.TempDir(), "go-on")
	p := spawn(t, dir, "stop", goOn)
	p.begin()
	p.expect(t, "changing")
	var is syscall.WaitStatus
	if _, err := syscall.Wait4(p.Process.Pid, &is, syscall.WUNTRACED, nil); err != nil || !is.Stopped() {
		t.Fatalf("it is not stopped: %v, %v", is, err)
	}
	synctest.Test(t, func(t *testing.T) {
		h, err := files.Open(files.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		began := time.Now()
		errs := make(chan error, 2) // of two goroutines of one process, the other one waits for the first
		for range cap(errs) {
			go func() {
				_, err := h.Breaker().UpdateState(t.Context(), asIs)
				errs <- err
			}()
		}
		for range cap(errs) {
			err := <-errs
			if took := time.Since(began); took > time.Minute+time.Second {
				t.Errorf("it was waited for %v", took)
			}
			var held *files.LockHeldError
			if !errors.As(err, &held) || held.Path != dir+"/locks/state" || held.Waited != time.Minute {
				t.Errorf("%v", err)
			}
			for _, says := range []string{"locks/state", fmt.Sprintf("process %d", p.Process.Pid), "is stopped", fmt.Sprintf("kill -CONT %d", p.Process.Pid)} {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("%q is not in: %v", says, err)
				}
			}
		}
		if _, err := h.Ledger().Get(t.Context(), key); err == nil || errors.As(err, new(*files.LockHeldError)) {
			t.Errorf("who only reads is held up: %v", err)
		}
	})
	if err := errors.Join(os.WriteFile(goOn, nil, 0o600), p.Process.Signal(syscall.SIGCONT)); err != nil {
		t.Fatal(err)
	}
	if _, err := openIn(t, dir).Breaker().UpdateState(t.Context(), asIs); err != nil {
		t.Errorf("after it went on: %v", err)
	}
}
