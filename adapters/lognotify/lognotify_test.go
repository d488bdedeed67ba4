package lognotify_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/lognotify"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

// logfile is a writer that can be broken.
type logfile struct {
	mu     sync.Mutex
	text   strings.Builder
	broken bool
}

func (f *logfile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken {
		return 0, errors.New("disk full")
	}
	return f.text.Write(b)
}

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, notifytest.Sheet{AppendOnly: true, Silent: true}, func(t *testing.T) notifytest.Sink {
		var out logfile
		n, err := lognotify.New(lognotify.Config{Log: slog.New(slog.NewJSONHandler(&out, nil))})
		if err != nil {
			t.Fatal(err)
		}
		return notifytest.Sink{
			Notifier: n,
			Text:     func() (string, error) { return out.text.String(), nil },
			Break:    func() { out.broken = true },
		}
	})
}

// TestLevels holds that the host's level decides, and that a loud row is a warning.
func TestLevels(t *testing.T) {
	t.Parallel()
	var out logfile
	n, err := lognotify.New(lognotify.Config{Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	calm := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1", Root: "acme"})
	loud := notify.PauseRow(notify.PauseFacts{Reason: "storm_window"})
	for _, r := range []notify.Row{calm, loud} {
		if err := n.Notify(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if got := out.text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") {
		t.Errorf("logged %q", got)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := lognotify.New(lognotify.Config{}); err == nil {
		t.Error("a notifier that logs nowhere")
	}
}

func ExampleNew() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	n, err := lognotify.New(lognotify.Config{Log: log})
	if err != nil {
		fmt.Println(err)
		return
	}
	row := notify.EpisodeRow(notify.EpisodeFacts{ID: "c-1", Root: "acme", Agents: []notify.Agent{{Lineage: "lin-a", Name: "coder"}}})
	if err := n.Notify(context.Background(), row); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg="coder put back after an update of acme" key=episode:c-1 kind=episode episode=c-1 notes="[Update of acme coder: put back]"
}
