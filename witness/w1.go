package witness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// identities looks for W1 and finds the two sides that the file proof compares.
func (s *search) identities(ctx context.Context) {
	boot, ok := find(s.q.Boot, s.root.Name)
	switch {
	case !ok:
		s.unsided = "the identity at the boot was not recorded"
	case !boot.Known():
		s.unsided = "the identity at the boot could not be read: " + boot.why()
	}
	if s.unsided != "" {
		s.absent(BootIdentity, "%s", s.unsided)
		return
	}
	// A reading at the death is the best there is: nothing has to be concluded from what is there now.
	death, ok := find(s.q.Death, s.root.Name)
	if ok && death.Known() {
		s.sides(sideOf(boot), sideOf(death))
		s.compare(ctx, boot, death)
		return
	}
	unread := "the identity at the death was not recorded"
	if ok {
		unread = "the identity at the death could not be read (" + death.why() + ")"
	}
	if s.history != nil {
		s.fromHistory(ctx, boot, unread)
		return
	}
	// A package has no past, but what is installed now may be dated.
	if d, ok := s.source.(Dated); ok {
		s.fromDate(ctx, d, boot, unread)
		return
	}
	s.unsided = unread
	s.absent(BootIdentity, "%s, and a root of kind %q has no memory of its past", unread, s.root.Kind)
}

// why is the reason of an unknown identity, also of one that a host left empty.
func (i Identity) why() string {
	if i.Unknown != "" {
		return i.Unknown
	}
	return "it holds no revision"
}

// compare is W1 with both readings.
func (s *search) compare(ctx context.Context, boot, death Identity) {
	if boot.Key() == death.Key() {
		s.absent(BootIdentity, "the root held %s at the boot and at the death", boot.short())
		return
	}
	e := Evidence{Kind: BootIdentity, From: boot.Key(), To: death.Key(), When: s.q.Window}
	differs, same := s.committed(ctx, boot, death)
	if differs {
		e.Detail = fmt.Sprintf("%s held %s when the run booted and %s when it died", s.root.Name, boot.short(), death.short())
		s.holds(e)
		return
	}
	// The commits between, if any, did not change this tree: what is left is a difference of the dirty parts.
	files, bindings := differing(boot, death)
	files = slices.DeleteFunc(files, func(p string) bool { return slices.Contains(same, p) })
	if len(files)+len(bindings) == 0 {
		s.absent(BootIdentity, "no file of the root differs between %s and %s", short(boot.Revision), short(death.Revision))
		return
	}
	touched := s.touched(files, bindings)
	if touched == "" {
		s.absent(BootIdentity, "what changed between boot and death outside any commit (%s) is not on the failing stack", someOf(append(files, bindings...)))
		return
	}
	e.Detail = fmt.Sprintf("%s of %s, which is on the failing stack, changed between boot and death", touched, s.root.Name)
	s.holds(e)
}

// committed reports whether the commits between two identities changed the tree. Where they did not, same are the paths
// that they touched all the same: each was dirty on one side with the content that it has on the other, because whoever
// commits what the run booted with changes nothing. Without a history, or with one that cannot say, different revisions
// are different trees.
func (s *search) committed(ctx context.Context, boot, death Identity) (differs bool, same []string) {
	if boot.Revision == death.Revision {
		return false, nil
	}
	if s.history == nil {
		return true, nil
	}
	changes, err := s.changed(ctx, boot.Revision, death.Revision)
	if err != nil {
		return true, nil
	}
	from, to := sideOf(boot), sideOf(death)
	var blobs []Blob
	for _, c := range changes {
		_, dirtyThen := from.dirty[c.Path]
		_, dirtyNow := to.dirty[c.Path]
		if !dirtyThen && !dirtyNow {
			return true, nil
		}
		blobs = append(blobs, Blob{boot.Revision, c.Path}, Blob{death.Revision, c.Path})
	}
	contents, err := readAll(ctx, s.history, s.root, blobs)
	if err != nil {
		return true, nil
	}
	for i, c := range changes {
		if from.digest(c.Path, contents[2*i]) != to.digest(c.Path, contents[2*i+1]) {
			return true, nil
		}
		same = append(same, c.Path)
	}
	return false, same
}

// digest is what the side held at a path, given what its revision holds there.
func (d side) digest(p string, committed Content) string {
	if digest, ok := d.dirty[p]; ok {
		return digest
	}
	if !committed.Exists {
		return ""
	}
	return digestOf(committed.Data)
}

