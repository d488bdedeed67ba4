package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
)

// Options are what a view needs to know beside the ledger. The zero Options are valid.
type Options struct {
	// Now is the present; it decides whether a time is shown with its date. Zero: every time has its date.
	Now stamp.Time
	// Zone is where the reader is; nil means UTC.
	Zone *time.Location
	// MaxDefer is how long a lineage may wait (max_defer_seconds); zero means 30 minutes.
	MaxDefer time.Duration
	// Paused says that the healer is paused or switched off, so that waiting has no end of its own.
	Paused bool
	// Program is how the command line is called here; empty means "mulligan".
	Program string
}

func (o Options) program() string { return cmp.Or(o.Program, "mulligan") }

func (o Options) zone() *time.Location {
	if o.Zone == nil {
		return time.UTC
	}
	return o.Zone
}

// clock is a moment as people read it: the time of day, with the date when it is not today's.
func (o Options) clock(t stamp.Time) string {
	if t.IsZero() {
		return "an unknown time"
	}
	at := t.Wall.In(o.zone())
	if !o.Now.IsZero() {
		y, m, d := o.Now.Wall.In(o.zone()).Date()
		if ty, tm, td := at.Date(); y == ty && m == tm && d == td {
			return at.Format("15:04:05")
		} else if y == ty {
			return at.Format("2 Jan 15:04:05")
		}
	}
	return at.Format("2006-01-02 15:04:05")
}

// minute is clock without its seconds, for sentences.
func (o Options) minute(t stamp.Time) string {
	s := o.clock(t)
	if t.IsZero() {
		return s
	}
	return s[:len(s)-3]
}

// span is a window as people read it, without saying a moment twice.
func (o Options) span(w stamp.Window) string {
	switch {
	case w.From.IsZero() && w.To.IsZero():
		return ""
	case w.To.IsZero():
		return "since " + o.clock(w.From)
	case w.From.IsZero():
		return "until " + o.clock(w.To)
	}
	from, to := o.clock(w.From), o.clock(w.To)
	if from == to {
		return from
	}
	if i := strings.LastIndexByte(to, ' '); i > 0 && strings.HasPrefix(from, to[:i+1]) {
		to = to[i+1:]
	}
	return from + " to " + to
}

// Now is where a record stands, as one plain phrase that begins in lower case and has no full stop.
func Now(r ledger.Record, o Options) string {
	changed := o.minute(r.Changed())
	switch r.State {
	case ledger.Claimed:
		return "being looked at"
	case ledger.Deferred:
		why := reason(r.Reason)
		if o.Paused {
			return "on hold while the healer is paused: " + why
		}
		// Counted from the first claim, however often it was looked at since.
		limit := cmp.Or(o.MaxDefer, 30*time.Minute)
		return "waiting until " + o.minute(r.First.Add(limit)) + " at most: " + why
	case ledger.Launching:
		return "being put back"
	case ledger.Launched:
		at := r.Changed()
		if r.Launch != nil && !r.Launch.BoundAt.IsZero() {
			at = r.Launch.BoundAt
		}
		return "running again since " + o.minute(at)
	case ledger.SettledOK:
		return "finished at " + changed
	case ledger.SettledFailed:
		// Three ways to end badly, and a person does something else about each.
		switch {
		case r.Launch != nil && r.Launch.Bound == nil:
			return "not running: the restart never came up; not tried again"
		case r.Reason == "replacement_lost":
			return "gone since " + changed + ", nobody knows how it ended; not tried again"
		case byHand(r.Reason):
			return "ended at " + changed + ": " + reason(r.Reason)
		}
		return "broke again at " + changed + "; shown, not tried again"
	case ledger.Declined:
		if r.Reason == "" {
			return "left alone"
		}
		return "left alone: " + reason(r.Reason)
	}
	return "in a state this version does not know: " + line(string(r.State))
}

// byHand reports an end that a person or their newer run made.
func byHand(code string) bool {
	return slices.Contains([]string{"killed", "dismissed", "manual_relaunch", "superseded", "asked"}, code)
}

// action is what was done about a death, apart from where that has led.
func action(r ledger.Record, o Options) string {
	switch {
	case r.State == ledger.Declined:
		return "none"
	case r.Launch == nil && r.State == ledger.SettledFailed:
		return "none"
	case r.Launch == nil:
		return "none yet"
	case r.Launch.Bound == nil && r.State == ledger.SettledFailed:
		return "restart begun at " + o.minute(r.Launch.Begun) + ", never came up"
	case r.Launch.Bound == nil:
		return "restart begun at " + o.minute(r.Launch.Begun)
	}
	return "put back at " + o.minute(r.Launch.BoundAt)
}

// reason is a code's title in the middle of a sentence.
func reason(code string) string {
	t := notify.Reason(code).Title
	if t == "" {
		return "no reason given"
	}
	return lower(t)
}

// signature is what the failure text said, in words: "torn import of acme.wire:Frame".
func signature(s ledger.Signature) string {
	what := line(s.Module)
	if s.Symbol != "" {
		what += ":" + line(s.Symbol)
	}
	var kind string
	switch s.Family {
	case "torn_import":
		kind = "torn import"
	case "stale_binding":
		kind = "stale binding"
	case "wire_schema":
		kind = "wire schema"
	case "data_format":
		kind = "data format"
	case "torn_file":
		kind = "torn file"
	case "", "none":
		kind = ""
	default:
		kind = line(s.Family)
	}
	switch {
	case kind == "" && s.Exception != "":
		return line(s.Exception)
	case kind == "":
		return ""
	case what == "":
		return kind
	}
	return kind + ": " + what
}

// witnessTitle names a kind of proof.
func witnessTitle(kind string) string {
	switch kind {
	case "boot_identity":
		return "boot identity"
	case "update_journal":
		return "update journal"
	case "file_proof":
		return "file proof"
	}
	return strings.ReplaceAll(line(kind), "_", " ")
}

// line is foreign text fit for the model.
func line(s string) string { return notify.Line(s, 400) }

// path is a path or a command: whole, but harmless.
func path(s string) string { return notify.Exact(s) }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
