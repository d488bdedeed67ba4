package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

func TestChanged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		from, to string
		want     bool
	}{{"1", "2", true}, {"1", "1", false}, {"", "2", false}, {"1", "", false}, {"", "", false}} {
		if got := (journal.Root{From: c.from, To: c.to}).Changed(); got != c.want {
			t.Errorf("from %q to %q: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestSpanOfAnOpenRowHasNoEnd(t *testing.T) {
	t.Parallel()
	noon := stamp.Wall(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0)
	r := journal.Row{Status: journal.Begun, Begun: noon}
	later := stamp.Window{From: noon.Add(time.Hour), To: noon.Add(2 * time.Hour)}
	if !r.Open() || !r.Span().Meets(later) {
		t.Error("an open row does not reach into the future")
	}
	r.Status, r.Closed = journal.Updated, noon.Add(time.Minute)
	if r.Open() || r.Span().Meets(later) {
		t.Error("a closed row reaches past its end")
	}
}

func TestHeldErrorSaysWho(t *testing.T) {
	t.Parallel()
	err := error(&journal.HeldError{Holder: "pip (pid 7)", Err: context.DeadlineExceeded})
	if got, want := err.Error(), "the writer lock is held by pip (pid 7): context deadline exceeded"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Error("the reason of the wait's end is lost")
	}
}

// An update, from its beginning to its end, under the writer lock.
func Example() {
	ctx := context.Background()
	home := memory.New(memory.Config{})
	release, err := home.Writer().Exclusive(ctx, "git pull")
	if err != nil {
		fmt.Println(err)
		return
	}
	row := journal.Row{ID: "u1", Status: journal.Begun, Command: []string{"git", "pull"}, Begun: stamp.Wall(time.Now(), 0)}
	fmt.Println("begun:", home.Updates().Append(ctx, row))
	row.Status, row.Closed = journal.Updated, stamp.Wall(time.Now(), 0)
	row.Roots = []journal.Root{{Name: "app", From: "1111111", To: "2222222"}}
	fmt.Println("closed:", home.Updates().Append(ctx, row))
	fmt.Println("released:", release())
	for r, err := range home.Updates().Rows(ctx) {
		fmt.Println(r.ID, r.Status, r.Roots[0].Changed(), err)
	}
	// Output:
	// begun: <nil>
	// closed: <nil>
	// released: <nil>
	// u1 updated true <nil>
}
