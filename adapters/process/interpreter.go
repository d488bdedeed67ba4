package process

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// The programs that the probed interpreters run. The class is compiled for Java 8 and later, so that a
// JVM without a compiler can be probed; a test compares the two.
//
//go:generate javac --release 8 -Xlint:-options -g:none jvm/MulliganProbe.java
var (
	//go:embed program.js
	nodeProgram string
	//go:embed program.rb
	rubyProgram string
	//go:embed program.php
	phpProgram string
	//go:embed jvm/MulliganProbe.class
	jvmProgram []byte
)

// jvmClass is the name of the class in program.class.
const jvmClass = "MulliganProbe"

// InterpreterConfig configures an [Interpreter] prober. Dialect is required.
type InterpreterConfig struct {
	// Dialect is the runtime: freshimport.Node, Ruby, PHP or JVM.
	Dialect freshimport.Dialect
	// TempDir is where each probe gets its empty working folder; empty means the system's temporary folder.
	TempDir string
	// OutputLimit bounds the interpreter's output that is kept, in bytes from its end; zero means DefaultOutputLimit.
	OutputLimit int
}

// Interpreter probes trees of code for Node.js, Ruby, PHP and the JVM, with the isolation and the limits of [Python]. It
// is safe for concurrent use.
//
//   - Node.js loads a file as the module system it belongs to does, CommonJS or ES; other names are looked up on the plan's
//     path (NODE_PATH). No compile cache is used.
//   - Ruby requires features and files.
//   - PHP requires files, and has the autoloader of Composer, where there is one above the file, find classes; other names
//     are looked up on the plan's path. The opcode cache is off, and nothing is prepended.
//   - The JVM loads and links classes and looks up every class, field and method that their code names, so that a method
//     that is gone shows here and not in the middle of the work. None of their code runs.
//
// A module named "main:..." (see [freshimport.Main]) is the program itself: it is compiled, what it loads by a literal name
// is loaded, and it never runs.
type Interpreter struct{ loader loader }

var _ probe.Prober = (*Interpreter)(nil)

// NewInterpreter makes a prober.
func NewInterpreter(c InterpreterConfig) (*Interpreter, error) {
	d := c.Dialect
	l := loader{temp: c.TempDir, limit: c.OutputLimit, check: d.CheckFlags}
	commands := map[string]func(freshimport.Dialect, probe.Plan, site) ([]string, []string, error){
		freshimport.Node.Name: nodeCommand, freshimport.Ruby.Name: rubyCommand, freshimport.PHP.Name: phpCommand, freshimport.JVM.Name: jvmCommand,
	}
	command, ok := commands[d.Name]
	errs := []error{l.validate()}
	if !ok {
		errs = append(errs, fmt.Errorf("Dialect: %q, want freshimport.Node, Ruby, PHP or JVM", d.Name))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("new interpreter prober: %w", err)
	}
	l.command = func(p probe.Plan, at site) ([]string, []string, error) { return command(d, p, at) }
	return &Interpreter{loader: l}, nil
}

// Probe loads the plan's modules. Broken means that the interpreter came up and a module failed, ended the process or
// crashed it; Unknown, that there was no proof either way: no such interpreter, a timeout, a signal from outside.
func (p *Interpreter) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	return p.loader.probe(ctx, plan)
}

func nodeCommand(d freshimport.Dialect, p probe.Plan, at site) (argv, env []string, err error) {
	env = append(d.Env(p.Env), "TMPDIR="+at.work, "NODE_PATH="+strings.Join(p.Path, ":"), "NODE_DISABLE_COMPILE_CACHE=1")
	return slices.Concat([]string{p.Interpreter}, p.Args, []string{"-e", nodeProgram}), env, nil
}

func rubyCommand(d freshimport.Dialect, p probe.Plan, at site) (argv, env []string, err error) {
	env = append(d.Env(p.Env), "TMPDIR="+at.work)
	if p.NoWrite {
		env = append(env, "BOOTSNAP_READONLY=1", "DISABLE_BOOTSNAP_COMPILE_CACHE=1") // the one cache of compiled code that is common
	}
	return slices.Concat([]string{p.Interpreter}, p.Args, []string{"-e", rubyProgram}), env, nil
}

func phpCommand(d freshimport.Dialect, p probe.Plan, at site) (argv, env []string, err error) {
	env = append(d.Env(p.Env), "TMPDIR="+at.work)
	argv = slices.Concat([]string{p.Interpreter}, p.Args, []string{
		"-dopcache.enable_cli=0", "-dopcache.file_cache=", "-dauto_prepend_file=", "-dauto_append_file=", "-ddisplay_errors=stderr", "-dlog_errors=0",
		"-dhtml_errors=0", "-dmax_execution_time=0", "-r", phpProgram,
	})
	return argv, env, nil
}

// jvmCommand puts the class that does the loading where the JVM finds it. The class path cannot carry it otherwise: a JVM
// reads classes from files alone, and to have it compile a source would need a compiler, which a JRE has not.
func jvmCommand(d freshimport.Dialect, p probe.Plan, at site) (argv, env []string, err error) {
	f, err := os.OpenFile(filepath.Join(at.own, jvmClass+".class"), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, nil, err
	}
	_, err = f.Write(jvmProgram)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, nil, fmt.Errorf("put the probe's class into %s: %w", at.own, err)
	}
	env = append(d.Env(p.Env), "TMPDIR="+at.work)
	argv = slices.Concat([]string{p.Interpreter}, p.Args, []string{
		// It starts quickly, is small, and writes nothing: no file of counters, no heap dump.
		"-XX:+IgnoreUnrecognizedVMOptions", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-XX:-UsePerfData", "-XX:-HeapDumpOnOutOfMemoryError",
		"-XX:ErrorFile=/dev/null", "-Djava.io.tmpdir=" + at.work,
		"-cp", strings.Join(append(slices.Clone(p.Path), at.own), ":"), jvmClass,
	})
	return argv, env, nil
}
