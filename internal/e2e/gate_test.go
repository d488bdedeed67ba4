package e2e

import (
	"context"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// TestBindIsTriedAgain: the disk fails once, at each operation of the bind at the launch gate. The do-over is not lost,
// the replacement runs once, and a power cut right after it began finds that it did.
func TestBindIsTriedAgain(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	base, home := s.onDisk(t)
	for n := 1; ; n++ {
		var armed atomic.Bool
		var count, failed atomic.Int32
		disk := base.Kill()
		var what atomic.Pointer[faultfs.Op]
		tap := faultfs.Tap(disk, func(op faultfs.Op) error {
			// From the launch to the gate the healer only reads, so what is written to the ledger is the bind.
			if !armed.Load() || op.Kind == faultfs.Look || !strings.Contains(op.Path, "/ledger") || int(count.Add(1)) != n {
				return nil
			}
			failed.Add(1)
			what.Store(&op)
			return syscall.EIO
		})
		programs := &countedPrograms{}
		started := make(chan *faultfs.Disk, 2)
		p, err := wire(t.Context(), home, options{settings: s.w.opts.settings, fs: tap,
			programs: meddlePrograms{programs, func() {
				armed.Store(false)
				started <- disk.Boot(faultfs.Survival{})
			}},
			launcher: func(p *parts) restart.Launcher {
				return meddleRunner{p.runs.Launcher(t.Context()), func() { armed.Store(true) }}
			}})
		if err != nil {
			t.Fatal(err)
		}
		var rec ledger.Record
		until(t, "the record to be final", func() bool {
			if _, err := p.healer.Pass(t.Context(), everything); err != nil {
				t.Fatal(err)
			}
			rec, err = p.home.Ledger().Get(t.Context(), s.a.run().Key())
			return err == nil && rec.State.Final()
		})
		if stands := string(rec.State) + " " + rec.Reason; stands != "settled_ok replacement_ok" || programs.starts.Load() != 1 {
			t.Fatalf("with a fault at %v: the record is %s, and %d programs were started", what.Load(), stands, programs.starts.Load())
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
		// What lay on the disk when the program began.
		cut := <-started
		nextBoot(t, cut, home, nil)
		after, err := wire(t.Context(), home, options{settings: s.w.opts.settings, fs: cut, programs: programs})
		if err != nil {
			t.Fatal(err)
		}
		if rec, err := after.home.Ledger().Get(t.Context(), rec.Key); err != nil || rec.State != ledger.Launched {
			t.Errorf("with a fault at %v: after a power cut the record is %s (%v), want launched", what.Load(), rec.State, err)
		}
		if err := after.close(); err != nil {
			t.Error(err)
		}
		if failed.Load() == 0 || t.Failed() {
			t.Logf("%d operations of the bind failed", n-1)
			return
		}
	}
}

// meddlePrograms does something right before a program is started.
type meddlePrograms struct {
	managed.Programs
	before func()
}

func (m meddlePrograms) Run(ctx context.Context, p managed.Program) (managed.End, error) {
	m.before()
	return m.Programs.Run(ctx, p)
}
