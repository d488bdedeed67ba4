package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/policy"
)

// countedPrograms runs nothing and counts how often it was asked to; all ends well.
type countedPrograms struct{ starts atomic.Int32 }

func (p *countedPrograms) Run(context.Context, managed.Program) (managed.End, error) {
	p.starts.Add(1)
	return managed.End{}, nil
}

// load copies a folder of the machine's onto a disk, durably.
func load(t *testing.T, d durable.Dir, from string) {
	t.Helper()
	entries, err := os.ReadDir(from)
	for _, e := range entries {
		if e.IsDir() {
			sub, e1 := d.Sub(e.Name())
			if e1 != nil {
				t.Fatal(e1)
			}
			load(t, sub, filepath.Join(from, e.Name()))
			continue
		}
		b, e1 := os.ReadFile(filepath.Join(from, e.Name()))
		err = errors.Join(err, e1, durable.Replace(d, ".load", e.Name(), b, nil))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// cut is the machine after a power cut: what its disk has, and how often a replacement had been started before.
type cut struct {
	when   string
	disk   *faultfs.Disk
	starts int
	// refused is set when it was no cut: a disk that failed, and works again.
	refused bool
}

// nextBoot makes a disk that of another boot, though this machine goes on: the ledger's index begins with the boot's id,
// and instances of an earlier boot are dead, which their free locks say as well.
func nextBoot(t *testing.T, disk *faultfs.Disk, home string, instances []string) {
	t.Helper()
	root, err := disk.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	records, err1 := root.Sub("ledger")
	lives, err2 := root.Sub("instances")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	if b, _, err := durable.ReadFile(records, ".newest", 1<<20); err == nil {
		b = []byte(strings.ReplaceAll(string(b), host.BootID(), "another boot"))
		if err := durable.Leave(records, ".t", ".newest", b); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range instances {
		if err := durable.Leave(lives, ".t", id, nil); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPowerCutAtEachStep cuts the power before each durable operation of a whole story, from the healer's start until
// the replacement's end is settled and told, the runner's operations included. The next boot finds what was flushed, or
// that and some of the rest by chance; its healer goes on. Healer and runner are in this process; the program is
// a stub that counts its starts, for the cut ends them all.
func TestPowerCutAtEachStep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	disk, home := s.onDisk(t)
	root, err1 := disk.Open(home)
	lives, err2 := root.Sub("instances")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}

	programs := &countedPrograms{}
	cuts := make(chan cut, 1000)
	tap := faultfs.Tap(disk, func(op faultfs.Op) error {
		if op.Kind == faultfs.Look || op.N%stride() != 0 {
			return nil
		}
		starts := int(programs.starts.Load()) // before the look at the disk: what starts in between has its disk ready
		instances, err := lives.Names(0)
		for _, fate := range []faultfs.Survival{{}, {Seed: uint64(op.N)}} {
			found := disk.Boot(fate)
			nextBoot(t, found, home, instances)
			cuts <- cut{strings.ReplaceAll(fmt.Sprintf("before %s, survival %+v", op, fate), home, ""), found, starts, false}
		}
		return err
	})
	p := s.boot(t, home, tap, programs, &clock{})
	s.finish(t, p, func() {})
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	close(cuts)

	var all ends
	t.Run("cuts", func(t *testing.T) {
		for c := range cuts {
			t.Run(c.when, func(t *testing.T) {
				t.Parallel()
				all.add(s.afterCut(t, home, c))
			})
		}
	})
	t.Logf("the cuts ended as %v", all.of)
}

// boot wires a host on a disk, in this process.
func (s *scene) boot(t *testing.T, home string, fs durable.FS, programs managed.Programs, c *clock) *parts {
	t.Helper()
	p, err := s.tryBoot(t, home, fs, programs, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s *scene) tryBoot(t *testing.T, home string, fs durable.FS, programs managed.Programs, c *clock) (*parts, error) {
	return wire(t.Context(), home, options{settings: s.w.opts.settings, now: c.now, fs: fs, programs: programs,
		notifiers: []notify.Notifier{&notifytest.Recorder{}}})
}

// finish lets the healer pass until the one record is final; between passes it gives time its way.
func (s *scene) finish(t *testing.T, p *parts, between func()) (rec ledger.Record) {
	t.Helper()
	until(t, "the record to be final", func() bool {
		res, err := p.healer.Pass(t.Context(), restart.Scope{})
		if err != nil || res.Failed() {
			t.Fatalf("a pass: %+v, %v", res.Outcomes, err)
		}
		p.launcher.(*managed.Launcher).Wait()
		if rec, err = p.home.Ledger().Get(t.Context(), s.a.run().Key()); err != nil {
			t.Fatal(err)
		}
		if !rec.State.Final() {
			between()
		}
		return rec.State.Final()
	})
	return rec
}

// onDisk is a disk with the scene's state folder on it, and the folder's path.
func (s *scene) onDisk(t *testing.T) (disk *faultfs.Disk, home string) {
	t.Helper()
	home = filepath.Join(t.TempDir(), "mulligan")
	if err := os.MkdirAll(filepath.Join(home, "runs"), 0o700); err != nil { // for logs and marks, which are not state
		t.Fatal(err)
	}
	disk = &faultfs.Disk{}
	root, err := disk.Open(home)
	if err != nil {
		t.Fatal(err)
	}
	load(t, root, s.w.home.Dir())
	return disk, home
}

// afterCut goes on after a power cut, or with a disk that works again, and checks what was left.
func (s *scene) afterCut(t *testing.T, home string, c cut) (stands string) {
	t.Helper()
	programs, clock := &countedPrograms{}, &clock{}
	p := s.boot(t, home, c.disk, programs, clock)
	defer p.close()
	rec := s.finish(t, p, func() { clock.forward(2 * time.Minute) })
	stands = string(rec.State) + " " + rec.Reason
	switch starts := c.starts + int(programs.starts.Load()); {
	case rec.Reason == policy.ReplacementOK && starts == 1, rec.Reason == policy.LaunchAborted && starts == 0,
		rec.Reason == policy.ReplacementLost && starts <= 1,
		// A runner that passed the gate and was told that it had not runs nothing, and says so.
		rec.Reason == policy.AlreadyRestarted && c.refused && starts == 0:
	default:
		t.Errorf("%d replacements ran before the cut and %d after it, the record is %s", c.starts, programs.starts.Load(), stands)
	}
	files, err := p.home.Evidence().Get(t.Context(), rec.Key)
	if err != nil || len(files["facts.json"]) == 0 || len(files["failure.txt"]) == 0 {
		t.Errorf("the evidence: %v, %d files", err, len(files))
	}
	for _, bad := range ledger.Check(p.home.Ledger().List(t.Context())) {
		t.Errorf("an impossible record: %s", bad)
	}
	if st, err := p.home.Breaker().State(t.Context()); err != nil || len(st.Slots) == 0 {
		t.Errorf("a launch without a slot: %+v, %v", st, err)
	}
	for range 2 {
		if res, err := p.healer.Pass(t.Context(), restart.Scope{}); err != nil || len(res.Outcomes) != 0 || !res.Next.IsZero() {
			t.Errorf("the next pass has something to do: %+v, %v", res, err)
		}
	}
	if items, err := p.home.Doorbell().Pending(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("%d doorbells are left (%v)", len(items), err)
	}
	return stands
}

// TestDiskFailsAtEachStep lets each durable operation of the same story fail, once or for good. The healer says what it
// could not do or goes on; when it is started again with a disk that works, nothing is lost and nothing comes twice.
func TestDiskFailsAtEachStep(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	base, home := s.onDisk(t)
	for name, hook := range map[string]func(int) faultfs.Hook{
		"for a moment": func(n int) faultfs.Hook { return faultfs.FailAt(n, syscall.EIO) },
		"a full disk":  func(n int) faultfs.Hook { return faultfs.FailFrom(n, faultfs.Short(syscall.ENOSPC)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all ends
			said := 0
			for n := 1; ; n += stride() {
				disk, refuse := base.Kill(), hook(n)
				var failed atomic.Pointer[faultfs.Op]
				tap := faultfs.Tap(disk, func(op faultfs.Op) error {
					err := refuse(op)
					if err != nil {
						failed.CompareAndSwap(nil, &op)
					}
					return err
				})
				programs := &countedPrograms{}
				if s.withFaults(t, home, tap, programs) {
					said++
				}
				op := failed.Load()
				if op == nil {
					t.Logf("%d operations failed, %d times the healer said so; they ended as %v", n-1, said, all.of)
					return
				}
				all.add(s.afterCut(t, home, cut{op.String(), disk, int(programs.starts.Load()), true}))
				if t.Failed() {
					t.Fatalf("after a fault at %s", op)
				}
			}
		})
	}
}

// withFaults is a healer on a disk that fails, for a few passes. It reports whether it said that something went wrong.
func (s *scene) withFaults(t *testing.T, home string, fs durable.FS, programs managed.Programs) (said bool) {
	t.Helper()
	p, err := s.tryBoot(t, home, fs, programs, &clock{})
	if err != nil {
		return true
	}
	for range 4 {
		res, err := p.healer.Pass(t.Context(), restart.Scope{})
		said = said || err != nil || res.Failed()
		p.launcher.(*managed.Launcher).Wait()
	}
	return p.close() != nil || said
}
