package process

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"golang.org/x/sys/unix"
)

// program is what the probed interpreter runs.
//
//go:embed program.py
var program string

// DefaultOutputLimit bounds what is kept of a probed interpreter's output.
const DefaultOutputLimit = 16 << 10

// PythonConfig configures a [Python] prober. The zero value is ready to use.
type PythonConfig struct {
	// TempDir is where each probe gets its empty working folder; empty means the system's temporary folder.
	TempDir string
	// OutputLimit bounds the interpreter's output that is kept, in bytes from its end; zero means DefaultOutputLimit.
	OutputLimit int
}

// Python probes trees of Python code, from Python 2.7 on. It is safe for concurrent use.
//
// The interpreter is started with the run's own flags in an empty folder, in a session of its own, with nothing on
// stdin and an environment of [freshimport.Env]. Only the plan's search path comes before the interpreter's own; the
// working folder and PYTHONPATH never do. After the probe the whole group is killed, whatever the outcome.
type Python struct {
	temp  string
	limit int
}

var _ probe.Prober = (*Python)(nil)

// NewPython makes a prober.
func NewPython(c PythonConfig) (*Python, error) {
	var errs []error
	if c.OutputLimit < 0 {
		errs = append(errs, fmt.Errorf("OutputLimit: %d, want 0 for the default or more", c.OutputLimit))
	}
	if c.TempDir != "" && !filepath.IsAbs(c.TempDir) {
		errs = append(errs, fmt.Errorf("TempDir: %q, want an absolute path or nothing", c.TempDir))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("new python prober: %w", err)
	}
	if c.OutputLimit == 0 {
		c.OutputLimit = DefaultOutputLimit
	}
	return &Python{temp: c.TempDir, limit: c.OutputLimit}, nil
}

// Probe imports the plan's modules. Broken means that the interpreter came up and a module failed, ended the process or
// crashed it; Unknown, that there was no proof either way: no such interpreter, a timeout, a signal from outside. A
// module named "main:..." (see [freshimport.Main]) or "x.__main__" is compiled and what it imports is imported; it is
// never run.
func (p *Python) Probe(ctx context.Context, plan probe.Plan) (probe.Result, error) {
	began := time.Now()
	finish := func(r probe.Result) probe.Result {
		r.Took = time.Since(began)
		return r
	}
	if err := ctx.Err(); err != nil {
		return finish(unknown(err)), fmt.Errorf("probe with %s: %w", plan.Interpreter, err)
	}
	if err := checkPlan(plan); err != nil {
		return finish(unknown(err)), nil
	}
	scratch, err := os.MkdirTemp(p.temp, "mulligan-probe-")
	if err != nil {
		return finish(unknown(err)), nil
	}
	// What a module left there is of no more use; what cannot be removed is in the system's temporary folder.
	defer func() { _ = os.RemoveAll(scratch) }()

	s, err := p.start(plan, scratch)
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
func checkPlan(plan probe.Plan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	var errs []error
	for _, m := range plan.Modules {
		if strings.ContainsRune(m, 0) || m == "" {
			errs = append(errs, fmt.Errorf("modules: %q is no module name", m))
		}
	}
	for _, d := range plan.Path {
		if strings.ContainsRune(d, 0) {
			errs = append(errs, fmt.Errorf("path: %q is no folder name", d))
		}
	}
	if len(plan.Modules) == 0 {
		errs = append(errs, errors.New("modules: none, and a probe of nothing proves nothing"))
	}
	if err := freshimport.CheckFlags(plan.Args); err != nil {
		errs = append(errs, fmt.Errorf("args: %w", err))
	}
	return errors.Join(errs...)
}

// session is one running probe.
type session struct {
	child  *child
	exited chan struct{} // closed when the interpreter has ended, before it is reaped
	report *os.File      // our end of the socket
	output *os.File      // read end of its stdout and stderr
	said   *tail
	read   sync.WaitGroup // the reader of output
	nonce  string
}

func (p *Python) start(plan probe.Plan, scratch string) (*session, error) {
	argv := append([]string{plan.Interpreter}, plan.Args...)
	env := append(freshimport.Env(plan.Env), "TMPDIR="+scratch)
	if plan.NoWrite {
		argv = append(argv, "-B")
		env = append(env, "PYTHONDONTWRITEBYTECODE=1") // also for what a module starts
	}
	argv = append(argv, "-c", program)

	ours, theirs, err := socketpair()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	r, w, err := pipe()
	if err != nil {
		ours.Close()
		return nil, err
	}
	defer w.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		ours.Close()
		r.Close()
		return nil, err
	}
	defer null.Close()
	c, err := sealed(func() (*child, error) {
		files := []*os.File{null, w, w, theirs}
		return start(plan.Interpreter, argv, scratch, env, files, &syscall.SysProcAttr{Setsid: true})
	})
	if err != nil {
		ours.Close()
		r.Close()
		return nil, fmt.Errorf("start the interpreter: %w: check that the run's interpreter is still installed", err)
	}
	s := &session{
		child: c, exited: make(chan struct{}), report: ours, output: r, said: newTail(p.limit), nonce: newNonce(),
	}
	go func() {
		c.await()
		close(s.exited)
	}()
	s.read.Add(1)
	go func() {
		defer s.read.Done()
		s.said.copyFrom(r)
	}()
	return s, nil
}

