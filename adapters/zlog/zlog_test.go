package zlog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/lognotify"
	"github.com/mulligan-dev/mulligan/adapters/zlog"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

// entries parses what was written; zerolog calls the message by another name than slogtest.
func entries(b []byte) ([]map[string]any, error) {
	var out []map[string]any
	for line := range bytes.Lines(b) {
		m := map[string]any{}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		if v, ok := m["message"]; ok {
			m[slog.MessageKey] = v
			delete(m, "message")
		}
		out = append(out, m)
	}
	return out, nil
}

func TestHandler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		out.Reset()
		h, err := zlog.New(zlog.Config{Out: &out})
		if err != nil {
			t.Fatal(err)
		}
		return h
	}, func(t *testing.T) map[string]any {
		all, err := entries(out.Bytes())
		if err != nil || len(all) != 1 {
			t.Fatalf("%d entries, %v: %s", len(all), err, out.String())
		}
		return all[0]
	})
}

func TestValues(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var lv slog.LevelVar
	lv.Set(slog.LevelDebug - 4)
	h, err := zlog.New(zlog.Config{Out: &out, Level: &lv})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h)
	log.Log(t.Context(), slog.LevelDebug-4, "m", "d", 1500*time.Millisecond, "e", errors.New("boom"), "n", nil, "u", uint64(1)<<63, "f", 1.5,
		"b", true, "t", time.Date(2026, 3, 9, 14, 2, 0, 5000000, time.UTC), "l", []string{"x"}, slog.Group("g", "k", 1))
	want := `{"level":"trace","time":"T","d":"1.5s","e":"boom","n":null,"u":9223372036854775808,"f":1.5,"b":true,"t":"2026-03-09T14:02:00.005Z","l":["x"],"g":{"k":1},"message":"m"}` + "\n"
	var m struct{ Time string }
	if err := json.Unmarshal(out.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z07:00", m.Time); err != nil {
		t.Error(err)
	}
	if got := strings.Replace(out.String(), m.Time, "T", 1); got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	out.Reset()
	lv.Set(slog.LevelError)
	log.Warn("not written")
	if out.Len() > 0 {
		t.Errorf("written below the level: %s", out.String())
	}
}

// TestDerivedHandlersAreApart holds that what one derived handler is given does not show in another.
func TestDerivedHandlersAreApart(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h, err := zlog.New(zlog.Config{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	base := slog.New(h).With("a", 1).WithGroup("g").With("b", 2).With("b2", 2).With("b3", 2)
	one, two := base.With("c", 3), base.With("d", 4)
	one.Info("x")
	two.Info("y")
	all, err := entries(out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(all[0]["g"], all[1]["g"], all[0]["a"]); got != "map[b:2 b2:2 b3:2 c:3] map[b:2 b2:2 b3:2 d:4] 1" {
		t.Error(got)
	}
}

// TestEmptyGroupsAreLeftOut nests them, which slogtest does not.
func TestEmptyGroupsAreLeftOut(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h, err := zlog.New(zlog.Config{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	empty := slog.Group("empty", slog.Attr{Key: "in", Value: slog.GroupValue()})
	slog.New(h.WithAttrs([]slog.Attr{empty})).WithGroup("open").Info("m", empty)
	if got := out.String(); strings.Contains(got, "empty") || strings.Contains(got, "open") {
		t.Error(got)
	}
}

type closedWriter struct{}

func (closedWriter) Write([]byte) (int, error) { return 0, errors.New("closed") }

func TestErrorsSurface(t *testing.T) {
	t.Parallel()
	h, err := zlog.New(zlog.Config{Out: closedWriter{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), slog.NewRecord(time.Time{}, slog.LevelInfo, "m", 0)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the entry is lost without a word: %v", err)
	}
	if _, err := zlog.New(zlog.Config{}); err == nil {
		t.Error("a handler that writes nowhere")
	}
}

// TestNotices runs the notifier over a log through this handler: rows arrive, and a broken writer is seen.
func TestNotices(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, notifytest.Sheet{AppendOnly: true, Silent: true}, func(t *testing.T) notifytest.Sink {
		out := &breakable{}
		h, err := zlog.New(zlog.Config{Out: out})
		if err != nil {
			t.Fatal(err)
		}
		n, err := lognotify.New(lognotify.Config{Log: slog.New(h)})
		if err != nil {
			t.Fatal(err)
		}
		return notifytest.Sink{Notifier: n, Text: func() (string, error) { return out.text.String(), nil }, Break: func() { out.broken = true }}
	})
}

type breakable struct {
	text   strings.Builder
	broken bool
}

func (b *breakable) Write(p []byte) (int, error) {
	if b.broken {
		return 0, errors.New("disk full")
	}
	return b.text.Write(p)
}

func TestConcurrentEntriesDoNotMix(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	h, err := zlog.New(zlog.Config{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(h)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for range 50 {
				log.WithGroup("g").Info("m", "worker", i)
			}
		})
	}
	wg.Wait()
	if all, err := entries(out.Bytes()); err != nil || len(all) != 200 {
		t.Errorf("%d entries, %v", len(all), err)
	}
}

func ExampleNew() {
	h, err := zlog.New(zlog.Config{Out: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	r := slog.NewRecord(time.Date(2026, 3, 9, 14, 2, 0, 0, time.UTC), slog.LevelInfo, "pass done", 0)
	r.AddAttrs(slog.Int("decided", 5), slog.Group("took", slog.Duration("probe", 90*time.Millisecond)))
	if err := h.Handle(context.Background(), r); err != nil {
		fmt.Println(err)
	}
	// Output: {"level":"info","time":"2026-03-09T14:02:00.000Z","decided":5,"took":{"probe":"90ms"},"message":"pass done"}
}
