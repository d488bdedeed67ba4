package process

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe"
)

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
