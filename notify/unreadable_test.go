package notify_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/notify"
)

func TestUnreadableRows(t *testing.T) {
	t.Parallel()
	keys := map[string]bool{}
	for _, f := range []notify.UnreadableFacts{
		{Bell: "a:b"}, {Bell: "a", Run: "b"}, {Bell: "b", Run: "a/b"}, {Bell: "a%3Ab"}, {Bell: "more"}, {More: true}, {Run: "more"},
	} {
		f.At, f.Why, f.Place = time.Unix(1, 0), "Error:\nkey=sk-ant-0123456789abcdef0123456789", "/state/door bell/\nx"
		row := notify.UnreadableRow(f)
		if keys[row.Key] || row.Key != f.Key() || !notify.Unreadable(row.Key) {
			t.Errorf("%+v has the key %q", f, row.Key)
		}
		keys[row.Key] = true
		if !row.Loud || !row.Toast || row.Kind != "unreadable" || strings.Contains(strings.ToLower(row.Title), "error") {
			t.Errorf("%+v", row)
		}
		for _, n := range row.Notes {
			if strings.ContainsAny(n.Text, "\n") || strings.Contains(n.Text, "0123456789abcdef") {
				t.Errorf("a note says %q", n.Text)
			}
		}
	}
	if notify.Unreadable("run:x:paused") {
		t.Error("another row is taken for one of these")
	}
}

func ExampleUnreadableRow() {
	row := notify.UnreadableRow(notify.UnreadableFacts{Bell: "note.json", Place: "/state/doorbell/note.json",
		Why: `phase: "working", want one of booting, waiting, preparing`})
	fmt.Println(row.Title)
	for _, n := range row.Notes[1:] {
		fmt.Println(" ", n.Text)
	}
	// Output:
	// The note of a death cannot be used
	//   phase: "working", want one of booting, waiting, preparing
	//   The note lies at: /state/doorbell/note.json
	//   Correct the file or remove it. mulligan doctor shows all of them.
}
