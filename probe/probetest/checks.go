package probetest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
)

// checks are the promises of a prober.
var checks = []check{
	{"healthy", "a probe loads every module of its plan, and says Healthy only then", healthy},
	{"each", "a module that fails makes the probe Broken wherever it stands in the plan", each},
	{"inert", "where loading runs no code of a module, none runs", inert},
	{"order", "modules are loaded in the plan's order", order},
	{"broken", "a module that fails makes the probe Broken, is named, and its message is in the detail", broken},
	{"first_failure", "what comes after a failed module does not hide it", firstFailure},
	{"missing", "a module that does not exist makes the probe Broken", missing},
	{"empty", "a plan without modules is never Healthy", empty},
	{"no_interpreter", "an interpreter that cannot be started is Unknown, not Broken and not an error", noInterpreter},
	{"exit", "a module that ends the program with success is Broken", exits(Exit)},
	{"exit_hard", "a module that ends the process with code 0 is Broken", exits(ExitHard)},
	{"crash", "a module that crashes the interpreter is Broken", exits(Crash)},
	{"chatter", "nothing that a module writes anywhere passes for success", exits(Chatter)},
	{"fork", "a process that a module forks cannot speak for the first one", exits(Fork)},
	{"timeout", "a module that never returns is Unknown soon after the timeout, and its process is gone", timeout},
	{"group", "a timeout ends the whole process group, also what a module started", group},
	{"leftover", "a process that a module leaves running neither holds up the probe nor outlives it", leftover},
	{"thread", "a thread that a module leaves running does not hold up the probe", thread},
	{"cancel", "a context that ends ends the probe, returns its error and leaves no process", cancel},
	{"stdin", "stdin is empty", stdin},
	{"complaint", "a module that only prints an error is Healthy", complaint},
	{"flood", "output without end does not hold up the probe", flood},
	{"bounded", "the kept output is bounded, and its end is kept", bounded},
	{"place", "the working folder is empty, is not the host's, and is gone afterwards", place},
	{"workspace", "the search path is the plan's alone, not the environment's and not the working folder's", workspace},
	{"environment", "only what is needed of the run's environment is passed on, and nothing of the host's", environment},
	{"no_write", "with NoWrite nothing is written beside the modules", noWrite},
	{"concurrent", "probes at the same time do not mix up", concurrent},
}

func healthy(b *bench) error {
	for _, m := range []string{"one", "two"} {
		if err := b.write(m, Note, b.file("loaded")); err != nil {
			return err
		}
	}
	r, err := b.want(probe.Healthy, "one", "two")
	if err != nil {
		return err
	}
	if got := strings.Fields(b.read("loaded")); len(got) != 2 && !b.Language.Inert {
		return fmt.Errorf("it loaded %q of two modules", got)
	}
	if r.Failed != "" {
		return fmt.Errorf("it names the failed module %q", r.Failed)
	}
	if r.Took <= 0 || r.Took > time.Since(b.begun) {
		return fmt.Errorf("it says it took %v", r.Took)
	}
	return nil
}

func each(b *bench) error {
	modules := []string{"one", "two", "three"}
	for i := range modules {
		for j, m := range modules {
			does, arg := Note, b.file("loaded")
			if i == j {
				does, arg = Raise, "module_number_is_torn"
			}
			if err := b.write(m, does, arg); err != nil {
				return err
			}
		}
		if _, err := b.want(probe.Broken, modules...); err != nil {
			return fmt.Errorf("with the failure in module %d of 3: %w", i+1, err)
		}
	}
	return nil
}

func inert(b *bench) error {
	if !b.Language.Inert {
		return fmt.Errorf("load without running: %w", ErrCannot)
	}
	if err := b.write("runs", Note, b.file("ran")); err != nil {
		return err
	}
	if _, err := b.want(probe.Healthy, "runs"); err != nil {
		return err
	}
	if b.read("ran") != "" {
		return errors.New("the module ran")
	}
	return nil
}

