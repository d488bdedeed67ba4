package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

func open(t *testing.T, dir string) *inbox.Inbox {
	t.Helper()
	b, err := inbox.New(inbox.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func sink(t *testing.T, dir string) notifytest.Sink {
	b := open(t, dir)
	return notifytest.Sink{
		Notifier: b,
		Text: func() (string, error) {
			all, err := b.Entries(context.Background())
			var s strings.Builder
			for _, e := range all {
				s.WriteString(e.Row.Title + "\n")
				for _, n := range e.Row.Notes {
					s.WriteString("  " + n.Text + "\n")
				}
			}
			return s.String(), err
		},
		Toasts: func() (int, error) {
			all, err := b.Entries(context.Background())
			n := 0
			for _, e := range all {
				n += e.Toasts
			}
			return n, err
		},
		Reopen: func() (notifytest.Sink, error) { return sink(t, dir), nil },
		Break:  func() { _ = os.RemoveAll(dir) },
	}
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, notifytest.Sheet{}, func(t *testing.T) notifytest.Sink { return sink(t, filepath.Join(t.TempDir(), "inbox")) })
}

// TestTwoProcesses runs the concurrency check over two inboxes of one folder, as two processes have them.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := sink(t, dir)
	s.Notifier = &alternating{open(t, dir), open(t, dir)}
	for _, c := range notifytest.Checks() {
		if c.Name == "concurrent" {
			if err := c.Run(t.Context(), func() (notifytest.Sink, error) { return s, nil }); err != nil {
				t.Error(err)
			}
		}
	}
}

type alternating [2]*inbox.Inbox

func (a *alternating) Notify(ctx context.Context, r notify.Row) error {
	return a[len(r.Notes)%2].Notify(ctx, r)
}

func TestDismiss(t *testing.T) {
	t.Parallel()
	b := open(t, t.TempDir())
	ctx := t.Context()
	f := notify.EpisodeFacts{ID: "c-1", Root: "acme", Agents: []notify.Agent{{Lineage: "a", Name: "coder"}}}
	row := notify.EpisodeRow(f)
	state := func() string {
		t.Helper()
		all, err := b.Entries(ctx)
		if err != nil || len(all) != 1 {
			t.Fatalf("%d entries, %v", len(all), err)
		}
		return fmt.Sprintf("dismissed=%v toasts=%d", all[0].Dismissed, all[0].Toasts)
	}
	steps := []struct {
		name string
		do   func() error
		want string
	}{
		{"delivered", func() error { return b.Notify(ctx, row) }, "dismissed=false toasts=1"},
		{"dismissed", func() error { return b.Dismiss(ctx, row.Key) }, "dismissed=true toasts=1"},
		{"the same once more", func() error { return b.Notify(ctx, row) }, "dismissed=true toasts=1"},
		{"something new", func() error {
			f.Agents = append(f.Agents, notify.Agent{Lineage: "b", Name: "tester"})
			return b.Notify(ctx, notify.EpisodeRow(f))
		}, "dismissed=false toasts=1"},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if got := state(); got != s.want {
			t.Errorf("%s: %s, want %s", s.name, got, s.want)
		}
	}
	if err := b.Dismiss(ctx, "nobody"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key that is not there: %v", err)
	}
}

// TestDamage holds that a file that cannot be read hides no other, is reported, and does not keep its key from being
// told.
func TestDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	row := notify.PauseRow(notify.PauseFacts{Reason: "storm_window", Since: time.Date(2026, 3, 9, 0, 0, 0, 0, time.UTC)})
	other := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1"})
	for _, r := range []notify.Row{row, other} {
		if err := b.Notify(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "state*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte(`{"schema":1,"row":{"ke`), 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := b.Entries(t.Context())
	var damaged *inbox.DamagedError
	if len(all) != 1 || !errors.As(err, &damaged) || damaged.Path != files[0] {
		t.Fatalf("%d entries, error %v", len(all), err)
	}
	if err := b.Notify(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if all, err := b.Entries(t.Context()); len(all) != 2 || err != nil {
		t.Errorf("%d entries, %v", len(all), err)
	}
	if _, err := os.Stat(files[0] + ".damaged"); err != nil {
		t.Error(err)
	}
}

func TestNewerFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := open(t, dir)
	row := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1"})
	if err := b.Notify(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	const newer = `{"schema":2,"row":{"key":"episode:c-1"},"toasts":9}`
	if err := os.WriteFile(files[0], []byte(newer), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := b.Notify(t.Context(), row); err == nil || !strings.Contains(err.Error(), "update mulligan") {
		t.Errorf("error %v", err)
	}
	if got, err := os.ReadFile(files[0]); err != nil || string(got) != newer {
		t.Errorf("rewritten to %s, %v", got, err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	if _, err := inbox.New(inbox.Config{Dir: "relative"}); err == nil {
		t.Error("a relative folder")
	}
	b := open(t, t.TempDir())
	if err := b.Notify(t.Context(), notify.Row{Title: "x"}); err == nil {
		t.Error("a row without a key")
	}
}

func ExampleNew() {
	dir, err := os.MkdirTemp("", "inbox")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	box, err := inbox.New(inbox.Config{Dir: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close()
	ctx := context.Background()
	row := notify.PauseRow(notify.PauseFacts{Reason: "storm_loop"})
	for range 2 { // the acknowledgement of the first was lost
		if err := box.Notify(ctx, row); err != nil {
			fmt.Println(err)
		}
	}
	entries, err := box.Entries(ctx)
	if err != nil {
		fmt.Println(err)
	}
	for _, e := range entries {
		fmt.Println(e.Row.Title, "/ toasts:", e.Toasts)
	}
	// Output: Restarts are paused: restarts keep following each other / toasts: 1
}
