package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// remote reports the types that carry the traceback of another process as their text.
func remote(typ string) bool {
	return strings.HasSuffix(typ, "RemoteTraceback") || typ == "ExceptionWithTraceback" || typ == "RemoteError"
}

// remoteAt parses the quoted traceback behind the line of a remote failure. Without one the failure stays as it is.
func (p *parser) remoteAt(f *classify.Failure, i int) (*classify.Failure, int) {
	// The text of the other process stands between two lines of triple quotes.
	for i < len(p.lines) && strings.TrimSpace(p.lines[i]) == "" {
		i++
	}
	mark := ""
	if i < len(p.lines) {
		mark = strings.TrimSpace(p.lines[i])
	}
	if mark != `"""` && mark != `'''` || p.nesting >= maxNesting {
		i = p.message(f, i)
		p.finish(f)
		return f, i
	}
	from := i + 1
	end := from
	for end < len(p.lines) && strings.TrimSpace(p.lines[end]) != mark {
		end++
	}
	inner := parser{lines: p.lines[from:end], nesting: p.nesting + 1}
	end = min(end+1, len(p.lines))
	got := inner.last()
	if got == nil {
		p.finish(f)
		return f, end
	}
	got.First, got.Last = f.First, end-1
	switch {
	case f.Type == "ExceptionWithTraceback":
		// Nothing but an envelope: the exception inside is the one that was raised.
		got.Frames, got.Line = append(append([]classify.Frame{}, f.Frames...), got.Frames...), -1
		return got, end
	case remote(f.Type):
		// The pool raises the failure again; linked joins the two.
		return &classify.Failure{Type: f.Type, Group: []*classify.Failure{got}, First: f.First}, end
	}
	f.Cause = got
	p.finish(f)
	return f, end
}

// merged joins the failure that a pool raised again with the traceback of the process where it first came up: the frames
// there are the inner ones.
func merged(f, envelope *classify.Failure) *classify.Failure {
	if len(envelope.Group) == 0 {
		return f
	}
	// A pool that wraps what it raises again has put a failure around the other one; one that does not has raised the
	// same.
	in := envelope.Group[0]
	if in.Type != f.Type {
		f.Cause = in
		return f
	}
	frames := append(f.Frames, in.Frames...)
	if f.Kind == classify.KindOther || f.Module == "" {
		// The worker printed its source lines, so its reading is the better one. The place in the log stays the pool's.
		first, line, last := f.First, f.Line, f.Last
		*f = *in
		f.First, f.Line, f.Last = first, line, last
	}
	f.Frames = frames
	f.Cause, f.Context, f.Group = in.Cause, in.Context, in.Group
	f.First = min(f.First, envelope.First)
	return f
}

// ray parses the task error of an actor system, which prints the frames of the worker below its own line and the real
// exception last.
func (p *parser) ray(f *classify.Failure, i int) (*classify.Failure, int) {
	worker, next := p.traceback(i, false)
	if worker.Cut || len(worker.Frames) == 0 {
		i = p.message(f, i)
		p.finish(f)
		return f, i
	}
	worker.Frames = append(append([]classify.Frame{}, f.Frames...), worker.Frames...)
	worker.First = f.First
	return worker, next
}
