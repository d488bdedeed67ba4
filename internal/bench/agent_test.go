package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The test binary plays every part that is a process of its own; roleVar says which.
const (
	roleVar  = "BENCH_ROLE"
	agentVar = "BENCH_AGENT" // the command line of the bare runner's program
	stateVar = "BENCH_STATE"
	rootVar  = "BENCH_ROOT"
)

// TestMain runs the part that this process plays, or the tests.
func TestMain(m *testing.M) {
	switch os.Getenv(roleVar) {
	case "runner":
		os.Exit(runner())
	case "bare-runner":
		os.Exit(bareRunner())
	}
	code := m.Run()
	if built {
		os.RemoveAll(filepath.Dir(beatProgram()))
	}
	os.Exit(code)
}

// traceback is what an agent leaves when the tree was changed underneath it.
const traceback = `Traceback (most recent call last):
  File "%[1]s/acme/agent.py", line 4, in run
    from acme.wire import Frame
ImportError: cannot import name 'Frame' from 'acme.wire' (%[1]s/acme/wire.py)
`

// program is the command line of an agent.
func program(beat, goFile, root string) []string {
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
	if out, err := exec.Command("go", "build", "-o", bin, "./beat").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("build the agent: %v\n%s", err, out))
	}
	return bin
})

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