// digestOf is the digest that adapters give a dirty file, so that the two can be compared.
func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// differing are the paths of the dirty parts, and of the bindings, that are not the same in both identities.
func differing(a, b Identity) (files, bindings []string) {
	x, y := sideOf(a).dirty, sideOf(b).dirty
	for p, d := range x {
		if other, ok := y[p]; !ok || other != d {
			files = append(files, p)
		}
	}
	for p := range y {
		if _, ok := x[p]; !ok {
			files = append(files, p)
		}
	}
	for _, l := range a.Bindings {
		if !slices.Contains(b.Bindings, l) {
			bindings = append(bindings, l.Path)
		}
	}
	for _, l := range b.Bindings {
		if !slices.Contains(a.Bindings, l) && !slices.Contains(bindings, l.Path) {
			bindings = append(bindings, l.Path)
		}
	}
	slices.Sort(files)
	return files, bindings
}

// touched is the first of the changed paths that is a module or a binding on the failing stack, or empty.
func (s *search) touched(files, bindings []string) string {
	v := &s.q.Verdict
	on := map[string]bool{}
	// What the stack shows by its files, whatever their modules are called.
	for _, f := range v.Frames {
		if rel, ok := s.root.within(f.File); ok && strings.HasPrefix(slashed(f.File), "/") {
			on[rel] = true
		}
	}
	stack := append([]string{v.Module}, v.ManagedModules...)
	if v.Symbol != "" {
		stack = append(stack, v.Module+"."+v.Symbol)
	}
	// And what it names by modules, the missing one included, which has no frame.
	if m := s.q.modules(s.root); m != nil {
		for _, module := range stack {
			for _, p := range s.q.moduleFiles(s.root, m, module) {
				on[p] = true
			}
		}
	}
	for _, p := range files {
		if on[p] {
			return p
		}
	}
	for _, b := range bindings {
		if s.boundBy(b, stack) {
			return b
		}
	}
	return ""
}

