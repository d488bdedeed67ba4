package notifytest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/notify"
)

// Sheet is what a notifier can do beyond delivering. The zero Sheet is a sink that keeps rows.
type Sheet struct {
	// AppendOnly is a sink that cannot take back what it has shown, such as a terminal or a log: a person sees every
	// delivery, and may see one twice after a crash.
	AppendOnly bool
	// Silent is a sink that has no toasts.
	Silent bool
}

// Sink is a notifier under test, with a view on what it shows.
type Sink struct {
	Notifier notify.Notifier
	// Text is all that a person sees now: for a sink that keeps rows, their present titles and notes; for one that
	// appends, everything ever shown.
	Text func() (string, error)
	// Toasts counts the toasts that were shown; nil for a silent sink.
	Toasts func() (int, error)
	// Reopen is a new notifier over the same storage, as after a crash; nil where nothing outlives the process.
	Reopen func() (Sink, error)
	// Break makes the storage refuse everything from now on; nil where it cannot be made to.
	Break func()
}

// Check is one promise.
type Check struct {
	Name    string
	Promise string
	// Applies reports whether a sink of this sheet makes the promise.
	Applies func(Sheet, Sink) bool
	// Run is nil when the promise holds, else which part of it broke.
	Run func(ctx context.Context, open func() (Sink, error)) error
}

// Run holds a notifier to its promises, each against a fresh sink.
func Run(t *testing.T, sheet Sheet, open func(t *testing.T) Sink) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			first := open(t)
			if first.Notifier == nil || first.Text == nil {
				t.Fatal("the sink has no Notifier or no Text")
			}
			if !c.Applies(sheet, first) {
				t.Skip("not promised by this sink")
			}
			used := false
			err := c.Run(t.Context(), func() (Sink, error) {
				if !used {
					used = true
					return first, nil
				}
				return open(t), nil
			})
			if err != nil {
				t.Errorf("broken promise: %s\n%v", c.Promise, err)
			}
		})
	}
}

func always(Sheet, Sink) bool      { return true }
func keeps(s Sheet, _ Sink) bool   { return !s.AppendOnly }
func sounds(s Sheet, k Sink) bool  { return !s.Silent && k.Toasts != nil }
func reopens(s Sheet, k Sink) bool { return !s.AppendOnly && k.Reopen != nil }
func breaks(_ Sheet, k Sink) bool  { return k.Break != nil }

// Checks are the promises of a notifier, in the order in which they build on one another.
func Checks() []Check {
	return []Check{
		{"shows", "a row that was acknowledged can be seen, title and notes", always, shows},
		{"upserts", "a key has one row: a later delivery replaces title and notes", keeps, upserts},
		{"keeps_notes", "no note is lost, also when a later delivery does not carry it", always, keepsNotes},
		{"newest_wins", "a delivery that was overtaken does not bring the old title back", keeps, newestWins},
		{"keys_apart", "rows of different keys are different rows, whatever the keys are made of", keeps, keysApart},
		{"toasts_once", "a key has one toast, however often its row is delivered", sounds, toastsOnce},
		{"toasts_on_request", "a row that asks for no toast makes none", sounds, toastsOnRequest},
		{"concurrent", "deliveries at the same time lose nothing", always, concurrent},
		{"ended_context", "nothing is acknowledged under an ended context unless it is shown", always, endedContext},
		{"survives", "what was acknowledged is there after a crash, and does not sound again", reopens, survives},
		{"honest", "what could not be kept is not acknowledged", breaks, honest},
		{"harmless", "text cannot act on what shows it", always, harmless},
		{"copied", "a path or a command can be copied as it is shown", always, copied},
	}
}

var day = time.Date(2026, 3, 9, 12, 0, 0, 0, time.UTC)

