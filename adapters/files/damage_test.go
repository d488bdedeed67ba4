package files_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

var key = ledger.Key{Project: "p", Lineage: "l"}

func record(t testing.TB, k ledger.Key, by ledger.Instance) ledger.Record {
	t.Helper()
	r, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: by})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// claimed is a home with the record p/l, and the record's path.
func claimed(t *testing.T) (*files.Home, string) {
	t.Helper()
	h := home(t)
	if err := h.Ledger().Create(t.Context(), record(t, key, h.Instances().Self())); err != nil {
		t.Fatal(err)
	}
	return h, filepath.Join(h.Dir(), "ledger", "p__l.json")
}

func write(t *testing.T, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// spoil is every way in which a sealed file can be wrong, and what has to be said of it.
var spoil = map[string]struct {
	change      func(b []byte) []byte
	torn, newer bool
}{
	"empty":            {func([]byte) []byte { return nil }, true, false},
	"zeros":            {func(b []byte) []byte { return make([]byte, len(b)) }, true, false},
	"cut":              {func(b []byte) []byte { b = bytes.TrimSpace(b); return b[:len(b)/2] }, true, false},
	"one byte less":    {func(b []byte) []byte { b = bytes.TrimSpace(b); return b[:len(b)-1] }, true, false},
	"a flipped bit":    {func(b []byte) []byte { b[len(b)-10] ^= 1; return b }, true, false},
	"a newer envelope": {func([]byte) []byte { return []byte(`{"schema":2,"sha512":"x","body":{}}`) }, false, true},
	"something else":   {func([]byte) []byte { return []byte("#!/bin/sh\n") }, true, false},
}

func TestDamageIsShownAndKeepsTheLineage(t *testing.T) {
	t.Parallel()
	for name, c := range spoil {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, path := claimed(t)
			spoiled := c.change(read(t, path))
			write(t, path, spoiled)
			var bad *ledger.DamageError
			if _, err := h.Ledger().Get(t.Context(), key); !errors.As(err, &bad) || bad.Torn != c.torn || bad.Newer != c.newer || bad.Path != path || bad.Key != key {
				t.Errorf("get: %v (%+v)", err, bad)
			}
			_, err := h.Ledger().Update(t.Context(), key, func(r ledger.Record, _ stamp.Time) (ledger.Record, error) { r.Revision++; return r, nil })
			if !errors.As(err, &bad) {
				t.Errorf("update: %v", err)
			}
			if err := h.Ledger().Create(t.Context(), record(t, key, h.Instances().Self())); !errors.Is(err, ledger.ErrExists) {
				t.Errorf("create: %v", err)
			}
			n := 0
			for _, err := range h.Ledger().List(t.Context()) {
				if !errors.As(err, &bad) {
					t.Errorf("list: %v", err)
				}
				n++
			}
			if n != 1 {
				t.Errorf("%d records are listed", n)
			}
			if got := read(t, path); string(got) != string(spoiled) {
				t.Errorf("the damaged file was rewritten: %q", got)
			}
		})
	}
}

func TestRecordUnderAnotherNameIsDamage(t *testing.T) {
	t.Parallel()
	h, path := claimed(t)
	if err := os.Rename(path, filepath.Join(filepath.Dir(path), "p__m.json")); err != nil {
		t.Fatal(err)
	}
	var bad *ledger.DamageError
	if _, err := h.Ledger().Get(t.Context(), ledger.Key{Project: "p", Lineage: "m"}); !errors.As(err, &bad) || bad.Torn {
		t.Errorf("get: %v", err)
	}
	for _, err := range h.Ledger().List(t.Context()) {
		if !errors.As(err, &bad) {
			t.Errorf("list: %v", err)
		}
	}
}

func TestLaterRecordSchemaIsNeverRewritten(t *testing.T) {
	t.Parallel()
	h := home(t)
	r := record(t, key, h.Instances().Self())
	r.Schema = ledger.Schema + 1
	if err := h.Ledger().Create(t.Context(), r); err == nil {
		t.Error("a record of a later schema was written")
	}
}