// boundBy reports whether a native library is what a module of the stack loads, or what the message names.
func (s *search) boundBy(binding string, stack []string) bool {
	base := path.Base(slashed(binding))
	if base == "." || base == "/" {
		return false
	}
	if strings.Contains(s.q.Verdict.Message, base) {
		return true
	}
	stem, _, _ := strings.Cut(base, ".")
	if base == binding && !strings.Contains(base, ".so") {
		stem = base[strings.LastIndexByte(base, '.')+1:] // declared by its dotted name, and not found on disk
	}
	for _, module := range stack {
		if module == "" {
			continue
		}
		last := module[strings.LastIndexAny(module, `.:/\`)+1:]
		if path.Base(slashed(module)) == base || last == stem || last == strings.TrimPrefix(stem, "lib") {
			return true
		}
	}
	return false
}

// steps bounds the walk over the moves that came after a death.
const steps = 16

// fromHistory is W1 without a reading at the death: the history tells what was in force, and an update that spans the
// death is told by the change times of its paths.
func (s *search) fromHistory(ctx context.Context, boot Identity, unread string) {
	rev, in, ok, err := s.history.At(ctx, s.root, s.q.Window.To)
	if err != nil || !ok {
		why := "the history does not reach back to it"
		if err != nil {
			why = err.Error()
		}
		s.unsided = unread + ", and " + why
		s.absent(BootIdentity, "%s", s.unsided)
		return
	}
	// Another revision was in force. It is another tree only if it differs from what the run booted with.
	if rev != boot.Revision {
		moved, err := s.moved(ctx, boot, rev)
		if err != nil {
			s.unsided = unread + ", and " + err.Error()
			s.absent(BootIdentity, "%s", s.unsided)
			return
		}
		s.sides(sideOf(boot), moved.to)
		if moved.differs {
			s.holds(Evidence{Kind: BootIdentity, From: boot.Key(), To: rev, When: stamp.Window{From: later(s.q.Window.From, in.From), To: s.q.Window.To},
				Detail: fmt.Sprintf("%s held %s when the run booted and, by its history, %s when it died", s.root.Name, boot.short(), short(rev))})
			return
		}
	} else {
		s.sides(sideOf(boot), sideOf(boot))
	}
	s.spanning(ctx, boot, rev, in, unread)
}

// spanning looks for an update that had begun to change files when the run died, though the history moved only after
// the death. Only the first move that changes the root can be it.
func (s *search) spanning(ctx context.Context, boot Identity, rev string, in stamp.Window, unread string) {
	for range steps {
		if in.To.IsZero() {
			break
		}
		next, span, ok, err := s.history.At(ctx, s.root, pastGrain(in.To))
		if err != nil || !ok {
			break
		}
		began := in.To
		in = span
		changes, err := s.changed(ctx, rev, next)
		if err != nil {
			break
		}
		if len(changes) == 0 {
			continue
		}
		first, ok := earliest(changes, s.q.Window.From)
		if !ok || first.After(s.q.Window.To) {
			s.absent(BootIdentity, "%s, by its history the root held %s then; the update to %s came after the death", unread, short(rev), short(next))
			return
		}
		moved, err := s.moved(ctx, boot, next)
		if err != nil || !moved.differs {
			break
		}
		s.sides(sideOf(boot), moved.to)
		s.holds(Evidence{Kind: BootIdentity, From: boot.Key(), To: next, When: stamp.Window{From: first, To: later(first, began)},
			Detail: fmt.Sprintf("an update of %s from %s to %s had begun to change files when the run died", s.root.Name, short(rev), short(next))})
		return
	}
	s.absent(BootIdentity, "%s; by its history the root held %s at the boot and at the death", unread, short(rev))
}

// pastGrain is the first moment at which every move of a coarse moment is over: what an update of several steps left in
// the end is what counts.
func pastGrain(t stamp.Time) stamp.Time { return t.Add(t.Grain + time.Nanosecond) }

// earliest is the earliest change time that is not before the boot: what was changed earlier, and committed later, was
// there when the run booted.
func earliest(changes []Change, boot stamp.Time) (stamp.Time, bool) {
	var first stamp.Time
	for _, c := range changes {
		if c.At.IsZero() || c.At.Before(boot) {
			continue
		}
		if first.IsZero() || first.Sub(c.At) > 0 {
			first = c.At
		}
	}
	return first, !first.IsZero()
}

// move is where a step of the history led: what the root held then, and whether that is another tree.
type move struct {
	to      side
	differs bool
}

// moved is the side that a move of the history led to. What was dirty at the boot is taken to have stayed so, except
// where the move wrote it.
func (s *search) moved(ctx context.Context, boot Identity, rev string) (move, error) {
	changes, err := s.changed(ctx, boot.Revision, rev)
	if err != nil {
		return move{}, err
	}
	from, to := sideOf(boot), sideOf(boot)
	to.revision = rev
	var blobs []Blob
	differs := false
	// A path that was clean at the boot and is changed by the move differs for certain. One that was dirty may have
	// been committed as it was.
	for _, c := range changes {
		if _, dirty := from.dirty[c.Path]; dirty {
			delete(to.dirty, c.Path)
			blobs = append(blobs, Blob{rev, c.Path})
			continue
		}
		differs = true
	}
	if !differs && len(blobs) > 0 {
		contents, err := readAll(ctx, s.history, s.root, blobs)
		if err != nil {
			return move{}, err
		}
		for i, b := range blobs {
			if from.dirty[b.Path] != to.digest(b.Path, contents[i]) {
				differs = true
			}
		}
	}
	return move{to: to, differs: differs}, nil
}

// fromDate is W1 for a root that remembers only since when it holds what it holds.
func (s *search) fromDate(ctx context.Context, d Dated, boot Identity, unread string) {
	now, since, err := d.InForce(ctx, s.root)
	if err != nil {
		s.unsided = unread
		s.absent(BootIdentity, "%s, and what is installed now cannot be dated: %v", unread, err)
		return
	}
	switch {
	case !now.Known():
		s.unsided = unread + ", and what is installed now cannot be read: " + now.why()
	case now.Revision == boot.Revision:
		s.unsided = fmt.Sprintf("%s; the root holds %s now as at the boot", unread, boot.short())
	case since.IsZero():
		s.unsided = unread + ", and the disk does not tell since when the root holds " + now.short()
	case since.After(s.q.Window.To):
		s.unsided = fmt.Sprintf("%s; %s came after the death, and what was there before is not known", unread, now.short())
	case since.Before(s.q.Window.From):
		s.unsided = fmt.Sprintf("%s; %s is older than the boot by its change time, though the boot read %s", unread, now.short(), boot.short())
	default:
		s.sides(sideOf(boot), sideOf(now))
		s.holds(Evidence{Kind: BootIdentity, From: boot.Key(), To: now.Key(), When: stamp.Window{From: s.q.Window.From, To: since},
			Detail: fmt.Sprintf("%s held %s when the run booted; %s came before it died", s.root.Name, boot.short(), now.short())})
		return
	}
	s.absent(BootIdentity, "%s", s.unsided)
}

// later is the later of two moments; the zero moment is before every other.
func later(a, b stamp.Time) stamp.Time {
	if a.IsZero() || (!b.IsZero() && b.Sub(a) > 0) {
		return b
	}
	return a
}

// someOf names the first few of a list.
func someOf(paths []string) string {
	const shown = 3
	if len(paths) <= shown {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:shown], ", "), len(paths)-shown)
}
