package witness

import (
	"context"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/witness/journal"
)

// journal looks for W2: an update that met the run's life and changed this root. The newest such row is the witness;
// the sentence counts the others.
func (s *search) journal(ctx context.Context) {
	var best *journal.Row
	var what journal.Root
	count := 0
	why := ""
	for i := range s.q.Rows {
		row := &s.q.Rows[i]
		for _, jr := range row.Roots {
			if !s.root.SameTree(jr) {
				continue
			}
			if reason := s.noWitness(ctx, row, jr); reason != "" {
				why = reason
				continue
			}
			count++
			if best == nil || row.Begun.Sub(best.Begun) > 0 {
				best, what = row, jr
			}
		}
	}
	if best == nil {
		if why == "" {
			why = "the journal has no update of this root"
		}
		s.absent(UpdateJournal, "%s", why)
		return
	}
	if !s.known {
		s.sidesFromRow(what)
	}
	others := ""
	if count > 1 {
		others = fmt.Sprintf(" (the newest of %d)", count)
	}
	s.holds(Evidence{Kind: UpdateJournal, From: what.From, To: what.To, When: best.Span(), Update: best.ID,
		Detail: fmt.Sprintf("update %s (%s, %s) changed %s from %s to %s while the run lived%s", best.ID, command(best), best.Status,
			s.root.Name, short(what.FromRevision), short(what.ToRevision), others)})
}

// noWitness says why a row of the same tree proves nothing, or nothing when it does.
func (s *search) noWitness(ctx context.Context, row *journal.Row, jr journal.Root) string {
	switch {
	// Before everything else the time: what lies outside the run's life is not even interesting.
	case !row.Span().Meets(s.q.Window):
		if row.Begun.After(s.q.Window.To) {
			return fmt.Sprintf("update %s began after the death", row.ID)
		}
		return fmt.Sprintf("update %s ended before the boot", row.ID)
	// What it will have changed is written when it is closed. Until then the tree is not quiet, and nobody asks; a row
	// whose writer is gone is closed by the next holder of the lock.
	case row.Open():
		return fmt.Sprintf("update %s has not been closed, so that what it changed is not known", row.ID)
	case jr.From == "" || jr.To == "":
		return fmt.Sprintf("update %s could not read the root's identity", row.ID)
	case !jr.Changed():
		return fmt.Sprintf("update %s (%s) changed nothing in this root", row.ID, row.Status)
	case s.elsewhere(ctx, jr):
		return fmt.Sprintf("update %s changed nothing inside this root's folders", row.ID)
	}
	return ""
}

// elsewhere reports that an update of a tree around this root left this root alone: only the history can tell, and
// where it cannot the row's word counts.
func (s *search) elsewhere(ctx context.Context, jr journal.Root) bool {
	if s.history == nil || jr.FromRevision == "" || jr.ToRevision == "" || jr.FromRevision == jr.ToRevision {
		return false
	}
	// The parts behind the revisions are the dirty ones: where they differ too, more than commits changed.
	if strings.TrimPrefix(jr.From, jr.FromRevision) != strings.TrimPrefix(jr.To, jr.ToRevision) {
		return false
	}
	changes, err := s.changed(ctx, jr.FromRevision, jr.ToRevision)
	return err == nil && len(changes) == 0
}

// sidesFromRow lets the file proof compare the boot with what the update left, where the identity at the death is not
// known but the journal is.
func (s *search) sidesFromRow(jr journal.Root) {
	boot, ok := find(s.q.Boot, s.root.Name)
	if !ok || !boot.Known() || jr.ToRevision == "" || jr.To != jr.ToRevision {
		return
	}
	s.sides(sideOf(boot), side{revision: jr.ToRevision, dirty: map[string]string{}})
}

// command is what an update ran, short enough for a sentence.
func command(row *journal.Row) string {
	if len(row.Command) == 0 {
		return "no command recorded"
	}
	line := strings.Join(row.Command, " ")
	const most = 60
	if r := []rune(line); len(r) > most {
		line = string(r[:most-1]) + "…"
	}
	return line
}