func order(b *bench) error {
	if b.Language.Inert {
		return fmt.Errorf("show in which order it is loaded: %w", ErrCannot)
	}
	modules := []string{"zeta", "alpha", "mid"}
	for _, m := range modules {
		if err := b.write(m, Note, b.file("loaded")); err != nil {
			return err
		}
	}
	if _, err := b.want(probe.Healthy, modules...); err != nil {
		return err
	}
	if got := strings.Fields(b.read("loaded")); strings.Join(got, " ") != strings.Join(modules, " ") {
		return fmt.Errorf("it loaded %q, want %q", got, modules)
	}
	return nil
}

func broken(b *bench) error {
	const message = "the_planner_has_no_Step" // one word, so that it may be a name
	if err := errors.Join(b.write("fine", Note, b.file("loaded")), b.write("torn", Raise, message)); err != nil {
		return err
	}
	r, err := b.want(probe.Broken, "fine", "torn")
	if err != nil {
		return err
	}
	if r.Failed != "torn" {
		return fmt.Errorf("it names %q, want %q", r.Failed, "torn")
	}
	if !strings.Contains(r.Detail, message) {
		return fmt.Errorf("the detail %q lacks the module's message", clip(r.Detail))
	}
	return nil
}

func firstFailure(b *bench) error {
	if err := errors.Join(b.write("torn", Raise, "first"), b.write("fine", Note, b.file("loaded"))); err != nil {
		return err
	}
	_, err := b.want(probe.Broken, "torn", "fine")
	return err
}

func missing(b *bench) error {
	r, err := b.want(probe.Broken, "no_such_module")
	if err == nil && r.Failed != "no_such_module" {
		err = fmt.Errorf("it names %q", r.Failed)
	}
	return err
}

func empty(b *bench) error {
	r, err := b.probe(b.plan())
	if err == nil && r.Outcome == probe.Healthy {
		err = errors.New("it says Healthy")
	}
	return err
}

func noInterpreter(b *bench) error {
	if err := b.write("fine", Note, b.file("loaded")); err != nil {
		return err
	}
	p := b.plan("fine")
	p.Interpreter = filepath.Join(b.tree, "no-such-interpreter")
	r, err := b.probe(p)
	if err == nil {
		err = expect(r, probe.Unknown)
	}
	if err == nil && r.Detail == "" {
		err = errors.New("it gives no reason")
	}
	return err
}

func exits(does Behaviour) func(b *bench) error {
	return func(b *bench) error {
		if err := errors.Join(b.write("ends", does, ""), b.write("after", Note, b.file("after"))); err != nil {
			return err
		}
		_, err := b.want(probe.Broken, "ends", "after")
		return err
	}
}

// slack is what a machine may add to a timeout, and stalls is how often a busy one may add more.
const (
	slack  = 2 * time.Second
	stalls = 3
)

func timeout(b *bench) error {
	b.started = append(b.started, "pid")
	if err := b.write("loop", Loop, b.file("pid")); err != nil {
		return err
	}
	return b.runOut("loop")
}

func group(b *bench) error {
	b.started = append(b.started, "pid")
	if err := b.write("loop", ChildLoop, b.file("pid")); err != nil {
		return err
	}
	return b.runOut("loop")
}

// runOut probes a module that never returns and expects its process, or the one that it started, to be gone.
func (b *bench) runOut(module string) error {
	p := b.plan(module)
	p.Timeout = short
	for late := 0; ; {
		began := time.Now()
		r, err := b.probe(p)
		if err != nil {
			return err
		}
		if took := time.Since(began); took > p.Timeout*2+slack {
			if late++; late > stalls {
				return fmt.Errorf("it returned after %v, the timeout is %v", took, p.Timeout)
			}
			continue
		}
		if err := expect(r, probe.Unknown); err != nil {
			return err
		}
		if b.read("pid") != "" {
			return b.gone("pid")
		}
		// On a busy machine the interpreter may not have come as far as the module.
		if p.Timeout *= 2; p.Timeout > long {
			return errors.New("it never loaded the module")
		}
	}
}

