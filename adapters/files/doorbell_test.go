package files_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/doorbell"
)

// TestOneLookIsBounded: more lies there than one look reads. What is not read is listed, and is first in the next look,
// so that every note is read in turn although none is removed.
func TestOneLookIsBounded(t *testing.T) {
	t.Parallel()
	h := home(t)
	dir := filepath.Join(h.Dir(), "doorbell")
	write(t, filepath.Join(dir, "n-000"), []byte(`{"schema":1,"run":"r"}`+strings.Repeat(" ", 1<<20-100)))
	const many = 200 // of a megabyte each, all the same file
	for i := 1; i < many; i++ {
		if err := os.Link(filepath.Join(dir, "n-000"), filepath.Join(dir, fmt.Sprintf("n-%03d", i))); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "zz-last"), []byte(`{"schema":1,"run":"last"}`))
	read := map[string]int{}
	for look := range 4 {
		items, err := h.Doorbell().Pending(t.Context())
		if err != nil || len(items) != many+1 {
			t.Fatalf("look %d lists %d notes, %v", look, len(items), err)
		}
		n := 0
		for _, it := range items {
			switch {
			case it.Err == nil:
				read[it.ID]++
				n++
			case !errors.Is(it.Err, doorbell.ErrLater) || it.Note.Run != "":
				t.Errorf("%s: %v", it.ID, it.Err)
			}
			if it.Place != filepath.Join(dir, it.ID) {
				t.Errorf("%s is said to lie at %s", it.ID, it.Place)
			}
		}
		if n == 0 || n > 70 {
			t.Errorf("look %d read %d notes", look, n)
		}
	}
	if len(read) != many+1 {
		t.Errorf("%d of %d notes were read in four looks", len(read), many+1)
	}
}

// TestNoteWithoutATime: a note that does not say when the run died was left at the time of its file.
func TestNoteWithoutATime(t *testing.T) {
	t.Parallel()
	h := home(t)
	path := filepath.Join(h.Dir(), "doorbell", "n")
	write(t, path, []byte(`{"schema":1,"run":"r"}`))
	at := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	items, err := h.Doorbell().Pending(t.Context())
	if err != nil || len(items) != 1 || items[0].Err != nil || !items[0].Note.At.Wall.Equal(at) {
		t.Errorf("%+v, %v", items, err)
	}
}
