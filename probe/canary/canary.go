package canary

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// The bounds that count where a config names none.
const (
	DefaultPreflight = 20 * time.Second
	DefaultWithin    = 45 * time.Second
	DefaultAttempt   = 800 * time.Millisecond
	DefaultGrace     = 5 * time.Second
	DefaultPath      = "/healthz"
	DefaultPortVar   = "PORT"
)

// Config is the candidate and how it is tried. Command, Dir and Env are a launch recipe.
type Config struct {
	// Command is the candidate's program and arguments. In them and in Env, {port}, {addr} (127.0.0.1 with the port) and
	// {dir} (the canary's folder) are put in. Empty means that nothing is known of how to boot it: the canary is skipped.
	Command []string
	// Dir is its working folder; empty is ours.
	Dir string
	// Env is its environment, KEY=value; nil means ours. What ties a process to the unit of the living one
	// (NOTIFY_SOCKET, WATCHDOG_*, LISTEN_*) is left out.
	Env []string
	// Overrides move its state away from the living service's.
	Overrides []Override
	// Live are the files and folders of the living service that it must not reach, absolute.
	Live []string
	// Preflight is a command that has to succeed first, such as a check of the configuration; empty for none. It runs as
	// the candidate does.
	Preflight []string
	// Path is what is asked for, DefaultPath when empty.
	Path string
	// Port is where it listens on 127.0.0.1; 0 takes a free one. PortVar is the variable that tells it, DefaultPortVar when
	// empty.
	Port    int
	PortVar string
	// Inherit hands it the listening socket, as descriptor 3 with LISTEN_FDS=1, instead of a port to bind.
	Inherit bool
	// Confine keeps it away from the live paths in place of Landlock; nil for none.
	Confine Confiner
	// PreflightWithin and Within bound the preflight and the time until it is alive, Attempt one question, Grace the time
	// between SIGTERM and SIGKILL. Zero means the defaults above.
	PreflightWithin, Within, Attempt, Grace time.Duration
	// Log is warned of what was skipped; nil discards.
	Log *slog.Logger

	noLandlock bool // tests of what the look at descriptors finds alone
}

// Override is the variable by which the candidate is told a state folder. A Path that is empty or relative lies in the
// canary's folder, and is made there; an absolute one is passed on as it is.
type Override struct {
	Var  string
	Path string
}

// Confiner starts a candidate where the system keeps it away from paths: the systemd adapter can, with a transient unit.
type Confiner interface {
	// Confine starts it, and returns when it has started. The environment has to reach all its processes.
	Confine(ctx context.Context, l Launch) (Confined, error)
}

// Launch is what a Confiner starts.
type Launch struct {
	// ID is the canary's id, fit for the name of a unit.
	ID      string
	Command []string
	Dir     string
	Env     []string
	// Inaccessible are the paths to keep it away from, absolute and resolved.
	Inaccessible []string
	// Output is the file that standard output and error are appended to.
	Output string
}

// Confined is a candidate that a Confiner started.
type Confined struct {
	// By names what enforces, for people: "systemd unit mulligan-canary-x.service".
	By string
	// Unproven says why the paths may be within its reach all the same, empty when they are not.
	Unproven string
	// PID is its first process.
	PID int
	// Exited is closed when that has ended.
	Exited <-chan struct{}
	// Stop ends all its processes, SIGTERM first and SIGKILL after the grace.
	Stop func(ctx context.Context, grace time.Duration) error
}

// Outcome is what a canary came to.
type Outcome string

// The outcomes. Failed aborts what the canary was for.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Code is the reason of an outcome. Codes are stable.
type Code string

// The codes, by outcome.
const (
	CodeAlive Code = "alive"

	CodeNoCommand    Code = "no_command"    // skipped: there is no recipe
	CodeInside       Code = "inside_canary" // skipped: this process is a canary itself
	CodeUnsupported  Code = "unsupported"   // skipped: not on this system
	CodeSetup        Code = "setup"         // failed: folder, port or socket could not be had
	CodePortTaken    Code = "port_taken"    // failed: somebody listens on the port that was asked for
	CodePreflight    Code = "preflight"     // failed: the preflight ended badly or took too long
	CodeNotStarted   Code = "not_started"   // failed: the program could not be started
	CodeExited       Code = "exited"        // failed: it ended before it was alive
	CodeNoAnswer     Code = "no_answer"     // failed: it was never alive, and nothing answered
	CodeBadAnswer    Code = "bad_answer"    // failed: answers came, and none was 200 or 401
	CodeUnprovenFrom Code = "unproven_from" // failed: 401, or an answer that provably was somebody else's
	CodeLivePath     Code = "live_path"     // failed: a declared live path was found open in it
	CodeLeaked       Code = "leaked"        // failed: a process or the port was left behind
	CodeCanceled     Code = "canceled"      // failed: the caller gave up
)