func leftover(b *bench) error {
	b.started = append(b.started, "pid")
	if err := b.write("leaves", Child, b.file("pid")); err != nil {
		return err
	}
	if err := b.inTime("leaves"); err != nil {
		return err
	}
	return b.gone("pid")
}

// inTime wants a module that leaves something running to be found healthy before the time of the probe is over. That is
// short, since a prober that is held up takes all of it, and longer at each try, since a busy machine may too.
func (b *bench) inTime(module string) error {
	p := b.plan(module)
	for p.Timeout = 2500 * time.Millisecond; ; p.Timeout *= 2 {
		began := time.Now()
		r, err := b.probe(p)
		if err != nil {
			return err
		}
		took := time.Since(began)
		switch err := expect(r, probe.Healthy); {
		case err == nil && took <= p.Timeout:
			return nil
		case p.Timeout < long/2:
		case err != nil:
			return err
		default:
			return fmt.Errorf("it was held up for %v by what a module left", took)
		}
	}
}

func thread(b *bench) error {
	if err := b.write("leaves", Thread, ""); err != nil {
		return err
	}
	return b.inTime("leaves")
}

func cancel(b *bench) error {
	over, end := context.WithCancel(context.Background())
	end()
	if err := b.write("fine", Note, b.file("loaded")); err != nil {
		return err
	}
	if r, err := b.Prober.Probe(over, b.plan("fine")); !errors.Is(err, context.Canceled) || r.Outcome == probe.Healthy {
		return fmt.Errorf("with a context that had ended before, Probe returned %q, %v", r.Outcome, err)
	}
	b.started = append(b.started, "pid")
	if err := b.write("loop", Loop, b.file("pid")); err != nil {
		if b.Language.Inert && errors.Is(err, ErrCannot) {
			return nil // nothing that is only looked through takes its time
		}
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		b.appears("pid")
		stop()
	}()
	r, err := b.Prober.Probe(ctx, b.plan("loop"))
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("Probe returned the error %v, want one that wraps the context's", err)
	}
	if r.Outcome == probe.Healthy {
		return errors.New("it says Healthy")
	}
	return b.gone("pid")
}

func stdin(b *bench) error {
	if err := b.write("reads", Input, ""); err != nil {
		return err
	}
	_, err := b.want(probe.Healthy, "reads")
	return err
}

func complaint(b *bench) error {
	if err := b.write("loud", Complain, ""); err != nil {
		return err
	}
	_, err := b.want(probe.Healthy, "loud")
	return err
}

func flood(b *bench) error {
	if err := b.write("loud", Flood, ""); err != nil {
		return err
	}
	_, err := b.want(probe.Healthy, "loud")
	return err
}

func bounded(b *bench) error {
	if err := b.write("loud", FloodFail, "at the very end"); err != nil {
		return err
	}
	r, err := b.want(probe.Broken, "loud")
	if err != nil {
		return err
	}
	if len(r.Detail) > 128<<10 {
		return fmt.Errorf("the detail has %d bytes", len(r.Detail))
	}
	if !strings.Contains(r.Detail, "at the very end") {
		return fmt.Errorf("the end of the output is lost: %q", clip(r.Detail))
	}
	return nil
}

func place(b *bench) error {
	if err := b.write("where", Place, b.file("place")); err != nil {
		return err
	}
	if _, err := b.want(probe.Healthy, "where"); err != nil {
		return err
	}
	lines := strings.Split(b.read("place"), "\n")
	if len(lines) != 1 {
		return fmt.Errorf("the working folder %s holds %q", lines[0], lines[1:])
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	if lines[0] == here || lines[0] == b.tree {
		return fmt.Errorf("the working folder is %s", lines[0])
	}
	if _, err := os.Stat(lines[0]); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the working folder %s is still there: %v", lines[0], err)
	}
	return nil
}

