package witnesstest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// read is an identity that must be known.
func read(ctx context.Context, w World) (witness.Identity, error) {
	id, err := w.Source.Identify(ctx, w.Root)
	switch {
	case err != nil:
		return id, fmt.Errorf("a healthy tree could not be identified: %w", err)
	case !id.Known():
		return id, fmt.Errorf("a healthy tree is unknown: %s", id.Unknown)
	}
	return id, nil
}

// namesItself: an identity is found again among others by its root and kind, and says when it was read, because a
// report shows that moment beside boot and death.
func namesItself(ctx context.Context, w World) error {
	id, err := read(ctx, w)
	switch {
	case err != nil:
		return err
	case id.Root != w.Root.Name || id.Kind != w.Root.Kind:
		return fmt.Errorf("the identity calls itself root %q of kind %q, and was asked for root %q of kind %q", id.Root, id.Kind, w.Root.Name, w.Root.Kind)
	case id.At.IsZero():
		return fmt.Errorf("the identity does not say when it was read")
	}
	return nil
}

// sameTreeSameKey: two reads of one tree are one identity. A source that mixes in the moment of the read, or the order
// in which a folder lists its files, would make every run look updated.
func sameTreeSameKey(ctx context.Context, w World) error {
	a, err := read(ctx, w)
	if err != nil {
		return err
	}
	b, err := read(ctx, w)
	if err != nil {
		return err
	}
	if a.Key() != b.Key() {
		return fmt.Errorf("two reads of one tree have the keys %s and %s", a.Key(), b.Key())
	}
	return nil
}

// changeChangesKey: every change of code is another identity, the second change of the same file as well. Otherwise an
// update goes unseen, and a probe of the old tree answers for the new one.
func changeChangesKey(ctx context.Context, w World) error {
	seen := map[string]bool{}
	for range 3 {
		id, err := read(ctx, w)
		if err != nil {
			return err
		}
		if seen[id.Key()] {
			return fmt.Errorf("the code changed and the key %s is one that the tree had before", id.Key())
		}
		seen[id.Key()] = true
		w.Change()
	}
	return nil
}

// noiseChangesNothing: a log file beside the code is no code. A source that counts every file would find an update
// under every run that writes a log.
func noiseChangesNothing(ctx context.Context, w World) error {
	if w.Noise == nil {
		return fmt.Errorf("%w: no place for a log file", ErrSkip)
	}
	a, err := read(ctx, w)
	if err != nil {
		return err
	}
	w.Noise()
	b, err := read(ctx, w)
	if err != nil {
		return err
	}
	if a.Key() != b.Key() {
		return fmt.Errorf("a log file beside the code changed the key from %s to %s", a.Key(), b.Key())
	}
	return nil
}

// survivesStoring: identities are kept in JSON between the boot and the death. A name that JSON cannot hold comes back
// as another, and the tree then seems to have changed.
func survivesStoring(ctx context.Context, w World) error {
	w.Change()
	id, err := read(ctx, w)
	if err != nil {
		return err
	}
	text, err := json.Marshal(id)
	if err != nil {
		return fmt.Errorf("the identity cannot be stored: %w", err)
	}
	var back witness.Identity
	if err := json.Unmarshal(text, &back); err != nil {
		return fmt.Errorf("the stored identity cannot be read: %w", err)
	}
	if back.Key() != id.Key() {
		return fmt.Errorf("the key %s became %s when the identity was stored", id.Key(), back.Key())
	}
	return nil
}

// brokenIsUnknown: a tree that cannot be read is a fact about the tree, not a failure of the pass. The identity says
// why, holds nothing else that could be compared, and still says which root it is about.
func brokenIsUnknown(ctx context.Context, w World) error {
	w.Break()
	id, err := w.Source.Identify(ctx, w.Root)
	switch {
	case err != nil:
		return fmt.Errorf("a tree that cannot be read is an error instead of an unknown identity: %w", err)
	case id.Unknown == "":
		return fmt.Errorf("a tree that cannot be read has an identity without a reason in Unknown: %+v", id)
	case id.Revision != "" || len(id.Dirty) > 0 || len(id.Bindings) > 0:
		return fmt.Errorf("an unknown identity holds something: %+v", id)
	case id.Root != w.Root.Name || id.Kind != w.Root.Kind:
		return fmt.Errorf("an unknown identity calls itself root %q of kind %q", id.Root, id.Kind)
	}
	return nil
}

