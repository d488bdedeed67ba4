package canary

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// gap is the pause between two looks at a candidate that is not alive yet.
const gap = 100 * time.Millisecond

// trial is one run of a canary.
type trial struct {
	c      Config
	id     string
	dir    string
	remove func()   // takes dir away
	live   []string // resolved
	port   int
	socket *os.File // the listener that it inherits, ours until it has started
	env    []string

	// root is the candidate's first process and group, 0 when there is none, since when that started, by the kernel's
	// ticks. known are processes of the candidate's that were seen, with their start times, sockets the listeners.
	root    int
	since   uint64
	known   map[int]uint64
	sockets map[string]bool

	isolation Isolation
	why       string
}

func (c *Canary) try(ctx context.Context) Result {
	t := &trial{c: c.c, known: map[int]uint64{}, sockets: map[string]bool{}, isolation: Unproven, why: "nothing was started"}
	if r := t.prepare(); r != nil {
		return t.done(*r, "")
	}
	defer t.remove()
	defer t.pass()
	if r := t.preflight(ctx); r != nil {
		return *r
	}
	return t.boot(ctx)
}

// done completes a result with what holds for the whole trial.
func (t *trial) done(r Result, tail string) Result {
	r.Isolation, r.IsolationText, r.Tail = t.isolation, t.why, tail
	return r
}

// prepare makes the folder, finds the port and writes the environment.
func (t *trial) prepare() *Result {
	fail := func(what string, err error) *Result {
		r := failed(CodeSetup, "%s: %v", what, err)
		return &r
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return fail("make an id", err)
	}
	t.id = hex.EncodeToString(random[:])
	dir, remove, err := durable.Scratch("", "mulligan-canary-")
	if err != nil {
		return fail("make the canary's folder", err)
	}
	t.remove = remove
	ok := false
	defer func() {
		if !ok {
			t.pass()
			t.remove()
		}
	}()
	if t.dir, err = filepath.EvalSymlinks(dir); err != nil {
		return fail("make the canary's folder", err)
	}
	for _, p := range t.c.Live {
		real, err := filepath.EvalSymlinks(p)
		if errors.Is(err, os.ErrNotExist) {
			continue // what is not there cannot be reached, and what it makes there is no living service's
		}
		if err != nil {
			return fail("find the live path "+p, err)
		}
		t.live = append(t.live, real)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(t.c.Port))
	if err != nil && t.c.Port != 0 {
		r := failed(CodePortTaken, "port %d cannot be had: %v", t.c.Port, err)
		return &r
	}
	if err != nil {
		return fail("find a free port", err)
	}
	defer l.Close()
	t.port = l.Addr().(*net.TCPAddr).Port
	if t.c.Inherit {
		if t.socket, err = l.(*net.TCPListener).File(); err != nil {
			return fail("pass the listener on", err)
		}
		if err := t.inherited(t.socket); err != nil {
			return fail("pass the listener on", err)
		}
	}
	if err := t.environment(); err != nil {
		return fail("make the state folders", err)
	}
	ok = true
	return nil
}

// tied are the variables that tie a process to the unit or the run of the living one.
var tied = []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES",
	"INVOCATION_ID", "MULLIGAN_PHASE_FILE"}

func (t *trial) environment() error {
	base := t.c.Env
	if base == nil {
		base = os.Environ()
	}
	set := map[string]string{
		inside.Var: t.id, inside.DirVar: t.dir,
		"MULLIGAN_HOME": filepath.Join(t.dir, "home"), "TMPDIR": filepath.Join(t.dir, "tmp"),
		t.c.PortVar: strconv.Itoa(t.port),
	}
	made := []string{set["MULLIGAN_HOME"], set["TMPDIR"]}
	for _, o := range t.c.Overrides {
		path := o.Path
		switch {
		case path == "":
			path = filepath.Join(t.dir, "state", o.Var)
		case !filepath.IsAbs(path):
			path = filepath.Join(t.dir, path)
		}
		if path != o.Path {
			made = append(made, path)
		}
		set[o.Var] = path
	}
	for _, p := range made {
		if err := os.MkdirAll(p, 0o700); err != nil {
			return err
		}
	}
	drop := map[string]bool{}
	for _, name := range tied {
		drop[name] = true
	}
	for _, kv := range base {
		name, _, _ := strings.Cut(kv, "=")
		if _, ours := set[name]; !ours && !drop[name] {
			t.env = append(t.env, t.fill(kv))
		}
	}
	for name, value := range set {
		t.env = append(t.env, name+"="+value)
	}
	return nil
}

// fill puts port, address and folder in.
func (t *trial) fill(s string) string {
	port := strconv.Itoa(t.port)
	return strings.NewReplacer("{port}", port, "{addr}", "127.0.0.1:"+port, "{dir}", t.dir).Replace(s)
}

func (t *trial) filled(command []string) []string {
	out := make([]string, len(command))
	for i, s := range command {
		out[i] = t.fill(s)
	}
	return out
}

