package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

// begins starts a run under a name that may be taken, and ends it.
func begins(t *testing.T, h *files.Home, id, name string, end bool) {
	t.Helper()
	r := run.Run{ID: id, Project: "p", Name: name, Lineage: id, Log: filepath.Join(h.Dir(), "runs", id+".log")}
	must(t, h.Runs().Start(t.Context(), r, func(*run.Run) error { return nil }))
	must(t, os.WriteFile(r.Log, []byte("log"), 0o600))
	if end {
		_, err := h.Runs().Update(t.Context(), id, func(r run.Run) (run.Run, error) { r.Ended = &run.End{OK: true}; return r, nil })
		must(t, err)
	}
}

func discards(t *testing.T, h *files.Home, id string, may bool) bool {
	t.Helper()
	gone, err := h.Runs().(run.Discarder).Discard(t.Context(), id, func(run.Run) bool { return may })
	must(t, err)
	return gone
}

// TestDiscardNeverGivesANameBack: a name whose last holder goes is free, and never its predecessor's again.
func TestDiscardNeverGivesANameBack(t *testing.T) {
	t.Parallel()
	h := home(t)
	begins(t, h, "r1", "agent", true)
	begins(t, h, "r2", "agent", true)
	if discards(t, h, "r2", true) {
		t.Fatal("the holder went while the run before it is there")
	}
	if r, err := h.Runs().Holder(t.Context(), "p", "agent"); err != nil || r.ID != "r2" {
		t.Fatalf("the name is held by %s (%v), want r2", r.ID, err)
	}
	if !discards(t, h, "r1", true) || !discards(t, h, "r2", true) {
		t.Fatal("in order, both go")
	}
	if r, err := h.Runs().Holder(t.Context(), "p", "agent"); !errors.Is(err, run.ErrNotFound) {
		t.Errorf("the name is held by %s (%v), want nobody", r.ID, err)
	}
	begins(t, h, "r3", "agent", false)
	if r, err := h.Runs().Holder(t.Context(), "p", "agent"); err != nil || r.ID != "r3" {
		t.Errorf("the name went to %s (%v), want r3", r.ID, err)
	}
}

// TestDiscardLeavesTheLiving: a run that has not ended, or about which the caller says no under the lock, stays with its
// log; one that goes takes its own log and no other file.
func TestDiscardLeavesTheLiving(t *testing.T) {
	t.Parallel()
	h := home(t)
	begins(t, h, "lives", "a", false)
	begins(t, h, "wanted", "b", true)
	begins(t, h, "old", "c", true)
	outside := filepath.Join(t.TempDir(), "old.log")
	must(t, os.WriteFile(outside, nil, 0o600))
	begins(t, h, "host", "d", true)
	_, err := h.Runs().Update(t.Context(), "host", func(r run.Run) (run.Run, error) { r.Log = outside; return r, nil })
	must(t, err)
	for id, c := range map[string]struct{ may, gone bool }{"lives": {true, false}, "wanted": {false, false}, "old": {true, true}, "host": {true, true}, "nobody": {true, false}} {
		if got := discards(t, h, id, c.may); got != c.gone {
			t.Errorf("%s went: %v, want %v", id, got, c.gone)
		}
	}
	for name, there := range map[string]bool{"lives.log": true, "wanted.log": true, "old.log": false, "old.json": false, "host.json": false} {
		if _, err := os.Stat(filepath.Join(h.Dir(), "runs", name)); (err == nil) != there {
			t.Errorf("%s is there: %v, want %v", name, err == nil, there)
		}
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file of the host's went: %v", err)
	}
}

