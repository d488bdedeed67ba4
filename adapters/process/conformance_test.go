package process_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/probetest"
)

// python is the interpreter that is on PATH, itself and no version manager's script in front of it.
func python(t testing.TB) string {
	t.Helper()
	found := interpreter()
	if found == "" {
		found = require.Program(t, "python3", "apt-get install python3")
	}
	return found
}

// interpreter asks once, because a version manager takes longer than a probe.
var interpreter = sync.OnceValue(func() string {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
})

func newPython(t testing.TB, c process.PythonConfig) *process.Python {
	t.Helper()
	p, err := process.NewPython(c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func subject(t testing.TB, p probe.Prober) probetest.Subject {
	t.Helper()
	// The machine that tests may itself forbid bytecode, and then nothing would show what NoWrite does.
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PYTHON") })
	return probetest.Subject{Prober: p, Interpreter: python(t), Env: env, Language: probetest.Python}
}

func TestPythonKeepsThePromisesOfAProber(t *testing.T) {
	t.Parallel()
	probetest.Run(t, subject(t, newPython(t, process.PythonConfig{})))
}

// changed is a prober that spoils the plan or the result of a good one.
type changed struct {
	probe.Prober
	plan   func(*probe.Plan)
	result func(*probe.Result)
}

func (c changed) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	p.Modules = slices.Clone(p.Modules)
	if c.plan != nil {
		c.plan(&p)
	}
	r, err := c.Prober.Probe(ctx, p)
	if c.result != nil {
		c.result(&r)
	}
	return r, err
}

// naive is the prober that one writes first: a one-line program, and exit code 0 is healthy.
type naive struct {
	spoil func(c *exec.Cmd, p probe.Plan)
	wait  time.Duration // WaitDelay
}

func (n naive) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	began := time.Now()
	if err := ctx.Err(); err != nil {
		return probe.Result{Outcome: probe.Unknown}, err
	}
	timed, stop := context.WithTimeout(ctx, p.Timeout)
	defer stop()
	source := "import sys\nsys.path[:1] = " + fmt.Sprintf("%q.split(':')\n", strings.Join(p.Path, ":"))
	for _, m := range p.Modules {
		source += "import " + m + "\n"
	}
	c := exec.CommandContext(timed, p.Interpreter, "-c", source)
	c.Env, c.WaitDelay = p.Env, n.wait
	if n.spoil != nil {
		n.spoil(c, p)
	}
	said, err := c.CombinedOutput()
	r := probe.Result{Outcome: probe.Healthy, Detail: string(said), Took: time.Since(began)}
	if i := bytes.Index(said, []byte("open(")); err != nil && i < 0 && len(p.Modules) > 0 {
		r.Failed = p.Modules[len(p.Modules)-1]
	}
	switch {
	case ctx.Err() != nil:
		return probe.Result{Outcome: probe.Unknown}, ctx.Err()
	case timed.Err() != nil || errors.Is(err, os.ErrNotExist):
		r.Outcome, r.Detail = probe.Unknown, "no proof"
	case err != nil:
		r.Outcome = probe.Broken
	}
	return r, nil
}

