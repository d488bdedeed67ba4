// Package terminal shows notices as lines on a terminal, or on anything else that takes text. It is the notifier for
// somebody who watches, and the plainest example of one.
//
// Call [New] with where to write and hand the result to the engine. A terminal takes nothing back, so it appends: of a
// row that grows it writes the new title and the notes that are new, and a row that did not change is not written
// again.
//
// Promised: what was acknowledged was written; text from outside cannot act on the terminal; a bell, where it is wanted,
// rings once a key. Not promised: after a restart of the process a row may be written a second time, because what was
// written is remembered in memory alone, and there for the last 256 keys.
//
// Refused: a Config without a writer. Failure to write is returned by Notify, and then the row comes again.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/notify"
)

// Config says where and how rows are written.
type Config struct {
	// Out is required. Writes to it are not concurrent with one another.
	Out io.Writer
	// Color adds ANSI colours. Leave it off unless Out is a terminal.
	Color bool
	// Bell rings the terminal's bell for a toast.
	Bell bool
	// Zone is where the reader is; nil means UTC.
	Zone *time.Location
}

// Notifier is a notify.Notifier that appends lines.
type Notifier struct {
	cfg Config

	mu sync.Mutex
	// shown are the rows as they stand on the terminal, the one that was written last at the end.
	shown []notify.Row
}

// remembered bounds the rows that are compared with; an episode that is older is over.
const remembered = 256

// New is a notifier that writes to c.Out.
func New(c Config) (*Notifier, error) {
	if c.Out == nil {
		return nil, errors.New("terminal notifier: Out is nil, want a writer such as os.Stderr")
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	return &Notifier{cfg: c}, nil
}

// Notify writes what is new of the row.
func (n *Notifier) Notify(ctx context.Context, r notify.Row) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("show %s on the terminal: %w", r.Key, err)
	}
	i := slices.IndexFunc(n.shown, func(s notify.Row) bool { return s.Key == r.Key })
	var was notify.Row
	if i >= 0 {
		was = n.shown[i]
	}
	next := notify.Merge(was, r)
	if text := n.render(was, next); text != "" {
		if _, err := io.WriteString(n.cfg.Out, text); err != nil {
			return fmt.Errorf("show %s on the terminal: %w", r.Key, err)
		}
	}
	if i >= 0 {
		n.shown = slices.Delete(n.shown, i, i+1)
	}
	if len(n.shown) == remembered {
		n.shown = slices.Delete(n.shown, 0, 1)
	}
	n.shown = append(n.shown, next)
	return nil
}

// render is what has to be written so that a reader of was knows next. It is one text, written at once.
func (n *Notifier) render(was, next notify.Row) string {
	var notes []string
	for _, note := range next.Notes {
		if !slices.Contains(was.Notes, note) {
			// Twice redacted is redacted: rows of a host's own come as they are.
			notes = append(notes, note.Shown())
		}
	}
	if was.Key != "" && len(notes) == 0 && was.Title == next.Title {
		return ""
	}
	var b strings.Builder
	if next.Toast && n.cfg.Bell {
		b.WriteByte('\a')
	}
	head := notify.Line(next.Title, 0)
	if next.Glyph != "" {
		head = notify.Line(next.Glyph, 0) + " " + head
	}
	if !next.At.IsZero() {
		b.WriteString(n.paint("2", next.At.In(n.cfg.Zone).Format("15:04:05")) + " ")
	}
	b.WriteString(n.paint(color(next.Tone), head) + "\n")
	for _, t := range notes {
		b.WriteString("    " + t + "\n")
	}
	if next.Report != "" && next.Report != was.Report {
		b.WriteString(n.paint("2", "    report: "+notify.Line(next.Report, 0)) + "\n")
	}
	return b.String()
}

func color(t notify.Tone) string {
	switch t {
	case notify.Amber:
		return "33"
	case notify.Red:
		return "31"
	case notify.Dim:
		return "2"
	}
	return "0"
}

func (n *Notifier) paint(code, text string) string {
	if !n.cfg.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
