package relaunchtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The test binary plays every part that is a process of its own; RoleVar says which, and the others what it needs.
const (
	RoleVar  = "BENCH_ROLE"
	stateVar = "BENCH_STATE"
	rootVar  = "BENCH_ROOT"
	agentVar = "BENCH_AGENT" // the command line of the program that the process runs
	nameVar  = "BENCH_NAME"
)

// Main plays the part that this process has and says with which code it is to exit; played is false when it has none.
// TestMain calls it first.
func Main() (code int, played bool) {
	part, ok := map[string]func() error{"first": first, "runner": runner, "bare-runner": bareRunner}[os.Getenv(RoleVar)]
	if !ok {
		return 0, false
	}
	return told(part()), true
}

// told is the exit code after an error, and says it.
func told(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return 125
}

// Clean removes the program that was built. TestMain calls it last.
func Clean() error {
	if !built {
		return nil
	}
	return os.RemoveAll(filepath.Dir(beatProgram()))
}

// traceback is what an agent leaves when the tree was changed underneath it.
const traceback = `Traceback (most recent call last):
  File "%[1]s/acme/agent.py", line 4, in run
    from acme.wire import Frame
ImportError: cannot import name 'Frame' from 'acme.wire' (%[1]s/acme/wire.py)
`

// Agent is the command line of an agent: it writes down in beat when it began, waits for goFile, and dies of what went away
// from the tree in root. When beat shows an earlier life it ends at once, and well.
func Agent(beat, goFile, root string) []string {
	return []string{beatProgram(), beat, goFile, fmt.Sprintf(traceback, root)}
}

var built bool

// beatProgram builds the program that is relaunched, once.
var beatProgram = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "beat-")
	if err != nil {
		panic(err)
	}
	built = true
	bin := filepath.Join(dir, "beat")
	build := exec.Command("go", "build", "-o", bin, "github.com/mulligan-dev/mulligan/internal/bench/beat")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the agent: %v\n%s", err, out))
	}
	return bin
})

// Gap waits for the second life and is the time from the death to it.
func Gap(beat string) (time.Duration, error) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
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
	return 0, fmt.Errorf("no second life in a minute: %s", beat)
}

// first is a run's first life, where it has a process of its own.
func first() error {
	w, err := wire(os.Getenv(stateVar), os.Getenv(rootVar))
	if err != nil {
		return err
	}
	defer w.home.Close()
	var agent []string
	if err := json.Unmarshal([]byte(os.Getenv(agentVar)), &agent); err != nil {
		return err
	}
	return w.exec(os.Getenv(nameVar), agent, filepath.Dir(os.Getenv(stateVar)))
}

// runner is what the engine's launcher starts.
func runner() error {
	w, err := wire(os.Getenv(stateVar), os.Getenv(rootVar))
	if err != nil {
		return err
	}
	defer w.home.Close()
	if len(os.Args) < 2 {
		return errors.New("a runner is told its order")
	}
	var o order
	if err := json.Unmarshal([]byte(os.Args[1]), &o); err != nil {
		return err
	}
	_, err = w.runs.Replace(context.Background(), o.Key, o.Launch)
	return err
}

func touch(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}
