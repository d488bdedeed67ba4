// Package lognotify writes notices into a host's log. It is the notifier for hosts whose people watch a log
// collector.
//
// Call [New] with a logger. A log takes nothing back, so each delivery is one entry: the title is the message, and key,
// kind, episode, report and notes are attributes. Loud rows are warnings, others are information.
//
// Promised: an acknowledged row was handed to the logger's handler, and a row whose level the handler does not take is
// acknowledged as well, because the host decided so. Not promised: that an entry appears once; a log may repeat after a
// crash, and its reader tells by the key.
//
// Refused: a Config without a logger. Errors of the handler are returned by Notify, and then the row comes again.
package lognotify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/mulligan-dev/mulligan/notify"
)

// Config says where rows are logged.
type Config struct {
	// Log is required.
	Log *slog.Logger
}

// Notifier is a notify.Notifier over a logger.
type Notifier struct{ handler slog.Handler }

// New is a notifier that logs to c.Log.
func New(c Config) (*Notifier, error) {
	if c.Log == nil {
		return nil, errors.New("log notifier: Log is nil, want a logger")
	}
	return &Notifier{handler: c.Log.Handler()}, nil
}

// Notify logs the row. It goes to the handler itself, because a logger keeps the handler's error to itself, and an error
// that is not seen would be an acknowledgement.
func (n *Notifier) Notify(ctx context.Context, r notify.Row) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("log %s: %w", r.Key, err)
	}
	level := slog.LevelInfo
	if r.Loud {
		level = slog.LevelWarn
	}
	if !n.handler.Enabled(ctx, level) {
		return nil
	}
	entry := slog.NewRecord(r.At, level, notify.Line(r.Title, 0), 0)
	entry.AddAttrs(slog.String("key", r.Key), slog.String("kind", r.Kind))
	for _, a := range [][2]string{{"episode", r.Episode}, {"report", r.Report}} {
		if a[1] != "" {
			entry.AddAttrs(slog.String(a[0], notify.Line(a[1], 0)))
		}
	}
	if len(r.Notes) > 0 {
		notes := make([]string, len(r.Notes))
		for i, note := range r.Notes {
			notes[i] = note.Shown()
		}
		entry.AddAttrs(slog.Any("notes", notes))
	}
	if err := n.handler.Handle(ctx, entry); err != nil {
		return fmt.Errorf("log %s: %w", r.Key, err)
	}
	return nil
}