// Isolation says whether the candidate could have reached the live paths.
type Isolation string

// The two answers. Unproven is also what holds when no live path is declared.
const (
	Enforced Isolation = "enforced"
	Unproven Isolation = "unproven"
)

// Result is what became of a canary.
type Result struct {
	Outcome Outcome `json:"outcome"`
	Code    Code    `json:"code"`
	// Text is the reason in a sentence.
	Text string `json:"text"`
	// Isolation, and by what it is enforced or why it is not.
	Isolation     Isolation `json:"isolation,omitempty"`
	IsolationText string    `json:"isolation_text,omitempty"`
	// Status is the HTTP status of the last answer, 0 without one.
	Status int `json:"status,omitempty"`
	// Tail is the end of what it wrote, bounded.
	Tail string `json:"tail,omitempty"`
	// Took is how long all of it took.
	Took time.Duration `json:"took,omitempty"`
}

// Proceed reports whether what the canary was for may go on: it passed, or there was nothing to try.
func (r Result) Proceed() bool { return r.Outcome == Passed || r.Outcome == Skipped }

// Canary is a candidate that can be tried. It may be run again, also at the same time unless its port is fixed.
type Canary struct{ c Config }

// New validates the config and reports all that is wrong with it at once.
func New(c Config) (*Canary, error) {
	var errs []error
	for _, p := range c.Live {
		if !filepath.IsAbs(p) || filepath.Clean(p) == "/" {
			errs = append(errs, fmt.Errorf("Live: %q, want an absolute path below /", p))
		}
	}
	for _, o := range c.Overrides {
		if o.Var == "" || strings.ContainsAny(o.Var, "=\x00") || slices.Contains([]string{inside.Var, inside.DirVar}, o.Var) {
			errs = append(errs, fmt.Errorf("Overrides: %q is no variable that can be set", o.Var))
		}
		if o.Path != "" && !filepath.IsAbs(o.Path) && !filepath.IsLocal(o.Path) {
			errs = append(errs, fmt.Errorf("Overrides: %s=%q leads out of the canary's folder; write an absolute path if that is meant", o.Var, o.Path))
		}
	}
	for _, kv := range c.Env {
		if key, _, ok := strings.Cut(kv, "="); !ok || key == "" {
			errs = append(errs, fmt.Errorf("Env: %q is not KEY=value", kv))
		}
	}
	if c.Port < 0 || c.Port > 65535 {
		errs = append(errs, fmt.Errorf("Port: %d, want 0 for a free one, to 65535", c.Port))
	}
	if c.Path != "" && c.Path[0] != '/' {
		errs = append(errs, fmt.Errorf("Path: %q does not begin with /", c.Path))
	}
	if c.Inherit && c.Confine != nil {
		errs = append(errs, errors.New("Inherit: a Confiner passes no socket on"))
	}
	if c.PreflightWithin < 0 || c.Within < 0 || c.Attempt < 0 || c.Grace < 0 {
		errs = append(errs, errors.New("PreflightWithin, Within, Attempt and Grace are not negative"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make a canary: %w", err)
	}
	for d, normal := range map[*time.Duration]time.Duration{&c.PreflightWithin: DefaultPreflight, &c.Within: DefaultWithin,
		&c.Attempt: DefaultAttempt, &c.Grace: DefaultGrace} {
		if *d == 0 {
			*d = normal
		}
	}
	if c.Path == "" {
		c.Path = DefaultPath
	}
	if c.PortVar == "" {
		c.PortVar = DefaultPortVar
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Canary{c}, nil
}

// Run boots the candidate, waits until it is alive, and ends it again. A ctx that ends is a failed canary.
func (c *Canary) Run(ctx context.Context) Result {
	began := time.Now()
	r := c.run(ctx)
	r.Took = time.Since(began)
	switch {
	case r.Outcome == Skipped:
		c.c.Log.Warn("no canary was booted, and the restart goes on without", "code", string(r.Code), "text", r.Text)
	case r.Isolation == Unproven:
		c.c.Log.Warn("the canary's isolation is unproven", "text", r.IsolationText)
	}
	return r
}

func (c *Canary) run(ctx context.Context) Result {
	switch {
	case inside.Inert():
		return Result{Outcome: Skipped, Code: CodeInside, Text: "this process is a canary itself"}
	case len(c.c.Command) == 0:
		return Result{Outcome: Skipped, Code: CodeNoCommand, Text: "it is not known how to boot a candidate: no command is configured, and none was found in a unit"}
	}
	return c.try(ctx)
}

func failed(code Code, format string, args ...any) Result {
	return Result{Outcome: Failed, Code: code, Text: fmt.Sprintf(format, args...)}
}
