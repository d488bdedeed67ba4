package notifytest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

func TestRecorder(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, notifytest.Sheet{}, func(*testing.T) notifytest.Sink { return sinkOf(&notifytest.Recorder{}) })
}

// sinkOf has every power, so that every check applies.
func sinkOf(n *notifytest.Recorder) notifytest.Sink {
	return notifytest.Sink{
		Notifier: n,
		Text:     func() (string, error) { return n.Text(), nil },
		Toasts:   func() (int, error) { return n.Toasts(), nil },
		Reopen:   func() (notifytest.Sink, error) { return sinkOf(n), nil },
		Break:    func() { n.Err = errors.New("broken") },
	}
}

// broken is a notifier with one fault.
type broken struct {
	mu     sync.Mutex
	rows   map[string]notify.Row
	order  []string
	toasts int
	failed bool
	fault  string
}

func (b *broken) key(k string) string {
	if b.fault == "keys_apart" {
		return strings.ToLower(k)
	}
	return k
}

func (b *broken) Notify(ctx context.Context, r notify.Row) error {
	if b.fault == "concurrent" { // reads, lets others in, and writes
		b.mu.Lock()
		held := b.rows[r.Key]
		b.mu.Unlock()
		runtime.Gosched()
		b.set(r.Key, notify.Merge(held, r))
		return nil
	}
	if ctx.Err() != nil {
		if b.fault == "ended_context" {
			return nil
		}
		return ctx.Err()
	}
	b.mu.Lock()
	if b.failed {
		b.mu.Unlock()
		if b.fault == "honest" {
			return nil
		}
		return errors.New("broken")
	}
	k := b.key(r.Key)
	held := b.rows[k]
	b.mu.Unlock()
	next := notify.Merge(held, r)
	switch b.fault {
	case "shows":
		next.Notes = nil
	case "upserts, twice":
		b.set(k, next)
		k += " "
	case "upserts":
		k = fmt.Sprint(k, len(b.order))
		next = r
	case "keeps_notes":
		next.Notes = r.Notes
	case "newest_wins":
		next.Title = r.Title
	case "toasts_once":
		next.Toast = r.Toast
	case "toasts_on_request":
		next.Toast = held.Key == ""
	}
	b.set(k, next)
	return nil
}

func (b *broken) set(k string, r notify.Row) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rows == nil {
		b.rows = map[string]notify.Row{}
	}
	if !slices.Contains(b.order, k) {
		b.order = append(b.order, k)
	}
	b.rows[k] = r
	if r.Toast {
		b.toasts++
	}
}

func (b *broken) sink() notifytest.Sink {
	clean := func(s string) string {
		if b.fault == "harmless" {
			return s
		}
		return notify.Line(s, 0)
	}
	return notifytest.Sink{
		Notifier: b,
		Text: func() (string, error) {
			var t strings.Builder
			for _, k := range b.order {
				t.WriteString(clean(b.rows[k].Title) + "\n")
				for _, n := range b.rows[k].Notes {
					if b.fault == "copied" || b.fault == "harmless" {
						t.WriteString(" " + clean(n.Text) + "\n")
						continue
					}
					t.WriteString(" " + n.Shown() + "\n")
				}
			}
			return t.String(), nil
		},
		Toasts: func() (int, error) { return b.toasts, nil },
		Reopen: func() (notifytest.Sink, error) {
			if b.fault == "survives" {
				return (&broken{fault: b.fault}).sink(), nil
			}
			return b.sink(), nil
		},
		Break: func() { b.failed = true },
	}
}

// TestEachCheckCatchesItsFault is the suite's own test: what claims to catch a fault catches it.
func TestEachCheckCatchesItsFault(t *testing.T) {
	t.Parallel()
	for _, c := range notifytest.Checks() {
		for _, fault := range []string{c.Name, c.Name + ", twice"} {
			if fault != c.Name && c.Name != "upserts" {
				continue
			}
			t.Run(fault, func(t *testing.T) {
				t.Parallel()
				tries := 1
				if c.Name == "concurrent" {
					tries = 200 // a race has to happen before it can be caught
				}
				var err error
				for range tries {
					err = c.Run(t.Context(), func() (notifytest.Sink, error) { return (&broken{fault: fault}).sink(), nil })
					if err != nil {
						break
					}
				}
				if err == nil {
					t.Errorf("%s lets a notifier through that breaks it: %s", c.Name, c.Promise)
				}
			})
		}
	}
}

// TestSheetsLeaveOut holds that a sink is asked for no more than it declares.
func TestSheetsLeaveOut(t *testing.T) {
	t.Parallel()
	plain := notifytest.Sink{Notifier: &notifytest.Recorder{}, Text: func() (string, error) { return "", nil }}
	var left []string
	for _, c := range notifytest.Checks() {
		if !c.Applies(notifytest.Sheet{AppendOnly: true, Silent: true}, plain) {
			left = append(left, c.Name)
		}
	}
	want := []string{"upserts", "newest_wins", "keys_apart", "toasts_once", "toasts_on_request", "survives", "honest"}
	if !slices.Equal(left, want) {
		t.Errorf("left out %v, want %v", left, want)
	}
}
