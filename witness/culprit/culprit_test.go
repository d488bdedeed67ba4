package culprit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"github.com/mulligan-dev/mulligan/witness/culprit"
)

// line is a history of one file: revision i holds the i-th content.
type line []string

func (l line) Identify(context.Context, witness.Root) (witness.Identity, error) {
	return witness.Identity{}, errors.New("not asked for here")
}

func (l line) LastChange(context.Context, witness.Root) (stamp.Time, error) {
	return stamp.Time{}, errors.New("not asked for here")
}

func (l line) At(context.Context, witness.Root, stamp.Time) (string, stamp.Window, bool, error) {
	return "", stamp.Window{}, false, nil
}

func index(rev string) (i int) {
	if _, err := fmt.Sscanf(rev, "r%d", &i); err != nil {
		return -1
	}
	return i
}

func (l line) Changed(_ context.Context, _ witness.Root, from, to string) ([]witness.Change, error) {
	if l[index(from)] == l[index(to)] {
		return nil, nil
	}
	return []witness.Change{{Path: "acme/wire.py"}}, nil
}

func (l line) Read(_ context.Context, _ witness.Root, rev, path string) ([]byte, bool, error) {
	text := l[index(rev)]
	return []byte(text), path == "acme/wire.py" && text != "", nil
}

func (l line) Commits(_ context.Context, _ witness.Root, from, to string, _ []string, limit int) (out []witness.Commit, err error) {
	for i := index(to); i > index(from) && len(out) < limit; i-- {
		out = append(out, witness.Commit{Revision: fmt.Sprintf("r%d", i), Parents: []string{fmt.Sprintf("r%d", i-1)}, Subject: "set " + l[i]})
	}
	return out, nil
}

// words is a runtime whose modules bind the words in them.
type words struct{}

func (words) Files(module string) []string {
	return []string{strings.ReplaceAll(module, ".", "/") + ".py"}
}

func (words) Binds(src []byte, name string) bool { return strings.Contains(string(src), name) }

func query(src witness.Source) culprit.Query {
	return culprit.Query{
		Root:   witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/srv/acme"}}, Kind: "memory"},
		Source: src, Modules: words{}, Module: "acme.wire", Symbol: "Frame",
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	l := line{"Frame", "Frame Codec", "Codec", "Codec Log"}
	tests := []struct{ from, to, want, detail string }{
		{"r0", "r3", "r2", "in commit r2"},
		{"r1", "r2", "r2", "in commit r2"},
		{"r3", "r0", "r2", "the tree left commit r2"},
		{"r0", "r1", "", "existed at the boot and at the death"},
		{"r2", "r3", "", "existed neither"},
	}
	for _, tt := range tests {
		q := query(l)
		q.From, q.To = tt.from, tt.to
		a, err := culprit.Find(t.Context(), q)
		got := ""
		if a.Culprit != nil {
			got = a.Culprit.Commit
		}
		if err != nil || got != tt.want || !strings.Contains(a.Detail, tt.detail) {
			t.Errorf("from %s to %s: %+v, %v; want %q and %q", tt.from, tt.to, a, err, tt.want, tt.detail)
		}
	}
}

func TestFindRefuses(t *testing.T) {
	t.Parallel()
	q := query(nil)
	q.Source, q.From, q.To = nil, "r0", "r1"
	if a, err := culprit.Find(t.Context(), q); err != nil || a.Culprit != nil || !strings.Contains(a.Detail, "keeps no old files") {
		t.Errorf("without a history: %+v, %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := culprit.Find(ctx, query(line{"", ""})); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v, want that of the context", err)
	}
}

func ExampleFind() {
	q := query(line{"Frame", "Frame Codec", "Codec"})
	q.From, q.To = "r0", "r2"
	a, err := culprit.Find(context.Background(), q)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(a.Culprit.Commit, a.Culprit.Subject, a.Culprit.Path)
	// Output: r2 set Codec acme/wire.py
}
