package classify_test

import (
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

// speaking is a runtime whose failure is the last line, and which is asked only where a word of it stands.
type speaking struct{ ending }

func (speaking) Vocabulary() classify.Vocabulary { return classify.Vocabulary{Exact: []string{"boom"}} }

// TestKillerInFrontOfAFailure: who ended a run is read in the lines in front of its failure too, however long they are and
// however much log there is, though the failure itself is found in fewer of them.
func TestKillerInFrontOfAFailure(t *testing.T) {
	t.Parallel()
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{speaking{ending{classify.Failure{
		Kind: classify.KindMissingModule, Module: "acme.wire", Frames: []classify.Frame{{File: "/srv/acme/acme/main.py", Line: 3, Function: "main"}},
	}}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int{10, 150, 500} {
		for _, front := range []int{20, 5000} {
			for _, e := range []struct {
				exit   classify.Exit
				killer string
				want   classify.Reason
			}{
				{classify.Exit{Code: 1}, "", ""},
				{classify.Exit{Code: 1}, "keeper: watchdog timeout", ""},
				{classify.Exit{Signal: "SIGABRT"}, "", ""},
				{classify.Exit{Signal: "SIGABRT"}, "keeper: watchdog timeout", classify.Timeout},
				{classify.Exit{Code: 137}, "", classify.Killed},
				{classify.Exit{Code: 137}, "keeper: watchdog timeout", classify.Timeout},
				{classify.Exit{Code: 143}, "keeper: out of memory", classify.OOM},
			} {
				log := strings.Repeat("plan "+strings.Repeat("-", width)+"\n", 20)
				in := classify.Input{Text: []byte(strings.Repeat("plan\n", front) + e.killer + "\n" + log + "boom\n"), Exit: e.exit,
					Roots: []classify.Root{{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}}}}
				if v := c.Classify(in); v.Reason != e.want || (v.Disposition == classify.Skew) != (e.want == "") {
					t.Errorf("lines of %d bytes, %d in front, %q, %+v: %s %s, want %q", width, front, e.killer, e.exit, v.Disposition, v.Reason, e.want)
				}
			}
		}
	}
}
