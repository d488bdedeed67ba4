// Package host reads what the machine knows of itself and its processes: the clock as a stamp, the kernel's boot id, the
// pid namespace, when a process started and whether it still lives. Everything else in the module gets these as values.
//
// Call [Now] for every stamp that is not an argument. It promises that two stamps of one boot order as the moments did,
// through suspend and clock changes. Where the system has no boot id (anything but Linux) stamps carry the wall clock
// alone. A reading that cannot be made is empty or [ledger.LifeUnknown], never guessed.
package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// reading is what does not change while a process lives, and one moment on both clocks.
type reading struct {
	boot, pidns string
	start       time.Time     // with Go's monotonic clock, which stops in suspend
	uptime      time.Duration // the boot-time clock a little before start
}

// constant is read once, when the process starts and so outside of every testing/synctest bubble.
var constant = read()

func read() reading {
	var r reading
	if b, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		r.boot = strings.TrimSpace(string(b))
	}
	r.pidns, _ = os.Readlink("/proc/self/ns/pid")
	r.uptime = boottime()
	r.start = time.Now()
	return r
}

// Now is this moment on the wall clock and, where there is one, the boot-time clock.
//
// The boot-time clock is the kernel's, which runs in suspend. A testing/synctest bubble fakes only Go's clock, which
// begins there in the year 2000, long before this process started; Go's monotonic clock never goes back otherwise. So a
// negative age of the process gives the bubble away, and its own time is put in the place of the kernel's. Stamps made
// inside one bubble age with its fake time; they mean nothing beside stamps made outside.
func Now() stamp.Time {
	now := time.Now()
	t := stamp.Time{Wall: now.UTC().Round(0), Boot: constant.boot}
	switch {
	case t.Boot == "":
	case now.Sub(constant.start) < 0:
		t.Uptime = constant.uptime + now.Sub(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	default:
		t.Uptime = boottime()
	}
	return t
}

// BootID is the kernel's boot id, empty where there is none.
func BootID() string { return constant.boot }

// PIDNamespace names the pid namespace of this process, empty where there is none.
func PIDNamespace() string { return constant.pidns }

// Process is the identity of a process as far as pid and start time give one: an instance without an id.
func Process(pid int) (ledger.Instance, error) {
	start, _, err := stat(pid)
	if err != nil {
		return ledger.Instance{}, err
	}
	return ledger.Instance{Boot: constant.boot, PIDNS: constant.pidns, PID: pid, Start: start}, nil
}

// Self is this process, without an id.
func Self() ledger.Instance {
	i, err := Process(os.Getpid())
	if err != nil {
		return ledger.Instance{Boot: constant.boot, PIDNS: constant.pidns, PID: os.Getpid()}
	}
	return i
}

// StartTime is when a process started, in clock ticks since boot. A process that is gone is os.ErrNotExist.
func StartTime(pid int) (uint64, error) {
	start, _, err := stat(pid)
	return start, err
}

// stat reads the start time and the state letter from /proc/PID/stat.
func stat(pid int) (start uint64, state byte, err error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	return parseStat(path, b)
}

// parseStat skips the command, which may hold spaces and parentheses of its own: the last one closes it.
func parseStat(path string, b []byte) (start uint64, state byte, err error) {
	const afterCommand = 22 - 3 // fields are counted from 1, and the first after the command is the third
	end := bytes.LastIndexByte(b, ')')
	fields := bytes.Fields(b[end+1:])
	if end < 0 || len(fields) <= afterCommand || len(fields[0]) != 1 {
		return 0, 0, fmt.Errorf("%s: not as expected: %.80q", path, b)
	}
	start, err = strconv.ParseUint(string(fields[afterCommand]), 10, 64)
	if err != nil {
		return 0, 0, fmt.Errorf("%s: start time: %w", path, err)
	}
	return start, fields[0][0], nil
}

// Liveness tells whether a process lives, by pid and start time. They mean something only in the same kernel boot and
// pid namespace; a process of an earlier boot of this machine is dead. One that has ended and waits for its parent is
// dead as well.
func Liveness(i ledger.Instance) ledger.Liveness {
	switch {
	case i.Boot == "" || constant.boot == "":
		return ledger.LifeUnknown
	case i.Boot != constant.boot:
		return ledger.Dead
	case i.PIDNS == "" || i.PIDNS != constant.pidns || i.PID <= 0 || i.Start == 0:
		return ledger.LifeUnknown
	}
	start, state, err := stat(i.PID)
	switch {
	case errors.Is(err, os.ErrNotExist) || isGone(err):
		if hidden(i.PID) {
			return ledger.LifeUnknown
		}
		return ledger.Dead
	case err != nil:
		return ledger.LifeUnknown
	case start != i.Start || state == 'Z' || state == 'X':
		return ledger.Dead
	}
	return ledger.Alive
}
