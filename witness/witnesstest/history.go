package witnesstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// past is the history of a world that can show what the checks ask for.
func past(w World) (witness.History, error) {
	h, ok := w.Source.(witness.History)
	if !ok {
		return nil, ErrSkip
	}
	if len(w.Past) < 3 {
		return nil, fmt.Errorf("the world's past has %d steps; the suite needs three", len(w.Past))
	}
	deleted := false
	for i, s := range w.Past {
		if i == 0 {
			continue
		}
		if s.From.Sub(w.Past[i-1].From) < 3*time.Second {
			return nil, fmt.Errorf("the world's steps %d and %d are less than three seconds apart", i-1, i)
		}
		touched := touchedBetween(w.Past[i-1], s)
		if len(touched) == 0 {
			return nil, fmt.Errorf("the world's step %d changes no file", i)
		}
		for _, p := range touched {
			if _, ok := s.Files[p]; !ok {
				deleted = true
			}
		}
	}
	if !deleted {
		return nil, fmt.Errorf("no step of the world's past deletes a file")
	}
	return h, nil
}

// touchedBetween are the paths whose content differs, sorted.
func touchedBetween(a, b Step) []string {
	var out []string
	for p, was := range a.Files {
		if is, ok := b.Files[p]; !ok || is != was {
			out = append(out, p)
		}
	}
	for p := range b.Files {
		if _, ok := a.Files[p]; !ok {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// historyInForce: at every moment that is certain the history names the revision in force, and the span in which it
// was.
func historyInForce(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	for i, s := range w.Past {
		// Two seconds on, also a coarse record is certain.
		t := stamp.Wall(s.From.Wall.Add(2*time.Second), 0)
		rev, in, ok, err := h.At(ctx, w.Root, t)
		switch {
		case err != nil:
			return fmt.Errorf("the history could not be read: %w", err)
		case !ok:
			return fmt.Errorf("step %d is in the past and At does not reach it", i)
		case rev != s.Revision:
			return fmt.Errorf("at step %d revision %s was in force, At says %s", i, s.Revision, rev)
		case !in.Contains(t) && !in.To.IsZero():
			return fmt.Errorf("At says that revision %s was in force from %s to %s, which does not hold the asked moment %s", rev, in.From, in.To, t)
		case i+1 < len(w.Past) && !in.To.Wall.Equal(w.Past[i+1].From.Wall.Truncate(max(in.To.Grain, 1))):
			return fmt.Errorf("revision %s was in force until %s, At says until %s", rev, w.Past[i+1].From, in.To)
		case i+1 == len(w.Past) && !in.To.IsZero():
			return fmt.Errorf("revision %s is still in force, At says until %s", rev, in.To)
		}
	}
	return nil
}

// historyCoarse: within the grain of a move only the revision before it is certain. Naming the newer one would make an
// update of the same second, but after the death, a witness.
func historyCoarse(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	for i := 1; i < len(w.Past); i++ {
		_, in, ok, err := h.At(ctx, w.Root, stamp.Wall(w.Past[i].From.Wall.Add(2*time.Second), 0))
		if err != nil || !ok {
			return fmt.Errorf("step %d could not be told: %v, %v", i, ok, err)
		}
		grain := in.From.Grain
		if grain == 0 {
			continue
		}
		t := stamp.Wall(in.From.Wall.Add(grain/2), 0)
		rev, _, ok, err := h.At(ctx, w.Root, t)
		switch {
		case err != nil:
			return fmt.Errorf("the history could not be read: %w", err)
		case !ok || rev != w.Past[i-1].Revision:
			return fmt.Errorf("step %d came somewhere within %v of %s; within that span only the step before (%s) is certain, At says %q, %v", i, grain, in.From, w.Past[i-1].Revision, rev, ok)
		}
	}
	return nil
}

// historyBeginning: before its first step a history does not know. Naming the oldest revision it has would be a guess.
func historyBeginning(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	rev, _, ok, err := h.At(ctx, w.Root, stamp.Wall(w.Past[0].From.Wall.Add(-time.Hour), 0))
	if err != nil {
		return fmt.Errorf("the history could not be read: %w", err)
	}
	if ok {
		return fmt.Errorf("an hour before the first step At says that %s was in force", rev)
	}
	return nil
}

// historyReads: each file at each step, those that did not exist then included: an empty file and none are not the
// same.
func historyReads(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	for _, p := range allPaths(w) {
		for i, s := range w.Past {
			got, ok, err := h.Read(ctx, w.Root, s.Revision, p)
			want, exists := s.Files[p]
			switch {
			case err != nil:
				return fmt.Errorf("%s at step %d could not be read: %w", p, i, err)
			case ok != exists:
				return fmt.Errorf("at step %d whether %s existed is %v, Read says %v", i, p, exists, ok)
			case string(got) != want:
				return fmt.Errorf("at step %d %s held %q, Read says %q", i, p, want, got)
			}
		}
	}
	return nil
}

func allPaths(w World) []string {
	var out []string
	for _, s := range w.Past {
		for p := range s.Files {
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
	}
	slices.Sort(out)
	return out
}

// noSuch is a revision that is well formed and not there: the last one with its letters turned round.
func noSuch(w World) string {
	last := w.Past[len(w.Past)-1].Revision
	b := []byte(last)
	slices.Reverse(b)
	if string(b) == last {
		return strings.Repeat("0", len(last))
	}
	return string(b)
}

// historyUnknown: a revision that is not there is an error in every question. Taken for one without files, each of its
// names would seem to have been removed.
func historyUnknown(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	rev, known := noSuch(w), w.Past[0].Revision
	if _, _, err := h.Read(ctx, w.Root, rev, allPaths(w)[0]); err == nil {
		return fmt.Errorf("revision %s is not there and Read returned no error", rev)
	}
	if _, err := h.Changed(ctx, w.Root, known, rev); err == nil {
		return fmt.Errorf("revision %s is not there and Changed returned no error", rev)
	}
	if _, err := h.Commits(ctx, w.Root, known, rev, allPaths(w), 10); err == nil {
		return fmt.Errorf("revision %s is not there and Commits returned no error", rev)
	}
	return nil
}

// historyChanged: between any two steps, in both directions, exactly the files that differ, and which of them are gone.
func historyChanged(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	for i := range w.Past {
		for j := range w.Past {
			a, b := w.Past[i], w.Past[j]
			changes, err := h.Changed(ctx, w.Root, a.Revision, b.Revision)
			if err != nil {
				return fmt.Errorf("steps %d and %d could not be compared: %w", i, j, err)
			}
			var got []string
			for _, c := range changes {
				got = append(got, c.Path)
				if _, ok := b.Files[c.Path]; ok == c.Deleted {
					return fmt.Errorf("from step %d to step %d whether %s was deleted is %v, Changed says %v", i, j, c.Path, !ok, c.Deleted)
				}
			}
			slices.Sort(got)
			if want := touchedBetween(a, b); !slices.Equal(got, want) {
				return fmt.Errorf("from step %d to step %d %q changed, Changed says %q", i, j, want, got)
			}
		}
	}
	return nil
}

// touching are the steps after from up to to that touched a path, newest first.
func touching(w World, from, to int, p string) []string {
	var out []string
	for i := to; i > from; i-- {
		if slices.Contains(touchedBetween(w.Past[i-1], w.Past[i]), p) {
			out = append(out, w.Past[i].Revision)
		}
	}
	return out
}

// historyCommits: for each file the steps that touched it, deletions included, newest first and with their parents;
// and none on the way back, where no commit leads.
func historyCommits(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	last := len(w.Past) - 1
	for _, p := range allPaths(w) {
		for from := range last {
			commits, err := h.Commits(ctx, w.Root, w.Past[from].Revision, w.Past[last].Revision, []string{p}, 100)
			if err != nil {
				return fmt.Errorf("the commits after step %d could not be listed: %w", from, err)
			}
			var got []string
			for _, c := range commits {
				got = append(got, c.Revision)
				i := slices.IndexFunc(w.Past, func(s Step) bool { return s.Revision == c.Revision })
				if i > 0 && !slices.Equal(c.Parents, []string{w.Past[i-1].Revision}) {
					return fmt.Errorf("the parent of step %d is step %d (%s), Commits says %q", i, i-1, w.Past[i-1].Revision, c.Parents)
				}
			}
			if want := touching(w, from, last, p); !slices.Equal(got, want) {
				return fmt.Errorf("after step %d %s was touched by %q, newest first; Commits says %q", from, p, want, got)
			}
		}
		back, err := h.Commits(ctx, w.Root, w.Past[last].Revision, w.Past[0].Revision, []string{p}, 100)
		if err != nil || len(back) != 0 {
			return fmt.Errorf("no commit leads from the last step back to the first, Commits says %v, %v", back, err)
		}
	}
	return nil
}

// historyLimit: the limit keeps the newest, because the search begins there.
func historyLimit(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	last := len(w.Past) - 1
	commits, err := h.Commits(ctx, w.Root, w.Past[0].Revision, w.Past[last].Revision, allPaths(w), 1)
	if err != nil {
		return fmt.Errorf("the commits could not be listed: %w", err)
	}
	if len(commits) != 1 || commits[0].Revision != w.Past[last].Revision {
		return fmt.Errorf("with limit 1 the newest (%s) is the answer, Commits says %v", w.Past[last].Revision, commits)
	}
	return nil
}

// batchAgrees: many files at once are each what one at a time is, in their places.
func batchAgrees(ctx context.Context, w World) error {
	h, err := past(w)
	if err != nil {
		return err
	}
	b, ok := h.(witness.BatchReader)
	if !ok {
		return ErrSkip
	}
	var blobs []witness.Blob
	for _, s := range w.Past {
		for _, p := range append(allPaths(w), "no/such/file") {
			blobs = append(blobs, witness.Blob{Revision: s.Revision, Path: p})
		}
	}
	// Not in order of revision: an answer belongs to its place.
	slices.Reverse(blobs)
	got, err := b.ReadAll(ctx, w.Root, blobs)
	if err != nil || len(got) != len(blobs) {
		return fmt.Errorf("%d files were asked for, ReadAll gave %d: %v", len(blobs), len(got), err)
	}
	for i, q := range blobs {
		data, exists, err := h.Read(ctx, w.Root, q.Revision, q.Path)
		if err != nil {
			return fmt.Errorf("%s could not be read: %w", q.Path, err)
		}
		if exists != got[i].Exists || string(data) != string(got[i].Data) {
			return fmt.Errorf("%s at %s: Read says %v %q, ReadAll %v %q", q.Path, q.Revision, exists, data, got[i].Exists, got[i].Data)
		}
	}
	if _, err := b.ReadAll(ctx, w.Root, []witness.Blob{{Revision: noSuch(w), Path: allPaths(w)[0]}}); err == nil {
		return fmt.Errorf("a revision is not there and ReadAll returned no error")
	}
	return nil
}