func TestReclaimOfATornClaim(t *testing.T) {
	t.Parallel()
	again := func(h *files.Home) error {
		return h.Ledger().(ledger.Reclaimer).Reclaim(t.Context(), record(t, key, h.Instances().Self()))
	}
	t.Run("torn", func(t *testing.T) {
		t.Parallel()
		h, path := claimed(t)
		if err := again(h); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("a sound record: %v", err)
		}
		write(t, path, nil)
		if err := again(h); err != nil {
			t.Errorf("a torn one: %v", err)
		}
		if err := again(h); !errors.Is(err, ledger.ErrExists) {
			t.Errorf("once more: %v", err)
		}
		if r, err := h.Ledger().Get(t.Context(), key); err != nil || r.State != ledger.Claimed {
			t.Errorf("%+v, %v", r, err)
		}
	})
	var bad *ledger.DamageError
	t.Run("with evidence", func(t *testing.T) {
		t.Parallel()
		h, path := claimed(t)
		if _, err := h.Evidence().Put(t.Context(), key, map[string][]byte{"a": nil}); err != nil {
			t.Fatal(err)
		}
		write(t, path, nil)
		if err := again(h); !errors.As(err, &bad) || bad.Torn {
			t.Errorf("got %v", err)
		}
	})
	for name, k := range map[string]ledger.Key{"with a slot": key, "with a slot of nobody": {}, "with a slot of another": {Project: "p", Lineage: "m"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, path := claimed(t)
			_, err := h.Breaker().UpdateState(t.Context(), func(s storm.State, now stamp.Time) (storm.State, error) {
				s, _ = storm.Reserve(s, storm.Slot{Launch: "L", Project: k.Project, Lineage: k.Lineage}, storm.Limits{}, now)
				return s, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, nil)
			var bad *ledger.DamageError
			if err := again(h); (name == "with a slot of another") != (err == nil) || err != nil && !errors.As(err, &bad) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("with a state that cannot be read", func(t *testing.T) {
		t.Parallel()
		h, path := claimed(t)
		write(t, path, nil)
		write(t, filepath.Join(h.Dir(), "state.json"), []byte("{"))
		if err := again(h); err == nil {
			t.Error("reclaimed")
		}
	})
}

func TestSymlinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	h, path := claimed(t)
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(path, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, path); err != nil {
		t.Fatal(err)
	}
	var bad *ledger.DamageError
	if _, err := h.Ledger().Get(t.Context(), key); !errors.As(err, &bad) || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("get: %v", err)
	}
	for _, name := range []string{"answers.jsonl", "updates.jsonl", "state.json"} {
		if err := os.Symlink(elsewhere, filepath.Join(h.Dir(), name)); err != nil {
			t.Fatal(err)
		}
	}
	before := string(read(t, elsewhere))
	if err := h.Answers().Append(t.Context(), ledger.Answer{Run: "r"}); err == nil {
		t.Error("an answer was written through a symlink")
	}
	if _, err := h.Breaker().State(t.Context()); err == nil {
		t.Error("a state was read through a symlink")
	}
	if got := string(read(t, elsewhere)); got != before {
		t.Errorf("the file elsewhere is now %q", got)
	}

	link := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(h.Dir(), link); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Open(files.Config{Dir: link}); err == nil || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("a state folder that is a symlink: %v", err)
	}
	inner := filepath.Join(t.TempDir(), "home")
	if err := errors.Join(os.Mkdir(inner, 0o700), os.Symlink(h.Dir(), filepath.Join(inner, "ledger"))); err != nil {
		t.Fatal(err)
	}
	if _, err := files.Open(files.Config{Dir: inner}); err == nil || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("a ledger folder that is a symlink: %v", err)
	}
}

