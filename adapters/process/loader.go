package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/probe"
)

// scratch is how the name of a probe's folder begins. Probes share it, so that each takes away what any other left behind.
const scratch = "mulligan-probe-"

// loader is what every prober that starts an interpreter has in common: the interpreter runs a small program that reads
// from descriptor 3 what to load, and writes to descriptor 4 what it has proven, marked with a nonce that no module sees.
type loader struct {
	temp  string
	limit int
	// check refuses flags that would make the probe run something else.
	check func(args []string) error
	// command is what is started for a plan.
	command func(plan probe.Plan, at site) (argv, env []string, err error)
}

// site is where a probe takes place: folders of its own that are gone afterwards.
type site struct {
	work string // the empty working folder
	own  string // for what the probe itself needs, out of the working folder's sight
}

// validate reports all that is wrong with the config and fills in its defaults.
func (p *loader) validate() error {
	var errs []error
	if p.limit < 0 {
		errs = append(errs, fmt.Errorf("OutputLimit: %d, want 0 for the default or more", p.limit))
	}
	if p.temp != "" && !filepath.IsAbs(p.temp) {
		errs = append(errs, fmt.Errorf("TempDir: %q, want an absolute path or nothing", p.temp))
	}
	if p.limit == 0 {
		p.limit = DefaultOutputLimit
	}
	return errors.Join(errs...)
}

// probe runs one probe.
func (p *loader) probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	began := time.Now()
	finish := func(r probe.Result) probe.Result {
		r.Took = time.Since(began)
		return r
	}
	if err := ctx.Err(); err != nil {
		return finish(unknown(err)), fmt.Errorf("probe with %s: %w", plan.Interpreter, err)
	}
	if err := p.checkPlan(plan); err != nil {
		return finish(unknown(err)), nil
	}
	own, remove, err := durable.Scratch(p.temp, scratch)
	if err != nil {
		return finish(unknown(err)), nil
	}
	defer remove() // what a module left there is of no more use
	work, err := os.MkdirTemp(own, "work-")
	if err != nil {
		return finish(unknown(err)), nil
	}

	s, err := p.start(plan, site{work: work, own: own})
	if err != nil {
		return finish(unknown(err)), nil
	}
	timeout := plan.Timeout
	if timeout == 0 {
		timeout = probe.DefaultTimeout
	}
	r := s.run(ctx, plan, began.Add(timeout))
	if err := ctx.Err(); err != nil && r.Outcome != probe.Healthy {
		return finish(r), fmt.Errorf("probe with %s: %w", plan.Interpreter, err)
	}
	return finish(r), nil
}

func unknown(err error) probe.Result {
	return probe.Result{Outcome: probe.Unknown, Detail: err.Error()}
}

// checkPlan refuses what would not be the probe that the plan means.
func (p *loader) checkPlan(plan probe.Plan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	var errs []error
	for _, d := range plan.Path {
		if strings.ContainsRune(d, 0) {
			errs = append(errs, fmt.Errorf("path: %q is no folder name", d))
		}
	}
	if err := p.check(plan.Args); err != nil {
		errs = append(errs, fmt.Errorf("args: %w", err))
	}
	return errors.Join(errs...)
}

// session is one running probe.
type session struct {
	child   *child
	exited  chan struct{} // closed when the interpreter has ended, before it is reaped
	request *os.File      // write end of its descriptor 3
	report  *os.File      // read end of its descriptor 4
	output  *os.File      // read end of its stdout and stderr
	said    *tail
	read    sync.WaitGroup // the reader of output
	nonce   string
}

// start starts the interpreter and begins to listen.
func (p *loader) start(plan probe.Plan, at site) (*session, error) {
	argv, env, err := p.command(plan, at)
	if err != nil {
		return nil, err
	}
	var open []*os.File // what is closed when the start fails
	defer func() {
		for _, f := range open {
			f.Close()
		}
	}()
	asks, request, err := inbound()
	if err != nil {
		return nil, err
	}
	defer asks.Close()
	open = append(open, request)
	report, tells, err := pipe()
	if err != nil {
		return nil, err
	}
	defer tells.Close()
	open = append(open, report)
	r, w, err := pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	open = append(open, r)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	c, exited, err := startTied(plan.Interpreter, argv, at.work, env, []*os.File{null, w, w, asks, tells})
	if err != nil {
		return nil, fmt.Errorf("start the interpreter: %w: check that the run's interpreter is still installed", err)
	}
	open = nil
	s := &session{
		child: c, exited: exited, request: request, report: report, output: r, said: newTail(p.limit), nonce: newNonce(),
	}
	s.read.Add(1)
	go func() {
		defer s.read.Done()
		s.said.copyFrom(r)
	}()
	return s, nil
}
