package classify_test

import (
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// sweeper is a runtime that finds nothing, marks the lines of a proxy as noise, and tells when it was asked.
type sweeper struct{ asked func() }

func (sweeper) Name() string         { return "sweeper" }
func (sweeper) Module(string) string { return "" }

func (s sweeper) Parse(log *text.Log) *classify.Failure {
	s.asked()
	for i, l := range log.Lines {
		if strings.HasPrefix(l, "proxy: ") {
			log.Ignore(i, i+1)
		}
	}
	return nil
}

// TestNoiseOfThoseNotAsked: behind a failure that ends the log no other runtime is asked for one, and what they know to be
// noise is still none of the evidence for a refusal, and no statement of who killed the run.
func TestNoiseOfThoseNotAsked(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		exit       classify.Exit
		failure    classify.Failure
		asked      int
		reason     classify.Reason
		provider   string
	}{
		{name: "plain", text: "one\nproxy: two\nboom\n", exit: classify.Exit{Code: 1}, reason: classify.ManagedBug},
		{name: "refusal", text: "anthropic: API Error: 429\nproxy: openai: retry-after: 30\nboom\n", exit: classify.Exit{Code: 1},
			failure: classify.Failure{Listed: classify.RateLimit}, asked: 1, reason: classify.RateLimit, provider: "anthropic"},
		{name: "killed", text: "one\nproxy: out of memory\nboom\n", exit: classify.Exit{Code: 137}, asked: 1, reason: classify.Killed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			f := tt.failure
			f.Type, f.Message = "Boom", "boom"
			f.Frames = []classify.Frame{{File: "/srv/acme/acme/main.py", Line: 3, Function: "main"}}
			c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{ending{f}, sweeper{func() { asked++ }}}})
			if err != nil {
				t.Fatal(err)
			}
			v := c.Classify(classify.Input{Text: []byte(tt.text), Exit: tt.exit, Roots: []classify.Root{{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}}}})
			if v.Reason != tt.reason || asked != tt.asked {
				t.Errorf("reason %q, asked %d times, want %q and %d", v.Reason, asked, tt.reason, tt.asked)
			}
			if tt.provider != "" && (v.Refusal == nil || v.Refusal.Provider != tt.provider || v.Refusal.RetryAfter != 0) {
				t.Errorf("refusal %+v, want one of %s without a time", v.Refusal, tt.provider)
			}
		})
	}
}

// ending is a runtime whose failure is the last line.
type ending struct{ failure classify.Failure }

func (ending) Name() string { return "ending" }

func (ending) Module(path string) string {
	return strings.ReplaceAll(strings.TrimSuffix(path, ".py"), "/", ".")
}

func (e ending) Parse(log *text.Log) *classify.Failure {
	f := e.failure
	f.First, f.Line, f.Last = len(log.Lines)-1, len(log.Lines)-1, len(log.Lines)-1
	return &f
}
