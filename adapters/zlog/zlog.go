// Package zlog is a slog.Handler that writes through zerolog: one JSON object a line, groups kept as objects. The
// commands and the daemon log through it.
//
// Call [New] with where to write and give the handler to slog.New. For people rather than programs, let Out be a
// zerolog.ConsoleWriter.
//
// Promised: what testing/slogtest asks of a handler; each entry is written at once, entries never mix; an entry that
// could not be written is an error of Handle, which zerolog itself would only print. Times have milliseconds, durations
// are text ("1.5s"), and a level between two of zerolog's is the lower one.
//
// Refused: a Config without a writer.
package zlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Config says where and from which level on is logged.
type Config struct {
	// Out is required. Each entry is one Write, never two at a time.
	Out io.Writer
	// Level is the least level that is written; nil means slog.LevelInfo. A *slog.LevelVar can be changed later.
	Level slog.Leveler
}

// Handler is a slog.Handler.
type Handler struct {
	out   *output
	level slog.Leveler
	// groups are the open groups, the root first, each with the attributes that were given while it was the innermost.
	groups []group
}

type group struct {
	name  string
	attrs []slog.Attr
}

// output is shared by a handler and all that were derived from it.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

// entry takes one entry's bytes to the output and keeps the error, which zerolog reports to nobody.
type entry struct {
	out *output
	err error
}

// Write implements io.Writer.
func (e *entry) Write(b []byte) (int, error) {
	e.out.mu.Lock()
	defer e.out.mu.Unlock()
	n, err := e.out.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	e.err = err
	// Told to Handle alone: zerolog would print it to stderr as well.
	return len(b), nil
}

// New is a handler that writes to c.Out.
func New(c Config) (*Handler, error) {
	if c.Out == nil {
		return nil, errors.New("log handler: Out is nil, want a writer such as os.Stderr")
	}
	if c.Level == nil {
		c.Level = slog.LevelInfo
	}
	return &Handler{out: &output{w: c.Out}, level: c.Level, groups: []group{{}}}, nil
}

// Enabled reports whether entries of that level are written.
func (h *Handler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level.Level() }

// Handle writes one entry.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	w := entry{out: h.out}
	log := zerolog.New(&w)
	e := log.WithLevel(level(r.Level))
	if e == nil {
		return nil // the host has silenced zerolog as a whole
	}
	if !r.Time.IsZero() {
		e.Str(zerolog.TimestampFieldName, r.Time.Format("2006-01-02T15:04:05.000Z07:00"))
	}
	h.fill(e, 0, r)
	e.Msg(r.Message)
	if w.err != nil {
		return fmt.Errorf("write log entry %q: %w", r.Message, w.err)
	}
	return nil
}

// fill adds the group at depth and all within it, and reports whether anything came of it: a group without content is
// left out.
func (h *Handler) fill(e *zerolog.Event, depth int, r slog.Record) bool {
	some := false
	for _, a := range h.groups[depth].attrs {
		some = add(e, a) || some
	}
	if depth+1 < len(h.groups) {
		inner := e.CreateDict()
		if h.fill(inner, depth+1, r) {
			e.Dict(h.groups[depth+1].name, inner)
			some = true
		}
		return some
	}
	r.Attrs(func(a slog.Attr) bool {
		some = add(e, a) || some
		return true
	})
	return some
}

// WithAttrs is a handler whose entries carry these attributes too, in the group that is open now.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	next := h.clone()
	last := &next.groups[len(next.groups)-1]
	last.attrs = append(slices.Clip(last.attrs), attrs...)
	return next
}

// WithGroup is a handler that puts all that follows into an object of that name.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	next := h.clone()
	next.groups = append(next.groups, group{name: name})
	return next
}

func (h *Handler) clone() *Handler {
	next := *h
	next.groups = slices.Clone(h.groups)
	return &next
}

// add writes one attribute and reports whether there was something to write.
func add(e *zerolog.Event, a slog.Attr) bool {
	v := a.Value.Resolve()
	if a.Equal(slog.Attr{}) {
		return false
	}
	switch v.Kind() {
	case slog.KindGroup:
		return addGroup(e, a.Key, v.Group())
	case slog.KindString:
		e.Str(a.Key, v.String())
	case slog.KindInt64:
		e.Int64(a.Key, v.Int64())
	case slog.KindUint64:
		e.Uint64(a.Key, v.Uint64())
	case slog.KindFloat64:
		e.Float64(a.Key, v.Float64())
	case slog.KindBool:
		e.Bool(a.Key, v.Bool())
	case slog.KindDuration:
		e.Str(a.Key, v.Duration().String())
	case slog.KindTime:
		e.Str(a.Key, v.Time().Format(time.RFC3339Nano))
	default:
		if err, ok := v.Any().(error); ok {
			e.AnErr(a.Key, err)
			break
		}
		e.Interface(a.Key, v.Any())
	}
	return true
}

// addGroup writes a group as an object, or among its siblings when it has no name.
func addGroup(e *zerolog.Event, key string, attrs []slog.Attr) bool {
	some := false
	if key == "" {
		for _, a := range attrs {
			some = add(e, a) || some
		}
		return some
	}
	inner := e.CreateDict()
	for _, a := range attrs {
		some = add(inner, a) || some
	}
	if some {
		e.Dict(key, inner)
	}
	return some
}

func level(l slog.Level) zerolog.Level {
	switch {
	case l < slog.LevelDebug:
		return zerolog.TraceLevel
	case l < slog.LevelInfo:
		return zerolog.DebugLevel
	case l < slog.LevelWarn:
		return zerolog.InfoLevel
	case l < slog.LevelError:
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}
