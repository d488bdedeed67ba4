package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// EnvHome is the environment variable that names the state folder.
const EnvHome = "MULLIGAN_HOME"

// Config is how a home is opened.
type Config struct {
	// Dir is the state folder; it is made when it is absent. Empty means DefaultDir.
	Dir string
	// Now is the clock of the stores. Nil means the machine's.
	Now func() stamp.Time
	// FS is the file seam that this module's own tests break things at. Nil means the machine's files.
	FS durable.FS
}

// Home is an open state folder. It is safe for concurrent use, and any number of processes may have the same folder
// open.
type Home struct {
	dir  string
	now  func() stamp.Time
	root durable.Dir
	subs map[string]durable.Dir

	closed    sync.Once
	locks     *locks
	records   *records
	answers   *answers
	instances *instances
	box       *box
	breaker   *breaker
	runs      *runs
	updates   *updates
	writer    *writer
	evidence  *evidence
	reports   *reports
}

// DefaultDir is the state folder when none is configured: $MULLIGAN_HOME, else mulligan in $XDG_STATE_HOME, else
// ~/.local/state/mulligan. Relative values are refused: they would name another folder in each working directory.
func DefaultDir() (string, error) {
	for _, v := range []struct{ name, below string }{{EnvHome, ""}, {"XDG_STATE_HOME", "mulligan"}} {
		dir := os.Getenv(v.name)
		if dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("state folder: $%s is %q, want an absolute path", v.name, dir)
		}
		return filepath.Join(dir, v.below), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("state folder: set $%s to an absolute path: %w", EnvHome, err)
	}
	return filepath.Join(home, ".local", "state", "mulligan"), nil
}

// Open opens a state folder, and makes this process an instance in it until Close. A canary may open one in its own
// folder only: being an instance is a write already.
func Open(c Config) (*Home, error) {
	if c.Dir == "" {
		dir, err := DefaultDir()
		if err != nil {
			return nil, err
		}
		c.Dir = dir
	}
	if err := inside.Refuse(c.Dir); err != nil {
		return nil, fmt.Errorf("open state folder: %w", err)
	}
	if c.FS == nil {
		c.FS = durable.System{}
	}
	if c.Now == nil {
		c.Now = host.Now
	}
	h := &Home{dir: filepath.Clean(c.Dir), now: c.Now, subs: map[string]durable.Dir{}}
	if err := h.open(c.FS); err != nil {
		return nil, errors.Join(fmt.Errorf("open state folder %s: %w", c.Dir, err), h.Close())
	}
	return h, nil
}

func (h *Home) open(seam durable.FS) (err error) {
	if h.root, err = seam.Open(h.dir); err != nil {
		return err
	}
	// What lies there is started as this user.
	if err := durable.Private(h.root); err != nil {
		return err
	}
	for _, name := range []string{"ledger", "doorbell", "episodes", "evidence", "runs", "instances", "locks"} {
		d, err := h.root.Sub(name)
		if err != nil {
			return err
		}
		h.subs[name] = d
		if err := durable.Private(d); err != nil {
			return err
		}
	}
	names, err := h.subs["runs"].Sub("names")
	if err != nil {
		return err
	}
	h.subs["names"] = names
	h.locks = &locks{dir: h.subs["locks"], patience: durable.Patience, open: map[string]*lock{}}
	if h.instances, err = newInstances(h.subs["instances"], h.now); err != nil {
		return advise(err) // the first that is written
	}
	id := h.instances.self.ID
	h.breaker = &breaker{h}
	h.evidence = &evidence{h: h, dir: h.subs["evidence"]}
	h.records = newRecords(h, id)
	h.box = newBox(h.subs["doorbell"], id)
	h.runs = &runs{h: h, dir: h.subs["runs"], names: h.subs["names"], create: durable.NewCreator(h.subs["runs"], id)}
	h.answers = newAnswers(h)
	h.updates = newUpdates(h)
	h.writer = &writer{h}
	// The lock file is there from the beginning, so that a healer that only looks leaves no trace.
	lock, err := h.subs["locks"].Lock(writerName)
	if err != nil {
		return err
	}
	_ = lock.Close()
	h.reports = &reports{h: h, dir: h.subs["episodes"]}
	return nil
}

// advise says what to do about a folder that is there and cannot be written.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.EROFS), errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w: choose another state folder, or make this one writable", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: make room, or choose another state folder", err)
	}
	return err
}

// Dir is the state folder.
func (h *Home) Dir() string { return h.dir }

// Close ends the instance and releases every handle and lock. Nothing may be under way, and nothing can be done with the
// home afterwards; closing it again does nothing.
func (h *Home) Close() (err error) {
	h.closed.Do(func() { err = h.close() })
	return err
}

func (h *Home) close() error {
	if h.records != nil {
		_ = h.records.create.Close()
		h.records.index.close()
	}
	if h.box != nil {
		_ = h.box.create.Close()
	}
	if h.runs != nil {
		_ = h.runs.create.Close()
	}
	if h.locks != nil {
		h.locks.close()
	}
	var err error
	if h.instances != nil {
		err = h.instances.close()
	}
	for _, d := range h.subs {
		_ = d.Close()
	}
	if h.root != nil {
		_ = h.root.Close()
	}
	return err
}

// Ledger is the ledger. It also has the powers ledger.Newest, ledger.Working, ledger.Syncer and ledger.Reclaimer.
func (h *Home) Ledger() ledger.Store { return h.records }

// Answers is the log of answers.
func (h *Home) Answers() ledger.Answers { return h.answers }

// Instances tells which processes live; its Self is this home.
func (h *Home) Instances() ledger.Instances { return h.instances }

// Doorbell is where dying runs leave their notes.
func (h *Home) Doorbell() doorbell.Box { return h.box }

// Breaker is the state of the storm breaker and the pause.
func (h *Home) Breaker() storm.Store { return h.breaker }

// Runs is the registry of runs and names.
func (h *Home) Runs() run.Store { return h.runs }

// Updates is the update journal.
func (h *Home) Updates() journal.Store { return h.updates }

// Writer is the writer lock of the managed trees.
func (h *Home) Writer() journal.Lock { return h.writer }

// Evidence keeps what decisions were based on.
func (h *Home) Evidence() ledger.Evidence { return h.evidence }

// Reports keeps the rendered reports of episodes.
func (h *Home) Reports() ledger.Reports { return h.reports }

// damaged completes what unseal and decode report.
func damaged(bad *ledger.DamageError, d durable.Dir, name string, k ledger.Key) *ledger.DamageError {
	bad.Path, bad.Key = filepath.Join(d.Path(), name), k
	return bad
}