func (t *trial) preflight(ctx context.Context) *Result {
	if len(t.c.Preflight) == 0 {
		return nil
	}
	p, err := t.start(ctx, t.filled(t.c.Preflight), nil)
	if err != nil {
		r := t.done(failed(CodePreflight, "the preflight could not be started: %v", err), "")
		return &r
	}
	t.began(p.pid)
	over := time.NewTimer(t.c.PreflightWithin)
	defer over.Stop()
	var r *Result
	fail := func(code Code, format string, args ...any) {
		f := failed(code, format, args...)
		r = &f
	}
	select {
	case <-p.exited:
		if text := p.ended(); text != "" {
			fail(CodePreflight, "the preflight ended with %s", text)
		}
	case <-over.C:
		fail(CodePreflight, "the preflight did not end within %v", t.c.PreflightWithin)
	case <-ctx.Done():
		fail(CodeCanceled, "the canary was given up: %v", context.Cause(ctx))
	}
	left := t.teardown(p)
	if r == nil && left != "" {
		fail(CodeLeaked, "after the preflight %s", left)
	}
	if r == nil {
		return nil
	}
	full := t.done(*r, p.tail())
	return &full
}

// boot starts the candidate, waits for it, and ends it.
func (t *trial) boot(ctx context.Context) Result {
	p, err := t.start(ctx, t.filled(t.c.Command), t.socket)
	if err != nil {
		return t.done(failed(CodeNotStarted, "the candidate could not be started: %v", err), "")
	}
	t.began(p.pid)
	t.pass()
	r := t.wait(ctx, p)
	if path := t.openLive(); path != "" && r.Code != CodeLivePath {
		r = livePath(path)
	}
	left := t.teardown(p)
	switch {
	case left == "":
	case r.Outcome == Passed:
		r.Outcome, r.Code, r.Text = Failed, CodeLeaked, "it came up, and when it was ended "+left
	default:
		r.Text += "; when it was ended " + left
	}
	return t.done(r, p.tail())
}

// pass gives our own handle of the listener up: from here on it is the candidate's alone.
func (t *trial) pass() {
	if t.socket != nil {
		_ = t.socket.Close()
		t.socket = nil
	}
}

func livePath(path string) Result {
	return failed(CodeLivePath, "it has %s of the living service open", path)
}

// wait asks until the candidate is alive, has ended, or the time is over.
func (t *trial) wait(ctx context.Context, p *process) Result {
	ctx, cancel := context.WithTimeoutCause(ctx, t.c.Within, errLate)
	defer cancel()
	tick := time.NewTicker(gap)
	defer tick.Stop()
	last := failed(CodeNoAnswer, "it did not answer within %v", t.c.Within)
	for {
		if path := t.openLive(); path != "" {
			return livePath(path)
		}
		if len(t.live) == 0 {
			t.members() // whoever is seen now is known when the others are gone
		}
		if r, answered := t.ask(ctx); answered {
			if r.Outcome == Passed {
				return r
			}
			last = r
		}
		select {
		case <-p.exited:
			return failed(CodeExited, "it ended before it was alive, with %s", orNothing(p.ended()))
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errLate) {
				return failed(CodeCanceled, "the canary was given up: %v", context.Cause(ctx))
			}
			return last
		case <-tick.C:
		}
	}
}

var errLate = errors.New("the time is over")

func orNothing(s string) string {
	if s == "" {
		return "exit status 0"
	}
	return s
}

// ask is one attempt; answered is false when nothing spoke HTTP.
func (t *trial) ask(ctx context.Context) (r Result, answered bool) {
	ctx, cancel := context.WithTimeout(ctx, t.c.Attempt)
	defer cancel()
	url := fmt.Sprintf("http://127.0.0.1:%d%s", t.port, t.c.Path)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return failed(CodeSetup, "%v", err), true
	}
	client := &http.Client{
		// No proxy, no connection kept, and no other page in the place of the one that was asked for.
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	res, err := client.Do(req)
	if err != nil {
		return Result{}, false
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10))
	res.Body.Close()
	origin := t.origin()
	switch {
	case res.StatusCode == http.StatusOK && origin != foreign,
		res.StatusCode == http.StatusUnauthorized && origin == proven:
		r = Result{Outcome: Passed, Code: CodeAlive, Text: fmt.Sprintf("it answered %d", res.StatusCode)}
	case origin == foreign:
		r = failed(CodeUnprovenFrom, "%d was answered on port %d by another process than the candidate", res.StatusCode, t.port)
	case res.StatusCode == http.StatusUnauthorized:
		r = failed(CodeUnprovenFrom, "401 was answered on port %d, and nothing proves that it came from the candidate", t.port)
	default:
		r = failed(CodeBadAnswer, "it answered %d, and only 200 or its own 401 is alive", res.StatusCode)
	}
	r.Status = res.StatusCode
	return r, true
}