// Each broken prober is caught by the checks that claim to catch it.
func TestBrokenProbersAreCaught(t *testing.T) {
	t.Parallel()
	good := newPython(t, process.PythonConfig{})
	always := func(o probe.Outcome) probe.Prober {
		return changed{Prober: good, result: func(r *probe.Result) { r.Outcome = o }}
	}
	plan := func(f func(*probe.Plan)) probe.Prober { return changed{Prober: good, plan: f} }
	result := func(f func(*probe.Result)) probe.Prober { return changed{Prober: good, result: f} }
	tests := []struct {
		name   string
		prober probe.Prober
		caught []string
		native bool // it is a prober of native objects
	}{
		{"says always healthy", always(probe.Healthy), []string{"broken", "first_failure", "missing", "empty", "no_interpreter",
			"each", "exit", "exit_hard", "crash", "chatter", "fork", "bounded", "workspace", "timeout", "cancel", "concurrent"}, false},
		{"says always broken", always(probe.Broken), []string{"healthy", "no_interpreter", "timeout", "complaint", "stdin"}, false},
		{"loads only the first", plan(func(p *probe.Plan) { p.Modules = p.Modules[:min(1, len(p.Modules))] }), []string{"healthy", "broken"}, false},
		{"loads only the last", plan(func(p *probe.Plan) { p.Modules = p.Modules[max(0, len(p.Modules)-1):] }), []string{"healthy", "first_failure"}, false},
		{"loads backwards", plan(func(p *probe.Plan) { slices.Reverse(p.Modules) }), []string{"order"}, false},
		{"writes with NoWrite", plan(func(p *probe.Plan) { p.NoWrite = false }), []string{"no_write"}, false},
		{"is late by seconds", plan(func(p *probe.Plan) { p.Timeout += 3500 * time.Millisecond }), []string{"timeout"}, false},
		{"forgets what failed", result(func(r *probe.Result) { r.Failed = "" }), []string{"broken", "missing"}, false},
		{"forgets what was said", result(func(r *probe.Result) { r.Detail = "" }), []string{"broken", "bounded", "no_interpreter"}, false},
		{"keeps the beginning", result(func(r *probe.Result) { r.Detail = r.Detail[:min(len(r.Detail), 100)] }), []string{"bounded"}, false},
		{"forgets the time", result(func(r *probe.Result) { r.Took = 0 }), []string{"healthy"}, false},
		{"trusts the exit code", naive{wait: time.Second}, []string{"exit", "exit_hard", "chatter", "fork", "empty"}, false},
		{"runs beside the host", naive{wait: time.Second}, []string{"place", "workspace", "environment", "no_write"}, false},
		{"waits for the interpreter's own end", naive{wait: time.Second}, []string{"thread"}, false},
		{"kills the interpreter alone", naive{wait: time.Second}, []string{"group"}, false},
		{"searches the environment's path", naive{wait: time.Second}, []string{"workspace"}, false},
		{"gives its own environment", naive{wait: time.Second, spoil: func(c *exec.Cmd, p probe.Plan) {
			c.Env = append(os.Environ(), "MULLIGAN_PROBER_OWN=1")
		}}, []string{"environment"}, false},
		{"waits for what is left behind", naive{wait: 3500 * time.Millisecond}, []string{"leftover"}, false},
		{"leaves stdin to the host", naive{wait: time.Second, spoil: func(c *exec.Cmd, _ probe.Plan) {
			c.Stdin = strings.NewReader("the host's input\n")
		}}, []string{"stdin"}, false},
		{"ignores the context", uncancelled{good}, []string{"cancel"}, false},
		{"returns errors for what cannot be run", erring{good}, []string{"no_interpreter"}, false},
		{"mixes probes up", &muddled{Prober: good}, []string{"concurrent"}, false},
		{"runs in the tree", naive{wait: time.Second, spoil: func(c *exec.Cmd, p probe.Plan) { c.Dir = p.Path[0] }}, []string{"place"}, false},
		{"keeps everything that is said", naive{wait: time.Second}, []string{"bounded"}, false},
		{"takes a complaint for a failure", result(func(r *probe.Result) {
			if strings.Contains(r.Detail, "Error") {
				r.Outcome = probe.Broken
			}
		}), []string{"complaint"}, false},
		{"gives up on much output", result(func(r *probe.Result) {
			if len(r.Detail) > 1000 {
				r.Outcome = probe.Unknown
			}
		}), []string{"flood"}, false},
		{"has the loader load native objects", preloading{}, []string{"inert"}, true},
	}
	caught := map[string]bool{}
	for _, tt := range tests {
		for _, c := range tt.caught {
			caught[c] = true
		}
	}
	for _, name := range probetest.Names() {
		if !caught[name] {
			t.Errorf("no broken prober shows that the check %q catches anything", name)
		}
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			sub := subject(t, tt.prober)
			if tt.native {
				sub = elfSubject(t)
				sub.Prober = tt.prober
			}
			failures := probetest.Verify(t, sub, tt.caught...)
			for _, name := range tt.caught {
				i := slices.IndexFunc(failures, func(f probetest.Failure) bool { return f.Check == name })
				if i < 0 {
					t.Errorf("the check %q did not catch it", name)
				} else if failures[i].Promise == "" || failures[i].Got == "" {
					t.Errorf("the failure of %q does not say which promise broke: %v", name, failures[i])
				}
			}
		})
	}
}

// uncancelled goes on when its context ends, for a second at most.
type uncancelled struct{ probe.Prober }

func (u uncancelled) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	p.Timeout = min(p.Timeout, time.Second)
	return u.Prober.Probe(context.WithoutCancel(ctx), p)
}

// erring returns an error where the result should say Unknown.
type erring struct{ probe.Prober }

func (e erring) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	r, err := e.Prober.Probe(ctx, p)
	if err == nil && r.Outcome == probe.Unknown {
		err = errors.New(r.Detail)
	}
	return r, err
}

// muddled gives each caller the result of the one before.
type muddled struct {
	probe.Prober
	mu   sync.Mutex
	last *probe.Result
}

func (m *muddled) Probe(ctx context.Context, p probe.Plan) (probe.Result, error) {
	r, err := m.Prober.Probe(ctx, p)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last == nil {
		m.last = &probe.Result{Outcome: probe.Unknown}
	}
	r, *m.last = *m.last, r
	return r, err
}

// write puts files below a new folder.
func write(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
