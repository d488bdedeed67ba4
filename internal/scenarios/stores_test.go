package scenarios

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

// kind is a kind of stores that a play runs on.
type kind string

const (
	inMemory kind = "memory"
	onDisk   kind = "files"      // the state folder, on a disk whose power can be cut
	onHost   kind = "real files" // the state folder, on this machine's
)

var kinds = []kind{inMemory, onDisk, onHost}

// storage is where a play's stores lie.
type storage struct {
	kind kind
	home string
	disk *faultfs.Disk
	hook faultfs.Hook // before each operation on the disk, nil for nothing
}

func newStorage(t *testing.T, k kind) *storage {
	s := &storage{kind: k, home: "/home/mulligan"}
	switch k {
	case onDisk:
		s.disk = &faultfs.Disk{}
	case onHost:
		s.home = filepath.Join(t.TempDir(), "mulligan")
	}
	return s
}

// open is nil for memory, which the world has by itself.
func (s *storage) open() func(now func() stamp.Time) (restarttest.Stores, error) {
	if s.kind == inMemory {
		return nil
	}
	fs := s.fs()
	if s.hook != nil {
		fs = faultfs.Tap(fs, s.hook)
	}
	return func(now func() stamp.Time) (restarttest.Stores, error) {
		h, err := files.Open(files.Config{Dir: s.home, Now: now, FS: fs})
		if err != nil {
			return restarttest.Stores{}, err
		}
		return restarttest.Stores{Close: h.Close, Stores: restart.Stores{Ledger: h.Ledger(), Answers: h.Answers(), Instances: h.Instances(),
			Evidence: h.Evidence(), Reports: h.Reports(), Doorbells: h.Doorbell(), Runs: h.Runs(), Storm: h.Breaker(),
			Journal: h.Updates(), Lock: h.Writer()}}, nil
	}
}

func (s *storage) fs() durable.FS {
	if s.disk != nil {
		return s.disk
	}
	return durable.System{}
}

// cut is the storage after a power cut. This machine's own disk and memory lose nothing.
func (s *storage) cut(t *testing.T, fate faultfs.Survival) *storage {
	t.Helper()
	next := *s
	next.hook = nil
	if s.disk == nil {
		return &next
	}
	next.disk = s.disk.Boot(fate)
	// The ledger's index goes by this machine's boot id, which is the same after a cut that is only played.
	d := next.folder(t, "ledger")
	if b, _, err := durable.ReadFile(d, ".newest", 1<<20); err == nil {
		if err := durable.Leave(d, ".t", ".newest", []byte(strings.ReplaceAll(string(b), host.BootID(), "another boot"))); err != nil {
			t.Fatal(err)
		}
	}
	return &next
}

func (s *storage) folder(t *testing.T, name string) durable.Dir {
	t.Helper()
	root, err := s.fs().Open(s.home)
	if err != nil {
		t.Fatal(err)
	}
	d, err := root.Sub(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tear cuts the record of a lineage in half.
func (s *storage) tear(t *testing.T, project, lineage string) {
	t.Helper()
	d, name := s.folder(t, "ledger"), durable.Escape(project, lineage)+".json"
	b, _, err := durable.ReadFile(d, name, 1<<20)
	if err == nil {
		err = durable.Leave(d, ".t", name, b[:len(strings.TrimRight(string(b), " \n"))/2])
	}
	if err != nil {
		t.Fatal(err)
	}
}
