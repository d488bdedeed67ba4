package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// mount is a small file system of the test's own, and how to make it read-only while nothing is open on it.
func mount(t *testing.T) (dir string, readOnly func()) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV
	err = unix.Mount("mulligan-test", dir, "tmpfs", flags, "size=16m,mode=0700")
	require.Possible(t, "run the tests as root, outside a container that forbids it", "mounting a tmpfs", err)
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, func() {
		t.Helper()
		if err := unix.Mount("mulligan-test", dir, "tmpfs", flags|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
	}
}

// fill takes all room but some pages. It returns how to give it back.
func fill(t *testing.T, dir string, pages int) (empty func()) {
	t.Helper()
	path := filepath.Join(dir, "fill")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	size := int64(0)
	page := make([]byte, 4096)
	for {
		n, err := f.Write(page)
		size += int64(n)
		if errors.Is(err, unix.ENOSPC) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Truncate(max(0, size-int64(pages)*4096)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFullDisk: the state folder's disk has room for none, one, two ... pages, so that it is full at every write in turn.
// The healer says so or goes on; nothing is started without evidence; once there is room again the death is put back, or its
// end is known, and never is it started twice.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	dir, _ := mount(t)
	_, err := tryFull(t, dir)
	if err == nil || !strings.Contains(err.Error(), "make room") {
		t.Errorf("a new state folder on a full disk: %v", err)
	}
	said, whole := 0, 0
	for pages := 0; whole < 2; pages += stride() {
		home := filepath.Join(dir, "mulligan")
		if err := os.CopyFS(home, os.DirFS(s.w.home.Dir())); err != nil {
			t.Fatal(err)
		}
		empty := fill(t, dir, pages)
		programs := &countedPrograms{}
		spoke := s.withFaults(t, home, durable.System{}, programs)
		empty()
		if spoke {
			said++
		} else {
			whole++
		}
		s.afterFull(t, home, programs)
		if t.Failed() {
			t.Fatalf("with room for %d pages", pages)
		}
		if err := os.RemoveAll(home); err != nil {
			t.Fatal(err)
		}
	}
	if said == 0 {
		t.Error("the story is wrong: the disk was never full")
	}
	t.Logf("the disk was full %d times", said)
}

// tryFull opens a new state folder with room for its folders alone.
func tryFull(t *testing.T, dir string) (h *files.Home, err error) {
	t.Helper()
	home := filepath.Join(dir, "another")
	if h, err = files.Open(files.Config{Dir: home}); err == nil {
		err = h.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer fill(t, dir, 0)()
	return files.Open(files.Config{Dir: home})
}

// afterFull goes on when there is room again.
func (s *scene) afterFull(t *testing.T, home string, programs *countedPrograms) {
	t.Helper()
	clock := &clock{}
	p := s.boot(t, home, durable.System{}, programs, clock)
	defer p.close()
	rec := s.finish(t, p, func() { clock.forward(patience) })
	switch starts := programs.starts.Load(); {
	case rec.Reason == policy.ReplacementOK && starts == 1,
		(rec.Reason == policy.LaunchAborted || rec.Reason == policy.AlreadyRestarted) && starts == 0,
		rec.Reason == policy.ReplacementLost && starts <= 1:
	default:
		t.Errorf("%d replacements ran, the record is %s %s", starts, rec.State, rec.Reason)
	}
	if files, err := p.home.Evidence().Get(t.Context(), rec.Key); err != nil || len(files["failure.txt"]) == 0 {
		t.Errorf("the evidence: %v, %d files", err, len(files))
	}
	for _, bad := range ledger.Check(p.home.Ledger().List(t.Context())) {
		t.Errorf("an impossible record: %s", bad)
	}
	if items, err := p.home.Doorbell().Pending(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("%d doorbells are left (%v)", len(items), err)
	}
}

// TestReadOnlyHome: a state folder that cannot be written is refused, with what to do about it.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	dir, readOnly := mount(t)
	home := filepath.Join(dir, "mulligan")
	h, err := files.Open(files.Config{Dir: home})
	if err == nil {
		err = h.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	readOnly()
	for _, at := range []string{home, filepath.Join(dir, "another")} {
		h, err := files.Open(files.Config{Dir: at})
		if err == nil {
			h.Close()
			t.Fatalf("%s was opened", at)
		}
		if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), "choose another state folder") {
			t.Errorf("%s: %v, want what to do", at, err)
		}
	}
}

// TestDiskBecomesReadOnly: the passes of a healer whose disk becomes read-only say so and start nothing; when it can be
// written again nothing was lost.
func TestDiskBecomesReadOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	var readOnly atomic.Bool
	fs := faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
		if readOnly.Load() && op.Kind != faultfs.Look {
			return unix.EROFS
		}
		return nil
	})
	programs := &countedPrograms{}
	p := s.boot(t, s.w.home.Dir(), fs, programs, &clock{})
	defer p.close()
	readOnly.Store(true)
	for range 3 {
		res, err := p.healer.Pass(t.Context(), restart.Scope{})
		if !strings.Contains(fmt.Sprint(err, res.Outcomes), "read-only file system") {
			t.Errorf("a pass says %+v, %v", res.Outcomes, err)
		}
	}
	if programs.starts.Load() != 0 || s.w.bells() != 1 {
		t.Errorf("%d replacements were started, %d doorbells lie there", programs.starts.Load(), s.w.bells())
	}
	readOnly.Store(false)
	rec := s.finish(t, p, func() {})
	if rec.Reason != policy.ReplacementOK || programs.starts.Load() != 1 {
		t.Errorf("%d replacements ran, the record is %s %s", programs.starts.Load(), rec.State, rec.Reason)
	}
}

// TestHomeIsASymlink: it is refused, whoever put it there, and what it leads to is left alone.
func TestHomeIsASymlink(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "ledger", "doorbell", "episodes", "evidence", "runs", "instances", "locks", "runs/names"} {
		home := filepath.Join(dir, "home-"+strings.ReplaceAll(name, "/", "-"))
		link := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(link), 0o700), os.Symlink(elsewhere, link)); err != nil {
			t.Fatal(err)
		}
		h, err := files.Open(files.Config{Dir: home})
		if err == nil {
			h.Close()
			t.Errorf("a home whose %q is a symlink was opened", name)
		} else if !strings.Contains(err.Error(), "a symlink or not a folder; it is not followed: use the real path") || !strings.Contains(err.Error(), link) {
			t.Errorf("%q: %v", name, err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) != 0 {
		t.Errorf("%d files were left there, %v", len(left), err)
	}
}
