package files_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func TestLivenessOfInstances(t *testing.T) {
	t.Parallel()
	h := home(t)
	other, err := files.Open(files.Config{Dir: h.Dir()})
	must(t, err)
	theirs := other.Instances().Self()
	self := h.Instances().Self()
	gone := self // of a process that lives, with an id that nobody has
	gone.ID = uuid.NewString()
	dead := gone
	dead.Start++
	before := gone
	before.Boot = uuid.NewString()
	far := theirs
	far.Host = "elsewhere"
	unlocked := ledger.Instance{ID: "held-1", Unlocked: true, Boot: host.BootID(), PIDNS: host.PIDNamespace(), PID: self.PID, Start: self.Start}
	overUnlocked := unlocked
	overUnlocked.Start++
	for name, c := range map[string]struct {
		i    ledger.Instance
		want ledger.Liveness
	}{
		"oneself":                             {self, ledger.Alive},
		"another home of this process":        {theirs, ledger.Alive},
		"a file that is gone, a living pid":   {gone, ledger.LifeUnknown},
		"a file that is gone, a dead pid":     {dead, ledger.Dead},
		"an earlier boot":                     {before, ledger.Dead},
		"another machine":                     {far, ledger.LifeUnknown},
		"a held program that lives":           {unlocked, ledger.Alive},
		"a held program that ended":           {overUnlocked, ledger.Dead},
		"nobody":                              {ledger.Instance{}, ledger.LifeUnknown},
		"an id that leads out of the folder":  {ledger.Instance{ID: "../state.json"}, ledger.LifeUnknown},
		"an id that names the folder itself ": {ledger.Instance{ID: "."}, ledger.LifeUnknown},
	} {
		if got := h.Instances().Liveness(c.i); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
	must(t, other.Close())
	if got := h.Instances().Liveness(theirs); got != ledger.Dead {
		t.Errorf("a closed home of a living process is %s", got)
	}
}

func TestOldInstancesAreSweptAndLivingOnesAreNot(t *testing.T) {
	t.Parallel()
	h := home(t)
	living := h.Instances().Self()
	other, err := files.Open(files.Config{Dir: h.Dir()})
	must(t, err)
	dead := other.Instances().Self()
	must(t, other.Close())
	unasked, err := files.Open(files.Config{Dir: h.Dir()})
	must(t, err)
	must(t, unasked.Close())
	path := func(i ledger.Instance) string { return filepath.Join(h.Dir(), "instances", i.ID) }
	long := time.Now().Add(-2 * time.Hour)
	must(t, errors.Join(os.Chtimes(path(living), long, long), os.Chtimes(path(dead), long, long)))
	openIn(t, h.Dir())
	if _, err := os.Stat(path(dead)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file of a dead instance stays: %v", err)
	}
	if _, err := os.Stat(path(living)); err != nil {
		t.Errorf("the file of a living instance: %v", err)
	}
	es, err := os.ReadDir(filepath.Join(h.Dir(), "instances"))
	must(t, err)
	if len(es) != 2 {
		t.Errorf("%d instance files, want that of the two open homes", len(es))
	}
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	open := t.TempDir()
	must(t, os.Chmod(open, 0o777))
	for dir, want := range map[string]string{
		file:                       "not a folder",
		filepath.Join(file, "sub"): "not a directory",
		"relative":                 "absolute",
		"/proc/mulligan":           "",
		open:                       "everybody",
	} {
		if h, err := files.Open(files.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v, want %q", dir, err, want)
			if err == nil {
				must(t, h.Close())
			}
		}
	}
}

// TestFolderOfSomebodyElse opens a folder that this user may not write, as another user when the tests run as root.
func TestFolderOfSomebodyElse(t *testing.T) {
	t.Parallel()
	const dirOf = "MULLIGAN_FILES_TEST_FOREIGN"
	if dir := os.Getenv(dirOf); dir != "" {
		_, err := files.Open(files.Config{Dir: dir})
		fmt.Println("open:", err)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("needs root to make a folder of somebody else")
	}
	base, err := os.MkdirTemp("", "foreign")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	must(t, errors.Join(os.Chmod(base, 0o755), os.Mkdir(filepath.Join(base, "home"), 0o755)))
	self, err := os.Executable()
	must(t, err)
	bin := filepath.Join(base, "test")
	// By another process: a child of a parallel test would have it open for writing, and nobody may run it then.
	must(t, exec.Command("cp", self, bin).Run())
	must(t, os.Chmod(bin, 0o755))
	cmd := exec.Command(bin, "-test.run=^TestFolderOfSomebodyElse$", "-test.v")
	cmd.Dir = base
	cmd.Env = append(os.Environ(), dirOf+"="+filepath.Join(base, "home"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "cannot be written by this user") {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestFolderOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root to give a folder away")
	}
	dir := filepath.Join(t.TempDir(), "home")
	must(t, errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, 65534, 65534)))
	if _, err := files.Open(files.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "another user") {
		t.Errorf("root opens a folder of nobody: %v", err)
	}
}

func TestClosedHome(t *testing.T) {
	t.Parallel()
	h, err := files.Open(files.Config{Dir: filepath.Join(t.TempDir(), "home")})
	must(t, err)
	self := h.Instances().Self()
	must(t, errors.Join(h.Close(), h.Close()))
	if err := h.Ledger().Create(t.Context(), record(t, key, self)); err == nil {
		t.Error("a closed home takes a claim")
	}
}

func TestDefaultDir(t *testing.T) {
	for _, c := range []struct{ home, xdg, user, want string }{
		{"/m", "/x", "/u", "/m"}, {"", "/x", "/u", "/x/mulligan"}, {"", "", "/u", "/u/.local/state/mulligan"},
		{"m", "/x", "/u", "error"}, {"", "x", "/u", "error"}, {"", "", "", "error"},
	} {
		t.Setenv(files.EnvHome, c.home)
		t.Setenv("XDG_STATE_HOME", c.xdg)
		t.Setenv("HOME", c.user)
		got, err := files.DefaultDir()
		if err != nil {
			got = "error"
		}
		if got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestWaitingForARecordEndsWithTheContext(t *testing.T) {
	t.Parallel()
	h, _ := claimed(t)
	other := openIn(t, h.Dir())
	for name, waiter := range map[string]*files.Home{"the same home": h, "another home": other} {
		ctx, end := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := h.Ledger().Update(t.Context(), key, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
			_, err := waiter.Ledger().Update(ctx, key, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) { return cur, nil })
			return cur, err
		})
		end()
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTenThousandNotes(t *testing.T) {
	t.Parallel()
	h := home(t)
	const n = 10_000
	for i := range n {
		write(t, filepath.Join(h.Dir(), "doorbell", fmt.Sprint(i)), []byte(fmt.Sprintf(`{"schema":1,"run":"r%d"}`, i)))
	}
	items, err := h.Doorbell().Pending(t.Context())
	must(t, err)
	seen := map[string]bool{}
	for _, i := range items {
		if i.Err != nil {
			t.Fatal(i.Err)
		}
		seen[i.Note.Run] = true
	}
	if len(seen) != n {
		t.Errorf("%d notes of %d", len(seen), n)
	}
	must(t, h.Doorbell().Ring(t.Context(), doorbell.Note{Run: "one more"}))
}
