package cli

import (
	"context"
	"log/slog"

	"github.com/mulligan-dev/mulligan/notify"
)

// redactor hands on log entries with what must not be shown taken out: a log is read by people, and kept where more of them
// can read it than the state folder.
type redactor struct{ slog.Handler }

func (h redactor) Handle(ctx context.Context, r slog.Record) error {
	out := slog.NewRecord(r.Time, r.Level, notify.Redact(r.Message), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(fitAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, out)
}

func (h redactor) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = fitAttr(a)
	}
	return redactor{h.Handler.WithAttrs(out)}
}

func (h redactor) WithGroup(name string) slog.Handler { return redactor{h.Handler.WithGroup(name)} }

// fitAttr is an attribute fit to be read. Numbers and times hold nothing; what is neither text nor an error is left to
// whoever gave it, as rows are, which went through the redactor already.
func fitAttr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch v := a.Value.Any().(type) {
	case string:
		return slog.String(a.Key, notify.Redact(v))
	case error:
		return slog.String(a.Key, notify.Redact(v.Error()))
	case []slog.Attr:
		group := make([]slog.Attr, len(v))
		for i, in := range v {
			group[i] = fitAttr(in)
		}
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(group...)}
	}
	return a
}
