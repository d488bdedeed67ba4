package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/terminal"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

// screen is a writer that can be broken.
type screen struct {
	text   strings.Builder
	broken bool
}

func (s *screen) Write(b []byte) (int, error) {
	if s.broken {
		return 0, errors.New("the terminal went away")
	}
	return s.text.Write(b)
}

func (s *screen) String() string { return s.text.String() }

func TestNotifier(t *testing.T) {
	t.Parallel()
	notifytest.Run(t, notifytest.Sheet{AppendOnly: true}, func(t *testing.T) notifytest.Sink {
		var out screen
		n, err := terminal.New(terminal.Config{Out: &out, Bell: true})
		if err != nil {
			t.Fatal(err)
		}
		return notifytest.Sink{
			Notifier: n,
			Text:     func() (string, error) { return strings.ReplaceAll(out.String(), "\a", ""), nil },
			Toasts:   func() (int, error) { return strings.Count(out.String(), "\a"), nil },
			Break:    func() { out.broken = true },
		}
	})
}

// TestOnlyNewsIsWritten holds that a reader is not told the same twice.
func TestOnlyNewsIsWritten(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	n, err := terminal.New(terminal.Config{Out: &out, Color: true})
	if err != nil {
		t.Fatal(err)
	}
	f := notify.EpisodeFacts{ID: "c-1", Root: "acme", Agents: []notify.Agent{{Lineage: "a", Name: "coder"}}}
	for i := range 3 {
		if i == 2 {
			f.Agents = append(f.Agents, notify.Agent{Lineage: "b", Name: "tester"})
		}
		if err := n.Notify(t.Context(), notify.EpisodeRow(f)); err != nil {
			t.Fatal(err)
		}
	}
	want := "\x1b[33m↻ coder put back after an update of acme\x1b[0m\n    Update of acme\n    coder: put back\n" +
		"\x1b[33m↻ 2 agents put back after an update of acme\x1b[0m\n    +1 tester: put back\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// TestARowThatCouldNotBeWrittenComesWhole holds that a failed delivery is not remembered as shown.
func TestARowThatCouldNotBeWrittenComesWhole(t *testing.T) {
	t.Parallel()
	out := screen{broken: true}
	n, err := terminal.New(terminal.Config{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	row := notify.PauseRow(notify.PauseFacts{Reason: "storm_window"})
	if n.Notify(t.Context(), row) == nil {
		t.Fatal("acknowledged")
	}
	out.broken = false
	if err := n.Notify(t.Context(), row); err != nil || !strings.Contains(out.String(), "mulligan resume") {
		t.Errorf("%v, written: %q", err, out.String())
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := terminal.New(terminal.Config{}); err == nil {
		t.Error("a notifier that writes nowhere")
	}
}

func ExampleNew() {
	n, err := terminal.New(terminal.Config{Out: os.Stdout})
	if err != nil {
		fmt.Println(err)
		return
	}
	row := notify.Escalation(notify.EscalationFacts{
		Lineage: "lin-a", Name: "planner", Reason: "handoff", At: time.Date(2026, 3, 9, 14, 2, 0, 0, time.UTC),
	})
	if err := n.Notify(context.Background(), row); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 14:02:00 planner: a person was involved
	//     The run had handed over to a person or another program (a plan, a question, a gate, a pipe). Only a person can say whether to start it again.
	//     Agent planner
	//     Start it again? Yes: mulligan retry lin-a  No: mulligan dismiss lin-a
}
