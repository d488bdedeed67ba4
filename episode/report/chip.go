package report

import (
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
)

// Chip is how a host marks one run of a lineage in a list of its own: the run that broke, so that its failure is not
// shown in red while it is being put back, and the run that replaces it, so that a person sees where it came from.
type Chip struct {
	Glyph string `json:"glyph"`
	// Label is a word or two, empty where the glyph says it all.
	Label string      `json:"label,omitempty"`
	Tone  notify.Tone `json:"tone"`
	// Reason stands dim beside the label.
	Reason string `json:"reason,omitempty"`
	// Provenance are the lines that tell a replacement's origin, the label first and then its text.
	Provenance [][2]string `json:"provenance,omitempty"`
}

// BuildChip is the chip of a run of the record's lineage. ok is false for a run that shows what it always shows: one
// that was left alone, one whose do-over is over, or one that the record does not know.
func BuildChip(r ledger.Record, run string, o Options) (c Chip, ok bool) {
	switch {
	case r.Launch != nil && r.Launch.Run != "" && r.Launch.Run == run:
		return Chip{Glyph: notify.Glyph, Tone: notify.Amber, Provenance: provenance(r, o)}, true
	case run != r.Facts.Death.Run:
		return Chip{}, false
	case r.State == ledger.Launched || r.State == ledger.SettledOK:
		return Chip{Glyph: notify.Glyph, Label: "RESTARTED", Tone: notify.Amber, Reason: "as run " + line(r.Launch.Run)}, true
	case r.Open():
		return Chip{Glyph: notify.Glyph, Label: "RESTARTING", Tone: notify.Amber, Reason: Now(r, o)}, true
	}
	return Chip{}, false
}

func provenance(r ledger.Record, o Options) [][2]string {
	d := r.Facts.Death
	out := [][2]string{{"Replaces", "run " + line(d.Run) + ", which " + death(d, o)}}
	add := func(label, text string) {
		if text != "" {
			out = append(out, [2]string{label, text})
		}
	}
	add("Broke on", signature(r.Facts.Signature))
	if c := culpritOf(r.Facts); c != nil {
		add("Update", join(notify.Abbreviate(c.Commit), line(c.Subject)))
	}
	add("Episode", r.Episode)
	add("Evidence", path(r.Evidence))
	return out
}