func workspace(b *bench) error {
	planted := filepath.Join(b.notes, "workspace")
	if err := os.Mkdir(planted, 0o700); err != nil {
		return err
	}
	if err := errors.Join(
		b.Language.Write(planted, "planted", Note, b.file("planted")),
		b.write("asks", Load, "planted"),
	); err != nil {
		return err
	}
	p := b.plan("asks")
	p.Env = append(append([]string{}, p.Env...), "PWD="+planted)
	if v := b.Language.PathVariable; v != "" {
		p.Env = append(p.Env, v+"="+planted)
	}
	r, err := b.probe(p)
	if err != nil {
		return err
	}
	if b.read("planted") != "" {
		return errors.New("a module of a folder that the plan does not name was loaded")
	}
	return expect(r, probe.Broken)
}

func environment(b *bench) error {
	if err := b.write("tells", Environ, b.file("environ")); err != nil {
		return err
	}
	p := b.plan("tells")
	p.Env = append(append([]string{}, p.Env...),
		"MULLIGAN_LAUNCH=x", "MULLIGAN_HOME=/x", "PROVIDER_API_KEY=secret", "TZ=Asia/Tokyo")
	r, err := b.probe(p)
	if err == nil {
		err = expect(r, probe.Healthy)
	}
	if err != nil {
		return err
	}
	run, got := variables(p.Env), variables(strings.Split(b.read("environ"), "\x00"))
	for _, key := range []string{"MULLIGAN_LAUNCH", "MULLIGAN_HOME", "PROVIDER_API_KEY"} {
		if _, leaked := got[key]; leaked {
			return fmt.Errorf("%s was passed on", key)
		}
	}
	if got["TZ"] != "Asia/Tokyo" {
		return fmt.Errorf("TZ is %q, want the run's", got["TZ"])
	}
	for key, value := range variables(os.Environ()) {
		if v, is := got[key]; is && v == value && run[key] != value {
			return fmt.Errorf("%s=%s came from the host, not from the run", key, value)
		}
	}
	return nil
}

func variables(env []string) map[string]string {
	out := map[string]string{}
	for _, kv := range env {
		if key, value, ok := strings.Cut(kv, "="); ok {
			out[key] = value
		}
	}
	return out
}

func noWrite(b *bench) error {
	if err := errors.Join(b.write("one", Load, "two"), b.write("two", Note, b.file("loaded"))); err != nil {
		return err
	}
	before, err := listing(b.tree)
	if err != nil {
		return err
	}
	p := b.plan("one")
	p.NoWrite = true
	r, err := b.probe(p)
	if err == nil {
		err = expect(r, probe.Healthy)
	}
	if err != nil {
		return err
	}
	after, err := listing(b.tree)
	if err == nil && before != after {
		err = fmt.Errorf("the tree was %q and is %q", before, after)
	}
	return err
}

func listing(dir string) (string, error) {
	var names []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, dir))
		return err
	})
	return strings.Join(names, " "), err
}

func concurrent(b *bench) error {
	if err := errors.Join(b.write("fine", Note, b.file("loaded")), b.write("torn", Raise, "torn_one")); err != nil {
		return err
	}
	want := map[string]probe.Outcome{"fine": probe.Healthy, "torn": probe.Broken}
	if b.write("ends", ExitHard, "") == nil {
		want["ends"] = probe.Broken
	}
	var wg sync.WaitGroup
	errs := make(chan error, 2*len(want))
	for range 2 {
		for m, outcome := range want {
			wg.Go(func() {
				r, err := b.probe(b.plan(m))
				if err == nil {
					err = expect(r, outcome)
				}
				errs <- err
			})
		}
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}
