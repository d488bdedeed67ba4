package notifytest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/mulligan-dev/mulligan/notify"
)

// Recorder is a notifier that remembers. The zero Recorder is ready; it is safe for concurrent use.
type Recorder struct {
	// Err, when it is set before use, is what every delivery ends in: nothing is remembered then.
	Err error

	mu     sync.Mutex
	rows   []notify.Row
	toasts int
}

// Notify keeps the row under its key.
func (n *Recorder) Notify(ctx context.Context, r notify.Row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.Err != nil {
		return n.Err
	}
	i := slices.IndexFunc(n.rows, func(h notify.Row) bool { return h.Key == r.Key })
	if i < 0 {
		n.rows = append(n.rows, notify.Row{})
		i = len(n.rows) - 1
	}
	n.rows[i] = notify.Merge(n.rows[i], r)
	if n.rows[i].Toast {
		n.toasts++
	}
	return nil
}

// Rows are the rows as a person sees them, in the order in which their keys first came.
func (n *Recorder) Rows() []notify.Row {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.rows)
}

// Toasts is the number of toasts that were shown.
func (n *Recorder) Toasts() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.toasts
}

// Text is all rows as plain lines.
func (n *Recorder) Text() string {
	var b strings.Builder
	for _, r := range n.Rows() {
		b.WriteString(notify.Line(r.Title, 0) + "\n")
		for _, note := range r.Notes {
			b.WriteString("  " + note.Shown() + "\n")
		}
	}
	return b.String()
}