// endedContext: a caller that gave up is told so. An unknown identity in its place would be recorded as what the root
// held.
func endedContext(ctx context.Context, w World) error {
	ended, cancel := context.WithCancel(ctx)
	cancel()
	id, err := w.Source.Identify(ended, w.Root)
	if err == nil {
		return fmt.Errorf("the context had ended and Identify returned %+v without an error", id)
	}
	return nil
}

// concurrentReads: several deaths are judged at once. The race detector sees what the comparison does not.
func concurrentReads(ctx context.Context, w World) error {
	want, err := read(ctx, w)
	if err != nil {
		return err
	}
	const readers = 4
	errs := make([]error, readers)
	var wg sync.WaitGroup
	for i := range readers {
		wg.Go(func() {
			id, err := read(ctx, w)
			if err == nil && id.Key() != want.Key() {
				err = fmt.Errorf("a read beside others has the key %s, alone it was %s", id.Key(), want.Key())
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// writesNothing: the tree belongs to the host and its updates. A source that refreshes an index or leaves a cache
// behind moves the very signal by which the tree is taken to be at rest.
func writesNothing(ctx context.Context, w World) error {
	w.Change()
	folders := w.Folders
	if folders == nil {
		folders = w.Root.Dirs
	}
	before, err := snapshot(folders)
	if err != nil {
		return err
	}
	if _, err := read(ctx, w); err != nil {
		return err
	}
	if _, err := w.Source.LastChange(ctx, w.Root); err != nil {
		return fmt.Errorf("a healthy tree has no change signal: %w", err)
	}
	after, err := snapshot(folders)
	if err != nil {
		return err
	}
	for name, was := range before {
		if is, ok := after[name]; !ok || is != was {
			return fmt.Errorf("reading changed or removed %s", name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			return fmt.Errorf("reading made %s", name)
		}
	}
	return nil
}

// snapshot is everything below the folders: content, mode and modification time.
func snapshot(folders []string) (map[string]string, error) {
	out := map[string]string{}
	for _, dir := range folders {
		err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			fi, err := e.Info()
			if err != nil {
				return err
			}
			content := ""
			if fi.Mode().IsRegular() {
				text, err := os.ReadFile(name)
				if err != nil {
					return err
				}
				content = fmt.Sprintf("%x", sha256.Sum256(text))
			}
			out[name] = fmt.Sprint(fi.Mode(), fi.ModTime().UnixNano(), content)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("the suite could not read the world's folder %s: %w", dir, err)
		}
	}
	return out, nil
}

// lastChange is a last change that must be there.
func lastChange(ctx context.Context, w World) (stamp.Time, error) {
	at, err := w.Source.LastChange(ctx, w.Root)
	switch {
	case err != nil:
		return at, fmt.Errorf("a healthy tree has no change signal: %w", err)
	case at.IsZero():
		return at, fmt.Errorf("a healthy tree has the zero moment as its last change")
	}
	return at, nil
}

// rounds is how often a world is changed before its clock must have moved on: some file systems count in steps of ten
// milliseconds.
const rounds = 200

// changeRises: a change of code moves the last change forwards, never back. A source that misses changes lets a healer
// start a replacement on a half-written tree.
func changeRises(ctx context.Context, w World) error {
	before, err := lastChange(ctx, w)
	if err != nil {
		return err
	}
	for range rounds {
		w.Change()
		after, err := lastChange(ctx, w)
		if err != nil {
			return err
		}
		switch d := after.Sub(before); {
		case d > 0:
			return nil
		case d < 0:
			return fmt.Errorf("the last change went back from %s to %s", before, after)
		}
	}
	return fmt.Errorf("the code changed %d times and the last change stayed at %s", rounds, before)
}

// changeRests: looking is no change. A source whose own look moves the signal never lets the tree become quiet.
func changeRests(ctx context.Context, w World) error {
	w.Change()
	before, err := lastChange(ctx, w)
	if err != nil {
		return err
	}
	for range 3 {
		if _, err := read(ctx, w); err != nil {
			return err
		}
		after, err := lastChange(ctx, w)
		if err != nil {
			return err
		}
		if after.Sub(before) != 0 {
			return fmt.Errorf("nothing changed and the last change went from %s to %s", before, after)
		}
	}
	return nil
}

// changeNotInFuture: a moment that has not come cannot be aged. Modification times can lie ahead, as those of an
// unpacked archive do; change times cannot.
func changeNotInFuture(ctx context.Context, w World) error {
	w.Change()
	at, err := lastChange(ctx, w)
	if err != nil {
		return err
	}
	// The clocks of a file system and of a process may differ by a little.
	const slack = 2 * time.Second
	if ahead := time.Until(at.Wall); ahead > slack {
		return fmt.Errorf("the last change (%s) lies %v in the future", at, ahead)
	}
	return nil
}

// brokenHasNoSignal: without a signal there is an error. A moment long past, or the zero one, would pass for rest.
func brokenHasNoSignal(ctx context.Context, w World) error {
	w.Break()
	at, err := w.Source.LastChange(ctx, w.Root)
	if err == nil {
		return fmt.Errorf("a tree that cannot be read has a last change (%s), and may be taken for quiet", at)
	}
	return nil
}

// observerAgrees: the one look says what the two looks say, of a healthy tree and of a broken one.
func observerAgrees(ctx context.Context, w World) error {
	o, ok := w.Source.(witness.Observer)
	if !ok {
		return ErrSkip
	}
	w.Change()
	got, err := o.Observe(ctx, w.Root)
	if err != nil {
		return fmt.Errorf("a healthy tree could not be observed: %w", err)
	}
	id, err := read(ctx, w)
	if err != nil {
		return err
	}
	at, err := lastChange(ctx, w)
	if err != nil {
		return err
	}
	switch {
	case got.NoSignal != nil:
		return fmt.Errorf("Observe finds no change signal (%w), LastChange does", got.NoSignal)
	case got.Identity.Key() != id.Key():
		return fmt.Errorf("Observe reads the key %s, Identify %s", got.Identity.Key(), id.Key())
	case got.Changed.Sub(at) != 0:
		return fmt.Errorf("Observe reads the last change %s, LastChange %s", got.Changed, at)
	}
	w.Break()
	got, err = o.Observe(ctx, w.Root)
	switch {
	case err != nil:
		return fmt.Errorf("observing a tree that cannot be read is an error: %w", err)
	case got.Identity.Known() || got.Identity.Unknown == "" || got.NoSignal == nil:
		return fmt.Errorf("observing a tree that cannot be read gives %s", strings.TrimSpace(fmt.Sprintf("%+v", got)))
	}
	return nil
}

// inForce is the answer of a source that can date what it holds.
func inForce(ctx context.Context, w World) (witness.Identity, stamp.Time, error) {
	d, ok := w.Source.(witness.Dated)
	if !ok {
		return witness.Identity{}, stamp.Time{}, ErrSkip
	}
	id, since, err := d.InForce(ctx, w.Root)
	if err != nil {
		return id, since, fmt.Errorf("a healthy tree could not be dated: %w", err)
	}
	return id, since, nil
}

// datedAgrees: the dated identity is the one that Identify reads, and it cannot have come later than the last change.
func datedAgrees(ctx context.Context, w World) error {
	w.Change()
	dated, since, err := inForce(ctx, w)
	if err != nil {
		return err
	}
	id, err := read(ctx, w)
	if err != nil {
		return err
	}
	at, err := lastChange(ctx, w)
	if err != nil {
		return err
	}
	switch {
	case dated.Key() != id.Key():
		return fmt.Errorf("InForce reads the key %s, Identify %s", dated.Key(), id.Key())
	case !since.IsZero() && since.Sub(at) > 0:
		return fmt.Errorf("the tree came into force (%s) after its last change (%s)", since, at)
	}
	return nil
}

// datedMoves: an update makes the date younger. One that stays would let an update after the death pass for one before.
func datedMoves(ctx context.Context, w World) error {
	_, before, err := inForce(ctx, w)
	if err != nil {
		return err
	}
	if before.IsZero() {
		return fmt.Errorf("%w: the disk does not tell since when", ErrSkip)
	}
	for range rounds {
		w.Change()
		_, after, err := inForce(ctx, w)
		if err != nil {
			return err
		}
		if after.Sub(before) > 0 {
			return nil
		}
	}
	return fmt.Errorf("the code was updated %d times and is said to be in force since %s", rounds, before)
}