// TestLogWithTheNumberOfAnother: a log that is pruned twice may get back the number of the file by which somebody knows it
// who has not looked since, and may have grown beyond the place up to which that one read. It is another log all the same.
func TestLogWithTheNumberOfAnother(t *testing.T) {
	t.Parallel()
	h, other := home(t), home(t)
	answer := func(h *files.Home, run, reason string) {
		must(t, h.Answers().Append(t.Context(), ledger.Answer{Run: run, Reason: reason}))
	}
	list := func() (got string) {
		for a, err := range h.Answers().Answers(t.Context()) {
			must(t, err)
			got += a.Run + "=" + a.Reason + " "
		}
		return got
	}
	answer(h, "r1", "1")
	answer(h, "r2", "2")
	if got := list(); got != "r1=1 r2=2 " {
		t.Fatal(got)
	}
	answer(other, "r3", "for another reason than the others")
	answer(other, "r4", "4")
	answer(other, "r5", "5")
	// In place, so that its number stays.
	write(t, filepath.Join(h.Dir(), "answers.jsonl"), read(t, filepath.Join(other.Dir(), "answers.jsonl")))
	if got := list(); got != "r3=for another reason than the others r4=4 r5=5 " {
		t.Errorf("who had looked before lists %s", got)
	}
}

// TestPruneAnswersKeepsTheRest: what is old goes, all else stays in its order, damaged lines and all, for a home that has
// read the log before and for one that reads it now.
// What a reader left behind that looked for evidence while another process discarded it: an empty folder is none.
func TestEmptyFolderIsNoEvidence(t *testing.T) {
	t.Parallel()
	h := home(t)
	e, k := h.Evidence(), ledger.Key{Project: "p", Lineage: "l"}
	put := func(text string) {
		t.Helper()
		if _, err := e.Put(t.Context(), k, map[string][]byte{"a": []byte(text)}); err != nil {
			t.Fatalf("put: %v", err)
		}
	}
	put("one")
	folders, err := filepath.Glob(filepath.Join(h.Dir(), "evidence", "[^.]*"))
	if err != nil || len(folders) != 1 {
		t.Fatalf("%q, %v", folders, err)
	}
	for _, then := range []func(){
		func() {
			if _, err := e.Get(t.Context(), k); !errors.Is(err, ledger.ErrNotFound) {
				t.Errorf("get: %v, want ErrNotFound", err)
			}
		},
		func() { put("two") },
	} {
		if err := errors.Join(os.RemoveAll(folders[0]), os.Mkdir(folders[0], 0o700)); err != nil {
			t.Fatal(err)
		}
		then()
	}
	if got, err := e.Get(t.Context(), k); err != nil || string(got["a"]) != "two" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestPruneAnswersKeepsTheRest(t *testing.T) {
	t.Parallel()
	h := home(t)
	for i := range 9 {
		must(t, h.Answers().Append(t.Context(), ledger.Answer{Run: fmt.Sprint("r", i%5), Reason: fmt.Sprint(i)}))
	}
	other := openIn(t, h.Dir())
	path := filepath.Join(h.Dir(), "answers.jsonl")
	write(t, path, append([]byte("garbage\n"), read(t, path)...))
	list := func(h *files.Home) (got string, bad int) {
		for a, err := range h.Answers().Answers(t.Context()) {
			if err != nil {
				bad++
				continue
			}
			got += a.Run + "=" + a.Reason + " "
		}
		return got, bad
	}
	list(other)
	old := func(a ledger.Answer) bool { return a.Run == "r1" || a.Run == "r4" }
	n, err := h.Answers().(ledger.AnswerPruner).PruneAnswers(t.Context(), old)
	must(t, err)
	if n != 2 {
		t.Errorf("%d went, want 2", n)
	}
	for _, h := range []*files.Home{h, other, openIn(t, h.Dir())} {
		if got, bad := list(h); got != "r0=5 r2=7 r3=8 " || bad != 1 {
			t.Errorf("left are %s and %d damaged lines", got, bad)
		}
	}
	before := read(t, path)
	if n, err := h.Answers().(ledger.AnswerPruner).PruneAnswers(t.Context(), old); n != 0 || err != nil || string(read(t, path)) != string(before) {
		t.Errorf("the second time: %d, %v", n, err)
	}
	must(t, other.Answers().Append(t.Context(), ledger.Answer{Run: "r9", Reason: "9"}))
	if got, _ := list(h); got != "r0=5 r2=7 r3=8 r9=9 " {
		t.Errorf("after one more: %s", got)
	}
}
