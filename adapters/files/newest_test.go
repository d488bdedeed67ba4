package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// filled is a home with n records, l0 the oldest.
func filled(t testing.TB, n int) *files.Home {
	t.Helper()
	h := home(t)
	for i := range n {
		if err := h.Ledger().Create(t.Context(), record(t, numbered(i), h.Instances().Self())); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func numbered(i int) ledger.Key { return ledger.Key{Project: "p", Lineage: fmt.Sprint("l", i)} }

func newestOf(t testing.TB, h *files.Home, n int) string {
	t.Helper()
	rs, err := h.Ledger().(ledger.Newest).Newest(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range rs {
		names = append(names, r.Lineage)
	}
	return strings.Join(names, " ")
}

func annotate(t testing.TB, h *files.Home, k ledger.Key, told string) {
	t.Helper()
	_, err := h.Ledger().Update(t.Context(), k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Annotate, Now: now, Actor: h.Instances().Self(), Told: []string{told}})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestNewestWithoutItsIndex spoils the index in every way; the answer must stay the same, and be quick again afterwards.
func TestNewestWithoutItsIndex(t *testing.T) {
	t.Parallel()
	edit := func(f func(string) string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, []byte(f(string(read(t, path))))) }
	}
	for name, spoil := range map[string]func(t *testing.T, path string){
		"as it is":          func(*testing.T, string) {},
		"removed":           func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"empty":             edit(func(string) string { return "" }),
		"of another boot":   edit(func(s string) string { return "complete another" + s[strings.Index(s, "\n"):] }),
		"without its head":  edit(func(s string) string { return s[strings.Index(s, "\n")+1:] }),
		"garbage in it":     edit(func(s string) string { return s + "garbage\n" }),
		"zeros at its end":  edit(func(s string) string { return s + string(make([]byte, 5000)) + "\n" }),
		"a line half there": edit(func(s string) string { return s[:len(s)-20] }),
		"a folder":          func(t *testing.T, path string) { must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700))) },
		"a symlink": func(t *testing.T, path string) {
			must(t, errors.Join(os.Remove(path), os.Symlink("/dev/null", path)))
		},
		"a record replaced by somebody else": func(t *testing.T, path string) {
			rec := filepath.Join(filepath.Dir(path), "p__l3.json")
			b := read(t, rec)
			must(t, os.Remove(rec))
			write(t, rec, b)
			must(t, os.Chtimes(rec, time.Time{}, time.Now().Add(-time.Hour)))
			// l3 is now the oldest but was the seventh newest: nothing of what is asked for changed.
		},
		"lines of writes that never came": edit(func(s string) string {
			return s + "1 2 3 p__l2.json {}\n4 5 6 p__nobody.json {}\n"
		}),
		"a line of an earlier revision": edit(func(s string) string {
			for line := range strings.Lines(s) {
				if strings.Contains(line, " p__l4.json ") {
					return s + line
				}
			}
			return ""
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := filled(t, 10)
			annotate(t, h, numbered(4), "x")
			spoil(t, filepath.Join(h.Dir(), "ledger", ".newest"))
			for _, h := range []*files.Home{h, openIn(t, h.Dir()), h} {
				if got, want := newestOf(t, h, 4), "l4 l9 l8 l7"; got != want {
					t.Errorf("the newest are %s, want %s", got, want)
				}
			}
			annotate(t, h, numbered(0), "x")
			if got, want := newestOf(t, h, 4), "l0 l4 l9 l8"; got != want {
				t.Errorf("after one more change the newest are %s, want %s", got, want)
			}
			same(t, h)
		})
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestNewestWhileItsIndexIsMadeAnew removes the index under two homes that write.
func TestNewestWhileItsIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	h := filled(t, 4)
	var all sync.WaitGroup
	for w := range 2 {
		mine := openIn(t, h.Dir())
		all.Go(func() {
			for i := range 40 {
				annotate(t, mine, numbered(w), fmt.Sprint(w, "-", i))
			}
		})
	}
	for range 40 {
		err := os.Remove(filepath.Join(h.Dir(), "ledger", ".newest"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		newestOf(t, h, 3)
	}
	all.Wait()
	same(t, h)
}

func TestNewestOfNothing(t *testing.T) {
	t.Parallel()
	h := home(t)
	if got := newestOf(t, h, 5); got != "" {
		t.Errorf("an empty ledger lists %s", got)
	}
	if got := newestOf(t, filled(t, 2), -1); got != "" {
		t.Errorf("less than nothing is %s", got)
	}
}
