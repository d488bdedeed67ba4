package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
)

// ELF probes native programs and shared objects: each is found, is whole, and every symbol that it and the objects it
// needs leave open is defined in the scope in which it would be loaded. It is safe for concurrent use.
//
// It reads the files and runs nothing. Loading an object runs its initializers, and so does asking the loader in the
// ways that are common: dlopen with every symbol bound runs constructors, and ldd lets a program's own interpreter run.
// An object that is linked for lazy binding would also hide a missing function until the first call. The price is that
// the search for objects is this package's: DT_RPATH and DT_RUNPATH with $ORIGIN, the plan's path in the place of
// LD_LIBRARY_PATH, then the folders of /etc/ld.so.conf and the system's own.
//
// The plan's Interpreter is the program into which modules are loaded; its symbols and those of its objects are in scope.
// Modules are absolute paths, or names that are looked up on the plan's path (NAME, NAME.so, libNAME.so). Broken names
// the module and the symbol; Unknown is what is no proof: a program that is not there, an object without the tables to
// judge it by, the end of the time.
type ELF struct{}

var _ probe.Prober = ELF{}

// NewELF makes a prober. It has nothing to configure.
func NewELF() ELF { return ELF{} }

// Probe implements probe.Prober.
func (ELF) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	began := time.Now()
	r := probeELF(ctx, plan, began)
	r.Took = max(time.Since(began), 1)
	if err := ctx.Err(); err != nil && r.Outcome != probe.Healthy {
		return r, fmt.Errorf("probe for %s: %w", plan.Interpreter, err)
	}
	return r, nil
}

func probeELF(ctx context.Context, plan probe.Plan, began time.Time) probe.Result {
	if err := errors.Join(ctx.Err(), plan.Validate()); err != nil {
		return unknown(err)
	}
	if _, err := os.Stat(plan.Interpreter); err != nil {
		return unknown(fmt.Errorf("the program that loads: %w", err))
	}
	timeout := plan.Timeout
	if timeout == 0 {
		timeout = probe.DefaultTimeout
	}
	ctx, stop := context.WithDeadline(ctx, began.Add(timeout))
	defer stop()
	l := &linker{ctx: ctx, path: plan.Path, objects: map[string]*object{}}
	for _, m := range plan.Modules {
		err := l.module(plan.Interpreter, m)
		switch {
		case ctx.Err() != nil:
			return probe.Result{Outcome: probe.Unknown, Failed: m, Detail: "the probe did not come to an end in time"}
		case errors.Is(err, errNoTables):
			return probe.Result{Outcome: probe.Unknown, Failed: m, Detail: err.Error()}
		case err != nil:
			return probe.Result{Outcome: probe.Broken, Failed: m, Detail: err.Error()}
		}
	}
	return probe.Result{Outcome: probe.Healthy}
}

// module checks one module in the scope of the program that loads it.
func (l *linker) module(program, name string) error {
	file, err := l.locate(name)
	if err != nil {
		return err
	}
	o, err := l.open(file)
	if err != nil {
		return err
	}
	var scope []*object
	if !o.program {
		// The program itself may be a script, or of another kind than the object expects: then nothing of it is in scope.
		if main, err := l.open(program); err == nil && main.machine == o.machine {
			// What the program's own objects lack is another module's question.
			scope, _ = l.scope(nil, main, false)
		}
	}
	scope, err = l.scope(scope, o, true)
	if err != nil {
		return err
	}
	return bindAll(scope, l.closure(o))
}

// locate finds a module on the plan's path.
func (l *linker) locate(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, d := range l.path {
		for _, f := range []string{name, name + ".so", "lib" + name + ".so"} {
			p := filepath.Join(d, f)
			if st, err := os.Stat(p); err == nil && st.Mode().IsRegular() {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("%s: cannot open shared object file: no such file in %s", name, strings.Join(l.path, ":"))
}
