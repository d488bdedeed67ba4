package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The test binary plays every part that is a process of its own; roleVar says which.
const (
	roleVar  = "BENCH_ROLE"
	beatVar  = "BENCH_BEAT" // the file to which an agent writes when it began and ended
	goVar    = "BENCH_GO"   // the file that lets a first life die
	stateVar = "BENCH_STATE"
	rootVar  = "BENCH_ROOT"
)

// TestMain runs the part that this process plays, or the tests.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "agent":
		os.Exit(agent())
	case "runner":
		os.Exit(runner())
	case "bare-runner":
		os.Exit(bareRunner())
	}
	os.Exit(m.Run())
}

// clock is the time that processes can compare.
func clock() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// born is taken as early as a Go program can.
var born = clock()

// traceback is what an agent leaves when the tree was changed underneath it.
const traceback = `Traceback (most recent call last):
  File "%[1]s/acme/agent.py", line 4, in run
    from acme.wire import Frame
ImportError: cannot import name 'Frame' from 'acme.wire' (%[1]s/acme/wire.py)
`

// agent is the program: its first life waits and dies, its second ends well.
func agent() int {
	beat := os.Getenv(beatVar)
	f, err := os.OpenFile(beat, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return 3
	}
	defer f.Close()
	fmt.Fprintf(f, "born %d\n", born)
	if b, err := os.ReadFile(beat); err != nil || strings.Count(string(b), "born") > 1 {
		return 0
	}
	for {
		if _, err := os.Stat(os.Getenv(goVar)); err == nil {
			break
		} else if !errors.Is(err, fs.ErrNotExist) {
			return 3
		}
		time.Sleep(time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, traceback, os.Getenv(rootVar))
	fmt.Fprintf(f, "died %d\n", clock())
	return 1
}

// gap waits for the second life and is the time from the death to it.
func gap(beat string) (time.Duration, error) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		b, err := os.ReadFile(beat)
		if err != nil {
			continue
		}
		var births []int64
		var death int64
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			what, at, _ := strings.Cut(line, " ")
			n, err := strconv.ParseInt(at, 10, 64)
			if err != nil {
				continue
			}
			if what == "born" {
				births = append(births, n)
			} else {
				death = n
			}
		}
		if len(births) > 1 && death != 0 {
			return time.Duration(births[1] - death), nil
		}
	}
	return 0, fmt.Errorf("no second life in 20 s: %s", beat)
}

// runner is what the engine's launcher starts.
func runner() int {
	w, err := wire(os.Getenv(stateVar), os.Getenv(rootVar))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	defer w.home.Close()
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if _, err := w.runs.Replace(context.Background(), o.Key, o.Launch); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	return 0
}

func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}