// run sends the request, follows the report to its end and leaves nothing of the group behind.
func (s *session) run(ctx context.Context, plan probe.Plan, deadline time.Time) probe.Result {
	_ = s.report.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = s.report.SetDeadline(time.Unix(1, 0)) })
	// A process that a module left behind may hold the socket open: the interpreter's own end counts.
	watched := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.exited:
			_ = s.report.SetDeadline(time.Unix(1, 0))
		case <-finished:
		}
	}()

	rep := report{nonce: s.nonce, names: plan.Modules}
	s.follow(&rep, plan)
	close(finished)
	<-watched
	stop()
	if !rep.done && !rep.broken {
		s.settle(ctx, &rep, deadline)
	}
	timedOut := !s.ended()

	// The leader is not reaped yet, so its group is still its own.
	_ = s.child.signalGroup(unix.SIGKILL)
	defer s.report.Close()
	defer s.output.Close()
	if !s.endsWithin(killWait) {
		// It hangs in the kernel, on a dead file server for example. A timeout holds all the same.
		go func() {
			<-s.exited
			s.child.reap()
		}()
		return probe.Result{Outcome: probe.Unknown, Failed: rep.module(),
			Detail: "the interpreter cannot be ended: it hangs in a system call"}
	}
	exit := s.child.reap()
	_ = s.output.SetReadDeadline(time.Unix(1, 0))
	s.read.Wait()
	s.said.drain(s.output)
	return rep.result(exit, timedOut, ctx, s.said.String())
}

// follow sends the request and reads the report until it is done, or broken off.
func (s *session) follow(rep *report, plan probe.Plan) {
	fields := append([]string{s.nonce, strconv.Itoa(len(plan.Path))}, plan.Path...)
	fields = append(fields, plan.Modules...)
	if _, err := s.report.WriteString(strings.Join(fields, "\x00")); err != nil {
		return // it ended before it listened
	}
	if conn, err := s.report.SyscallConn(); err == nil {
		_ = conn.Control(func(fd uintptr) { _ = unix.Shutdown(int(fd), unix.SHUT_WR) })
	}
	buf := make([]byte, 4096)
	for !rep.done && !rep.broken {
		n, err := s.report.Read(buf)
		rep.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// settle waits for the interpreter after its report broke off, and takes what the socket still holds.
func (s *session) settle(ctx context.Context, rep *report, deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-s.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
	drainFile(s.report, 1<<20, rep.add)
}

func (s *session) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.exited:
		return true
	case <-timer.C:
		return false
	}
}

func (s *session) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}

// report is what the interpreter has proven, folded from the lines that carry the nonce.
type report struct {
	nonce   string
	names   []string
	partial []byte
	up      bool
	done    bool // every module was imported
	loading int  // index of the module being loaded, -1 before the first
	failure string
	broken  bool
}

func (r *report) add(b []byte) {
	r.partial = append(r.partial, b...)
	for {
		i := bytes.IndexByte(r.partial, '\n')
		if i < 0 {
			if len(r.partial) > 64<<10 {
				r.partial = nil // no line of ours is this long
			}
			return
		}
		r.line(string(r.partial[:i]))
		r.partial = r.partial[i+1:]
	}
}

func (r *report) line(line string) {
	rest, ok := strings.CutPrefix(line, r.nonce+" ")
	if !ok {
		return
	}
	verb, arg, _ := strings.Cut(rest, " ")
	switch verb {
	case "up":
		r.up, r.loading = true, -1
	case "load":
		r.loading, _ = strconv.Atoi(arg)
	case "fail":
		i, text, _ := strings.Cut(arg, " ")
		r.loading, _ = strconv.Atoi(i)
		r.failure = unescape(text)
		r.broken = true
	case "done":
		r.done = true
	}
}

// module is the one that was loading.
func (r *report) module() string {
	if r.up && r.loading >= 0 && r.loading < len(r.names) {
		return r.names[r.loading]
	}
	return ""
}

// result judges a probe that has ended.
func (r *report) result(exit classify.Exit, running bool, ctx context.Context, said string) probe.Result {
	out := probe.Result{Failed: r.module(), Detail: strings.TrimSpace(said)}
	note := func(s string) {
		if s != "" && !strings.Contains(out.Detail, s) {
			out.Detail = strings.TrimSpace(out.Detail + "\n" + s)
		}
	}
	switch {
	case r.done:
		out.Outcome, out.Failed = probe.Healthy, ""
	case r.broken:
		out.Outcome = probe.Broken
		note(r.failure)
	case running && ctx.Err() != nil:
		out.Outcome = probe.Unknown
		note("the probe was called off")
	case running:
		out.Outcome = probe.Unknown
		note("the probe did not come to an end in time")
	case !r.up:
		out.Outcome = probe.Unknown
		note("the interpreter ended before the probe began: " + describe(exit))
	case fromOutside(exit.Signal):
		out.Outcome = probe.Unknown
		note("the interpreter was ended from outside: " + describe(exit))
	default:
		out.Outcome = probe.Broken
		note("the interpreter ended inside the import: " + describe(exit))
	}
	return out
}

// fromOutside reports whether a signal says nothing of the code that was being imported.
func fromOutside(signal string) bool {
	switch signal {
	case "SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT", "SIGXCPU", "SIGPWR":
		return true
	}
	return false
}

func describe(e classify.Exit) string {
	if e.Signal != "" {
		return "it died of " + e.Signal
	}
	return "it exited with code " + strconv.Itoa(e.Code)
}

// unescape undoes the program's escape of line ends.
func unescape(s string) string {
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(s)
}

func newNonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the program first
	return hex.EncodeToString(b[:])
}