func TestModes(t *testing.T) {
	t.Parallel()
	h, _ := claimed(t)
	ctx := t.Context()
	err := errors.Join(
		h.Answers().Append(ctx, ledger.Answer{Run: "r"}), h.Updates().Append(ctx, journal.Row{ID: "u"}),
		h.Doorbell().Ring(ctx, doorbell.Note{Run: "r"}), h.Runs().Start(ctx, run.Run{ID: "r", Name: "n"}, func(*run.Run) error { return nil }),
		h.Reports().PutReport(ctx, "e", map[string][]byte{"report.md": nil}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Evidence().Put(ctx, key, map[string][]byte{"log": nil}); err != nil {
		t.Fatal(err)
	}
	err = filepath.Walk(h.Dir(), func(path string, in os.FileInfo, err error) error {
		want := os.FileMode(0o600)
		if in.IsDir() {
			want = os.ModeDir | 0o700
		}
		if in.Mode() != want {
			t.Errorf("%s has mode %s, want %s", path, in.Mode(), want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestDoorbellTakesWhateverLiesThere(t *testing.T) {
	t.Parallel()
	h := home(t)
	dir := filepath.Join(h.Dir(), "doorbell")
	drop := func(name, content string) { write(t, filepath.Join(dir, name), []byte(content)) }
	drop("any name, \"at all\"\n🙂", `{"schema":1,"run":"good"}`)
	drop("empty", "")
	drop("half", `{"schema":1,"ru`)
	drop("zeros", string(make([]byte, 100)))
	drop("no run", `{"schema":1}`)
	drop("later", `{"schema":2,"run":7,"new":[]}`)
	drop(".being written", `{"schema":1,"run":"hidden"}`)
	huge, err := os.Create(filepath.Join(dir, "huge"))
	if err == nil {
		err = errors.Join(huge.Truncate(1<<30), huge.Close()) // a hole: a gigabyte that costs nothing
	}
	err = errors.Join(err, os.Mkdir(filepath.Join(dir, "folder"), 0o700), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	if err != nil {
		t.Fatal(err)
	}
	items, err := h.Doorbell().Pending(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	bad := map[string]error{}
	for _, i := range items {
		if i.Err != nil {
			bad[i.ID] = i.Err
		} else if i.Note.Run != "good" {
			t.Errorf("%q holds %+v", i.ID, i.Note)
		}
		if i.Err != nil && i.Note.Run != "" {
			t.Errorf("%q is bad and has a note", i.ID)
		}
	}
	for name, want := range map[string]string{
		"empty": "JSON", "half": "JSON", "zeros": "invalid", "no run": "run: missing", "later": "newer",
		"huge": "1073741824 bytes", "folder": "regular", "pipe": "regular", "link": "symlink",
	} {
		if err := bad[name]; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	if len(items) != len(bad)+1 || len(bad) != 9 {
		t.Errorf("%d items, %d of them bad", len(items), len(bad))
	}
	for _, i := range items {
		if err := h.Doorbell().Remove(t.Context(), i.ID); err != nil {
			t.Errorf("remove %q: %v", i.ID, err)
		}
	}
	for _, id := range []string{"../state.json", "", "..", "a/b"} {
		if err := h.Doorbell().Remove(t.Context(), id); err == nil {
			t.Errorf("remove %q was taken", id)
		}
	}
}

func TestLogsWithBadLines(t *testing.T) {
	t.Parallel()
	h := home(t)
	path := filepath.Join(h.Dir(), "updates.jsonl")
	add := func(id string) {
		if err := h.Updates().Append(t.Context(), journal.Row{ID: id, Status: journal.Begun}); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(h *files.Home) (ids, bad string) {
		for r, err := range h.Updates().Rows(t.Context()) {
			if err != nil {
				bad += fmt.Sprintln(err)
			} else {
				ids += r.ID
			}
		}
		return ids, bad
	}
	raw := func(s string) {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(s)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("a")
	raw("nonsense\n")
	add("b")
	raw(strings.Repeat("x", 3<<20) + "\n")
	add("c")
	raw(`{"schema":1,"sha256":"torn`)
	for _, h := range []*files.Home{h, openIn(t, h.Dir())} {
		ids, bad := rows(h)
		if ids != "abc" || strings.Count(bad, "\n") != 2 || !strings.Contains(bad, "updates.jsonl:2") || !strings.Contains(bad, "updates.jsonl:4") {
			t.Errorf("with a torn last line: rows %q, bad lines %s", ids, bad)
		}
	}
	add("d") // cuts off what nobody was told was written
	for _, h := range []*files.Home{h, openIn(t, h.Dir())} {
		if ids, bad := rows(h); ids != "abcd" || strings.Count(bad, "\n") != 2 {
			t.Errorf("after the next append: rows %q, bad lines %s", ids, bad)
		}
	}
	// A journal that is put in the place of the old one is read from its start.
	b := read(t, path)
	write(t, path+".new", b[:strings.Index(string(b), "\n")+1])
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if ids, bad := rows(h); ids != "a" || bad != "" {
		t.Errorf("after it was replaced: rows %q, bad lines %s", ids, bad)
	}
}

func TestStateAndEvidenceThatAreDamaged(t *testing.T) {
	t.Parallel()
	h := home(t)
	if _, err := h.Evidence().Put(t.Context(), key, map[string][]byte{"log": []byte("text")}); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(h.Dir(), "state.json"), []byte("{}"))
	var bad *ledger.DamageError
	if _, err := h.Breaker().State(t.Context()); !errors.As(err, &bad) {
		t.Errorf("state: %v", err)
	}
	_, err := h.Breaker().UpdateState(t.Context(), func(s storm.State, now stamp.Time) (storm.State, error) { return s.Disable(now), nil })
	if !errors.As(err, &bad) || string(read(t, filepath.Join(h.Dir(), "state.json"))) != "{}" {
		t.Errorf("change of the state: %v", err)
	}
	write(t, filepath.Join(h.Dir(), "evidence", "p__l", "f-log"), []byte("test"))
	if _, err := h.Evidence().Get(t.Context(), key); !errors.As(err, &bad) {
		t.Errorf("evidence: %v", err)
	}
	if err := os.Remove(filepath.Join(h.Dir(), "evidence", "p__l", "f-log")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Evidence().Get(t.Context(), key); !errors.As(err, &bad) {
		t.Errorf("evidence without its file: %v", err)
	}
}

func TestNameOfARunThatNeverStarted(t *testing.T) {
	t.Parallel()
	h := home(t)
	start := func(id string) error {
		return h.Runs().Start(t.Context(), run.Run{ID: id, Project: "p", Name: "n"}, func(*run.Run) error { return nil })
	}
	if err := errors.Join(start("r1"), start("r2")); err != nil {
		t.Fatal(err)
	}
	// As after a crash between the name and the run: r1 has the name still.
	if err := os.Remove(filepath.Join(h.Dir(), "runs", "r2.json")); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Runs().Holder(t.Context(), "p", "n"); err != nil || r.ID != "r1" {
		t.Errorf("holder %q, %v", r.ID, err)
	}
	if err := start("r3"); err != nil {
		t.Fatal(err)
	}
	if r, err := h.Runs().Holder(t.Context(), "p", "n"); err != nil || r.ID != "r3" {
		t.Errorf("holder %q, %v", r.ID, err)
	}
}
