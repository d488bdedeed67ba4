package files_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// mostlySettled is a home with so many declined records that a note is kept, and the open ones l0 and l1.
func mostlySettled(t testing.TB, c files.Config) *files.Home {
	t.Helper()
	c.Dir = filepath.Join(t.TempDir(), "home")
	h, err := files.Open(c)
	must(t, err)
	t.Cleanup(func() { must(t, h.Close()) })
	for i := range 80 {
		must(t, h.Ledger().Create(t.Context(), record(t, numbered(i), h.Instances().Self())))
		if i > 1 {
			move(t, h, numbered(i), ledger.Decline)
		}
	}
	return h
}

func move(t testing.TB, h *files.Home, k ledger.Key, e ledger.Event) {
	t.Helper()
	_, err := h.Ledger().Update(t.Context(), k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: e, Now: now, Actor: h.Instances().Self(), Reason: "r"})
	})
	must(t, err)
}

// nothing wants no record but the open ones.
func nothing(ledger.Record) bool { return false }

// workOf are the lineages that need work.
func workOf(t testing.TB, h *files.Home) string {
	t.Helper()
	var out []string
	for r, err := range h.Ledger().(ledger.Working).Working(t.Context(), "test", nothing) {
		if err != nil {
			t.Error(err)
		}
		out = append(out, r.Lineage)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func wantWork(t testing.TB, h *files.Home, what, want string) {
	t.Helper()
	if got := workOf(t, h); got != want {
		t.Errorf("%s: %q need work, want %q", what, got, want)
	}
}

// TestWorkingFollows: claims and ends are seen at once, by this home and by one that begins with the note on disk.
func TestWorkingFollows(t *testing.T) {
	t.Parallel()
	h := mostlySettled(t, files.Config{})
	wantWork(t, h, "at first", "l0 l1")
	other := openIn(t, h.Dir())
	must(t, other.Ledger().Create(t.Context(), record(t, numbered(900), other.Instances().Self())))
	for _, who := range []*files.Home{h, other, openIn(t, h.Dir())} {
		wantWork(t, who, "after a claim", "l0 l1 l900")
	}
	move(t, other, numbered(900), ledger.Decline)
	move(t, h, numbered(1), ledger.Decline)
	for _, who := range []*files.Home{h, other, openIn(t, h.Dir())} {
		wantWork(t, who, "after two ends", "l0")
	}
}

// TestWorkingWithoutItsHints spoils the note and the index in every way. An open record is never hidden.
func TestWorkingWithoutItsHints(t *testing.T) {
	t.Parallel()
	edit := func(f func(string) string) func(*testing.T, string) {
		return func(t *testing.T, path string) { write(t, path, []byte(f(string(read(t, path))))) }
	}
	ways := map[string]func(t *testing.T, path string){
		"as it is":         func(*testing.T, string) {},
		"removed":          func(t *testing.T, path string) { must(t, os.Remove(path)) },
		"empty":            edit(func(string) string { return "" }),
		"cut":              edit(func(s string) string { return s[:len(s)/2] }),
		"cut by a little":  edit(func(s string) string { return s[:len(s)-3] }),
		"zeros":            edit(func(s string) string { return string(make([]byte, len(s))) }),
		"garbage":          edit(func(s string) string { return s + "garbage\n" }),
		"a name falsified": edit(func(s string) string { return strings.ReplaceAll(s, "l0.json", "l9.json") }),
		"a folder":         func(t *testing.T, path string) { must(t, errors.Join(os.Remove(path), os.Mkdir(path, 0o700))) },
		"a symlink": func(t *testing.T, path string) {
			must(t, errors.Join(os.Remove(path), os.Symlink("/dev/null", path)))
		},
	}
	for _, file := range []string{".working", ".newest"} {
		for name, spoil := range ways {
			t.Run(file+" "+name, func(t *testing.T) {
				t.Parallel()
				h := mostlySettled(t, files.Config{})
				wantWork(t, h, "at first", "l0 l1")
				spoil(t, filepath.Join(h.Dir(), "ledger", file))
				for _, who := range []*files.Home{openIn(t, h.Dir()), h} {
					wantWork(t, who, "afterwards", "l0 l1")
				}
				must(t, h.Ledger().Create(t.Context(), record(t, numbered(900), h.Instances().Self())))
				for _, who := range []*files.Home{openIn(t, h.Dir()), h} {
					wantWork(t, who, "after one more claim", "l0 l1 l900")
				}
			})
		}
	}
}

// TestWorkingBehindItsBack: what somebody wrote past the index is found within the hour.
func TestWorkingBehindItsBack(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	later := time.Duration(0)
	h := mostlySettled(t, files.Config{Now: func() stamp.Time {
		mu.Lock()
		defer mu.Unlock()
		return host.Now().Add(later)
	}})
	wantWork(t, h, "at first", "l0 l1")
	// A copy of the ledger's own bytes in the place of a settled record.
	other := openIn(t, filepath.Join(t.TempDir(), "other"))
	must(t, other.Ledger().Create(t.Context(), record(t, numbered(5), other.Instances().Self())))
	path := filepath.Join(h.Dir(), "ledger", "p__l5.json")
	must(t, os.Remove(path))
	write(t, path, read(t, filepath.Join(other.Dir(), "ledger", "p__l5.json")))
	mu.Lock()
	later = time.Hour
	mu.Unlock()
	wantWork(t, h, "an hour later", "l0 l1 l5")
}

// TestWorkingWaitsForAWriter: a claim that was announced and is not visible yet is not forgotten, however often somebody
// looks in between; a writer that was killed there leaves nothing that hides anything.
func TestWorkingWaitsForAWriter(t *testing.T) {
	t.Parallel()
	h := mostlySettled(t, files.Config{})
	wantWork(t, h, "at first", "l0 l1")
	reached, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	slow, err := files.Open(files.Config{Dir: h.Dir(), FS: faultfs.Tap(durable.System{}, func(op faultfs.Op) error {
		if op.Kind == faultfs.Publish || op.Kind == faultfs.Link {
			once.Do(func() { close(reached); <-goOn })
		}
		return nil
	})})
	must(t, err)
	defer slow.Close()
	done := make(chan error)
	go func() { done <- slow.Ledger().Create(t.Context(), record(t, numbered(900), slow.Instances().Self())) }()
	<-reached
	for range 3 {
		wantWork(t, h, "before the claim is visible", "l0 l1")
	}
	close(goOn)
	must(t, <-done)
	wantWork(t, h, "once it is visible", "l0 l1 l900")
}

// TestWorkingKeepsWhatIsWanted: a final record for which the caller asks is there until the caller asks no more, and a
// damaged one is told each time.
func TestWorkingKeepsWhatIsWanted(t *testing.T) {
	t.Parallel()
	h := mostlySettled(t, files.Config{})
	wants := func(r ledger.Record) bool { return r.Lineage == "l7" && len(r.Told) == 0 }
	look := func() (names []string, bad int) {
		for r, err := range h.Ledger().(ledger.Working).Working(t.Context(), "untold", wants) {
			if err != nil {
				bad++
				continue
			}
			names = append(names, r.Lineage)
		}
		slices.Sort(names)
		return names, bad
	}
	for range 2 {
		if got, bad := look(); strings.Join(got, " ") != "l0 l1 l7" || bad != 0 {
			t.Fatalf("%v need work and %d are damaged, want l7 too", got, bad)
		}
	}
	annotate(t, h, numbered(7), "told")
	if got, _ := look(); strings.Join(got, " ") != "l0 l1" {
		t.Errorf("after it was told: %v", got)
	}
	path := filepath.Join(h.Dir(), "ledger", "p__l1.json")
	b := read(t, path)
	b[len(b)/3] ^= 1
	write(t, path, b)
	for range 2 {
		if got, bad := look(); strings.Join(got, " ") != "l0" || bad != 1 {
			t.Errorf("with an open record damaged: %v and %d damaged", got, bad)
		}
	}
}

// TestUntoldAnswers: what has to be told is at hand, also for a home that did not write it, until it was told.
func TestUntoldAnswers(t *testing.T) {
	t.Parallel()
	h := home(t)
	a := ledger.Answer{Run: "r1", Loud: true}
	for _, a := range []ledger.Answer{{Run: "r0"}, a, {Run: "r2", Loud: true, Told: true}} {
		must(t, h.Answers().Append(t.Context(), a))
	}
	count := func(h *files.Home) (n int) {
		for a, err := range h.Answers().(ledger.Untold).Untold(t.Context()) {
			if err != nil || a.Run != "r1" {
				t.Errorf("%+v, %v", a, err)
			}
			n++
		}
		return n
	}
	other := openIn(t, h.Dir())
	if count(h) != 1 || count(other) != 1 {
		t.Error("the untold answer is not there")
	}
	a.Told = true
	must(t, other.Answers().Append(t.Context(), a))
	if count(h) != 0 || count(other) != 0 {
		t.Error("the answer is still untold")
	}
}
