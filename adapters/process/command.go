package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"golang.org/x/sys/unix"
)

// CommandConfig configures a [Command] prober. The zero value is ready to use.
type CommandConfig struct {
	// PathVariable is the variable in which the command gets the plan's search path, such as PERL5LIB or LUA_PATH_DIRS;
	// folders are separated by colons. Empty means that it does not get it.
	PathVariable string
	// Keep are variables of the run's environment that the command gets besides those of [freshimport.Env].
	Keep []string
	// TempDir is where each probe gets its empty working folder; empty means the system's temporary folder.
	TempDir string
	// OutputLimit bounds the command's output that is kept, in bytes from its end; zero means DefaultOutputLimit.
	OutputLimit int
}

// Command probes with a command that the host declares, for runtimes that have no prober of their own: a Perl, Lua, Tcl
// or shell tree, or a program that checks itself. It is safe for concurrent use.
//
// The command is the plan's Interpreter with its Args, and is started once for each module, in order, with the module as
// its last argument, so that the module that failed is known. The exit status alone decides: zero is a pass. A command
// that ends with zero without having loaded anything is believed, since nobody else knows better. Isolation and limits
// are those of [Python]: an empty folder, a session of its own that is killed whole, no input, bounded output, an
// environment of [freshimport.Env] and Keep, one timeout for all modules. A signal from outside and a command that cannot
// be started are Unknown.
type Command struct {
	cfg    CommandConfig
	loader loader
}

var _ probe.Prober = (*Command)(nil)

// NewCommand makes a prober.
func NewCommand(c CommandConfig) (*Command, error) {
	l := loader{temp: c.TempDir, limit: c.OutputLimit}
	errs := []error{l.validate()}
	for _, k := range append(slices.Clone(c.Keep), c.PathVariable) {
		if strings.ContainsAny(k, "=\x00") {
			errs = append(errs, fmt.Errorf("Keep, PathVariable: %q is no name of a variable", k))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("new command prober: %w", err)
	}
	return &Command{cfg: c, loader: l}, nil
}

// Probe implements probe.Prober.
func (p *Command) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	began := time.Now()
	r := p.probe(ctx, plan, began)
	r.Took = time.Since(began)
	if err := ctx.Err(); err != nil && r.Outcome != probe.Healthy {
		return r, fmt.Errorf("probe with %s: %w", plan.Interpreter, err)
	}
	return r, nil
}

func (p *Command) probe(ctx context.Context, plan probe.Plan, began time.Time) probe.Result {
	if err := errors.Join(ctx.Err(), plan.Validate()); err != nil {
		return unknown(err)
	}
	timeout := plan.Timeout
	if timeout == 0 {
		timeout = probe.DefaultTimeout
	}
	ctx, stop := context.WithDeadline(ctx, began.Add(timeout))
	defer stop()
	for _, m := range plan.Modules {
		if r := p.one(ctx, plan, m); r.Outcome != probe.Healthy {
			r.Failed = m
			return r
		}
	}
	return probe.Result{Outcome: probe.Healthy}
}

// one runs the command for one module.
func (p *Command) one(ctx context.Context, plan probe.Plan, module string) probe.Result {
	work, remove, err := durable.Scratch(p.loader.temp, scratch)
	if err != nil {
		return unknown(err)
	}
	defer remove()
	run, err := p.start(plan, module, work)
	if err != nil {
		return unknown(fmt.Errorf("start the probe's command: %w: check that it is installed", err))
	}
	return run.wait(ctx)
}

// trial is one run of the command.
type trial struct {
	child  *child
	exited chan struct{}
	output *os.File
	said   *tail
	read   sync.WaitGroup
}

func (p *Command) start(plan probe.Plan, module, work string) (*trial, error) {
	env := append(freshimport.EnvWith(plan.Env, p.cfg.Keep), "TMPDIR="+work)
	if p.cfg.PathVariable != "" {
		env = append(env, p.cfg.PathVariable+"="+strings.Join(plan.Path, ":"))
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	argv := slices.Concat([]string{plan.Interpreter}, plan.Args, []string{module})
	c, exited, err := startTied(plan.Interpreter, argv, work, env, []*os.File{null, w, w})
	if err != nil {
		r.Close()
		return nil, err
	}
	t := &trial{child: c, exited: exited, output: r, said: newTail(p.loader.limit)}
	t.read.Go(func() { t.said.copyFrom(r) })
	return t, nil
}

// wait judges the run when it has ended or its time is over, and leaves nothing of its group behind.
func (t *trial) wait(ctx context.Context) probe.Result {
	over := false
	select {
	case <-t.exited:
	case <-ctx.Done():
		over = true
	}
	// The leader is not reaped yet, so its group is still its own.
	_ = t.child.signalGroup(unix.SIGKILL)
	defer t.output.Close()
	timer := time.NewTimer(killWait)
	defer timer.Stop()
	select {
	case <-t.exited:
	case <-timer.C:
		go func() {
			<-t.exited
			t.child.reap()
		}()
		return unknown(errors.New("the command cannot be ended: it hangs in a system call"))
	}
	exit := t.child.reap()
	_ = t.output.SetReadDeadline(time.Unix(1, 0))
	t.read.Wait()
	t.said.drain(t.output)
	return judge(exit, over, t.said.String())
}

func judge(exit classify.Exit, over bool, said string) probe.Result {
	r := probe.Result{Outcome: probe.Broken, Detail: strings.TrimSpace(said)}
	note := func(s string) { r.Detail = strings.TrimSpace(r.Detail + "\n" + s) }
	switch {
	case over:
		r.Outcome = probe.Unknown
		note("the probe did not come to an end in time")
	case exit.Signal == "" && exit.Code == 0:
		r.Outcome = probe.Healthy
	case fromOutside(exit.Signal):
		r.Outcome = probe.Unknown
		note("the command was ended from outside: " + describe(exit))
	default:
		note("the command says no: " + describe(exit))
	}
	return r
}

// commandPath is the absolute path of a declared command, found as a shell would with the run's PATH.
func commandPath(command []string, dir string, env []string) (string, bool) {
	if len(command) == 0 {
		return "", false
	}
	found, err := lookPath(command[0], dir, env)
	return found, err == nil && filepath.IsAbs(found)
}