// row is a row whose words are found nowhere else.
func row(key, title string, notes ...string) notify.Row {
	r := notify.Row{Key: key, Kind: "episode", Glyph: notify.Glyph, Tone: notify.Amber, Title: title, At: day, Toast: true}
	for _, n := range notes {
		r.Notes = append(r.Notes, notify.Note{ID: strings.TrimRight(n, "0123456789"), Text: n})
	}
	return r
}

func at(r notify.Row, seconds int) notify.Row {
	r.At = day.Add(time.Duration(seconds) * time.Second)
	return r
}

// deliver hands rows over in order; each has to be acknowledged.
func deliver(ctx context.Context, s Sink, rows ...notify.Row) error {
	for _, r := range rows {
		if err := s.Notifier.Notify(ctx, r); err != nil {
			return fmt.Errorf("deliver %q: %w", r.Key, err)
		}
	}
	return nil
}

// sees checks what stands before a person.
func sees(s Sink, want []string, not ...string) error {
	text, err := s.Text()
	if err != nil {
		return fmt.Errorf("read what is shown: %w", err)
	}
	var errs []error
	for _, w := range want {
		if !strings.Contains(text, w) {
			errs = append(errs, fmt.Errorf("%q is not shown", w))
		}
	}
	for _, n := range not {
		if strings.Contains(text, n) {
			errs = append(errs, fmt.Errorf("%q is still shown", n))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("%w; what is shown:\n%s", err, text)
	}
	return nil
}

func toasts(s Sink, want int) error {
	got, err := s.Toasts()
	if err != nil {
		return fmt.Errorf("count toasts: %w", err)
	}
	if got != want {
		return fmt.Errorf("%d toasts, want %d", got, want)
	}
	return nil
}

// shows is what all others stand on: Text can see what Notify took.
func shows(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	if err := deliver(ctx, s, row("k", "quartz", "agate1", "beryl1")); err != nil {
		return err
	}
	return sees(s, []string{"quartz", "agate1", "beryl1"})
}

// upserts delivers a row, its successor, and the successor once more.
func upserts(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	err = deliver(ctx, s, row("k", "quartz", "agate1"), at(row("k", "topaz", "agate2"), 1), at(row("k", "topaz", "agate2"), 1))
	if err != nil {
		return err
	}
	if err := sees(s, []string{"topaz", "agate2"}, "quartz", "agate1"); err != nil {
		return err
	}
	text, err := s.Text()
	if err == nil && strings.Count(text, "topaz") != 1 {
		err = fmt.Errorf("the row is shown %d times:\n%s", strings.Count(text, "topaz"), text)
	}
	return err
}

// keepsNotes delivers as two healers do that each know of one agent.
func keepsNotes(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	if err := deliver(ctx, s, row("k", "quartz", "agate1", "beryl1"), at(row("k", "quartz", "coral1"), 1)); err != nil {
		return err
	}
	return sees(s, []string{"agate1", "beryl1", "coral1"})
}

// newestWins delivers in the wrong order, as when an answer took the long way.
func newestWins(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	if err := deliver(ctx, s, at(row("k", "topaz", "agate2"), 1), row("k", "quartz", "agate1", "beryl1")); err != nil {
		return err
	}
	return sees(s, []string{"topaz", "agate2", "beryl1"}, "quartz", "agate1")
}

// keysApart uses keys that careless file names, maps or tables would join: by case, by escape, by length.
func keysApart(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	keys := []string{
		"a/b", "a_b", "a:b", "a%2Fb", "A/B", "a/b ", "..", "../a", "ä", "", strings.Repeat("long", 100), strings.Repeat("long", 100) + "er",
	}
	var want []string
	for i, k := range keys {
		title := fmt.Sprintf("title-%02d", i)
		want = append(want, title)
		if k == "" {
			k = "empty"
		}
		if err := deliver(ctx, s, row(k, title)); err != nil {
			return err
		}
	}
	return sees(s, want)
}

// toastsOnce counts after repeats, after news, and after another key.
func toastsOnce(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	if err := deliver(ctx, s, row("k", "quartz"), row("k", "quartz"), at(row("k", "topaz", "agate1"), 1)); err != nil {
		return err
	}
	if err := toasts(s, 1); err != nil {
		return fmt.Errorf("after three deliveries of one key: %w", err)
	}
	if err := deliver(ctx, s, row("other", "coral")); err != nil {
		return err
	}
	if err := toasts(s, 2); err != nil {
		return fmt.Errorf("after another key: %w", err)
	}
	return nil
}

func toastsOnRequest(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	quiet := row("k", "quartz")
	quiet.Toast = false
	if err := deliver(ctx, s, quiet); err != nil {
		return err
	}
	return toasts(s, 0)
}

// concurrent has workers that add a note each to one shared row, and a row each of their own.
func concurrent(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	const workers, each = 8, 6
	var want []string
	errs := make([]error, workers)
	var wg sync.WaitGroup
	for w := range workers {
		for i := range each {
			want = append(want, fmt.Sprintf("w%ci%c.", 'a'+w, 'a'+i))
		}
		want = append(want, fmt.Sprintf("own-%c", 'a'+w))
		wg.Go(func() {
			for i := range each {
				r := at(row("shared", "quartz", fmt.Sprintf("w%ci%c.", 'a'+w, 'a'+i)), i)
				errs[w] = errors.Join(errs[w], deliver(ctx, s, r))
			}
			errs[w] = errors.Join(errs[w], deliver(ctx, s, row(fmt.Sprintf("key-%d", w), fmt.Sprintf("own-%c", 'a'+w))))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := sees(s, want); err != nil {
		return err
	}
	if s.Toasts != nil {
		return toasts(s, 1+workers)
	}
	return nil
}

// endedContext allows both answers, an error or a row that is shown, and no third.
func endedContext(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Notifier.Notify(ctx, row("k", "quartz")); err != nil {
		return nil
	}
	return sees(s, []string{"quartz"})
}

// survives crashes between delivery and acknowledgement.
func survives(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	if err := deliver(ctx, s, row("k", "quartz", "agate1")); err != nil {
		return err
	}
	again, err := s.Reopen()
	if err != nil {
		return fmt.Errorf("open again: %w", err)
	}
	if err := sees(again, []string{"quartz", "agate1"}); err != nil {
		return fmt.Errorf("after opening again: %w", err)
	}
	// The acknowledgement was lost in the crash, so the row comes a second time.
	if err := deliver(ctx, again, row("k", "quartz", "agate1")); err != nil {
		return err
	}
	if again.Toasts == nil {
		return nil
	}
	return toasts(again, 1)
}

// honest is the check that at-least-once delivery hangs on.
func honest(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	s.Break()
	if err := s.Notifier.Notify(ctx, row("k", "quartz")); err == nil {
		return errors.New("a row was acknowledged although nothing could be kept")
	}
	return nil
}

// harmless delivers what a hostile agent name would: it retitles the window, clears the screen, forges a line.
func harmless(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	evil := row("k", "quartz \x1b]0;owned\x07 \x1b[2J", "agate1")
	evil.Notes[0].Text = "agate1 \x1b[2J\r\nforged \u202eline"
	if err := deliver(ctx, s, evil); err != nil {
		return err
	}
	return sees(s, []string{"quartz", "agate1"}, "\x1b]0;", "\x1b[2J", "\x07 ", "\r", "\u202e", "\nforged")
}

// copied delivers a command over a folder with two spaces in its name: with one of them it leads elsewhere.
func copied(ctx context.Context, open func() (Sink, error)) error {
	s, err := open()
	if err != nil {
		return err
	}
	const command = "cd '/srv/onyx  beryl'"
	held := row("k", "quartz", "agate1")
	held.Notes = append(held.Notes, notify.Note{ID: "next", Text: "To go on: " + command})
	if err := deliver(ctx, s, held); err != nil {
		return err
	}
	return sees(s, []string{"quartz", "agate1", command})
}
