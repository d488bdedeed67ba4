package files

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

const (
	// sweepAge is how old the file of a dead instance is when another instance takes it away.
	sweepAge = time.Hour
	// sweepMost bounds how many files one Open looks at.
	sweepMost = 64
)

// instances knows which processes of Mulligan live: each holds the kernel lock on a file named by its id.
type instances struct {
	dir   durable.Dir
	self  ledger.Instance
	lock  durable.Lock
	named atomic.Bool // somebody was told our id, so the file has to stay to prove our death
}

// newInstances makes this home an instance. The lock is held before anybody is told the id, so a free lock is never one
// that is yet to be taken.
func newInstances(dir durable.Dir, now func() stamp.Time) (*instances, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("make an instance id: %w", err)
	}
	s := &instances{dir: dir, self: host.Self()}
	s.self.ID = id.String()
	s.sweep(now())
	if s.lock, err = dir.Lock(s.self.ID); err != nil {
		return nil, err
	}
	if ok, err := s.lock.Try(false); err != nil || !ok {
		_ = s.lock.Close()
		return nil, fmt.Errorf("lock instance %s: taken by somebody else: %w", s.self.ID, err)
	}
	return s, s.describe()
}

// describe writes who the instance is, for people; nothing reads it.
func (s *instances) describe() error {
	b, err := json.Marshal(struct {
		Schema int `json:"schema"`
		ledger.Instance
	}{1, s.self})
	if err != nil {
		return err
	}
	f, err := s.dir.Append(s.self.ID)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(b, '\n'))
	return err
}

// Self implements ledger.Instances.
func (s *instances) Self() ledger.Instance {
	s.named.Store(true)
	return s.self
}

// Liveness implements ledger.Instances. A free lock proves death. Where the file is gone (its instance was long dead,
// or somebody emptied the folder) pid and start time decide, and a process that they show alive is not proven to be the
// instance.
func (s *instances) Liveness(i ledger.Instance) ledger.Liveness {
	switch {
	case i.ID == "" && i.PID == 0:
		return ledger.LifeUnknown
	case i.ID == s.self.ID && i.ID != "":
		return ledger.Alive
	case i.Host != "":
		return ledger.LifeUnknown // of another machine; a state folder names none
	case i.Unlocked || i.ID == "":
		return host.Liveness(i)
	case i.Boot != "" && host.BootID() != "" && i.Boot != host.BootID():
		return ledger.Dead
	}
	name := durable.Escape(i.ID)
	if _, err := s.dir.Stat(name); err != nil {
		if host.Liveness(i) == ledger.Dead {
			return ledger.Dead
		}
		return ledger.LifeUnknown
	}
	free, err := s.free(name)
	switch {
	case err != nil:
		return ledger.LifeUnknown
	case free:
		return ledger.Dead
	}
	return ledger.Alive
}

// free reports whether nobody holds an instance's lock. It asks for a shared one, so that two who ask at a time do not
// take each other for the instance.
func (s *instances) free(name string) (bool, error) {
	l, err := s.dir.Lock(name)
	if err != nil {
		return false, err
	}
	defer l.Close()
	return l.Try(true)
}

// sweep takes away files of instances that are long dead. It is housekeeping: what fails is tried again another day.
func (s *instances) sweep(now stamp.Time) {
	names, err := s.dir.Names(sweepMost)
	if err != nil {
		return
	}
	for _, name := range names {
		in, err := s.dir.Stat(name)
		if err != nil || now.Wall.Sub(time.Unix(0, in.MTime)) < sweepAge {
			continue
		}
		if free, err := s.free(name); err == nil && free {
			_ = s.dir.Remove(name)
		}
	}
}

// close drops the lock. The file stays where others may know the id: its free lock proves that this instance is gone,
// which a process that lives on would contradict.
func (s *instances) close() error {
	if s.lock == nil {
		return nil
	}
	if !s.named.Load() {
		_ = s.dir.Remove(s.self.ID)
	}
	return s.lock.Close()
}
