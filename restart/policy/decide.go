package policy

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe"
)

// Decide applies the table: the first rule that applies wins. Where a rule needs a fact that nobody looked up, the
// decision is Undecided and names the need. The same facts always give the same decision.
func Decide(f Facts, l Limits) Decision {
	d := early(f)
	if d.Verdict != Undecided {
		return d
	}
	switch {
	case f.Age <= l.MaxDefer:
		return late(f)
	case !f.Seen:
		return absent(f)
	}
	return expired(f)
}

// expired is the end of a deferral. The tree is not looked at any more: however healthy it is by now, nobody counts on a
// run that comes back so late.
func expired(f Facts) Decision {
	d := Decision{Verdict: Decline, Code: DeferredExpired, Written: Record, Loud: true,
		Text: fmt.Sprintf("Waited %s for a safe moment that did not come.", stamp.Short(f.Age))}
	if f.Held > 0 {
		d.Code, d.Text = HeldTooLong, fmt.Sprintf("The healer was held while it waited, and it has waited %s beside that.", stamp.Short(f.Age))
	}
	if f.Last != "" {
		d.Text += " Last cause: " + f.Last
	}
	return d
}

// early are rules 1 to 8: what was done, read or reached before the healer looks at the tree at all.
func early(f Facts) Decision {
	if d := intent(f); d.Verdict != Undecided {
		return d
	}
	if f.Replacement {
		return Decision{Verdict: Settle, Rule: 2, Code: AlreadyRestarted, Written: Record, Loud: true,
			Text: "This run was already the one restart of its lineage. It is reported and not started again." + other(f.Signature)}
	}
	if d := signature(f); d.Verdict != Undecided {
		return d
	}
	switch {
	case f.Phase == run.Handoff:
		return Decision{Verdict: Ask, Rule: 7, Code: Handoff, Written: Record, Loud: true,
			Text: "It broke while a person's answer was involved. Nothing is started without you."}
	case f.Phase.AfterWork():
		return Decision{Verdict: Notify, Rule: 8, Code: PostProvider, Written: Record, Loud: true,
			Text: "It broke after its model turn began, so that a restart could repeat work."}
	case !f.Phase.BeforeWork():
		return Decision{Verdict: Ask, Rule: 7, Code: PhaseUnknown, Written: Record, Loud: true, Text: unknownPhase(f)}
	}
	return Decision{}
}

// intent is rule 1: what a person did wins over everything.
func intent(f Facts) Decision {
	d := Decision{Verdict: Skip, Rule: 1, Written: Answer}
	switch {
	case f.Intent == run.Killed:
		d.Code, d.Text = Killed, said(f, "ended this run.")
	case f.Intent == run.Dismissed:
		d.Code, d.Text = Dismissed, said(f, "dismissed this failure.")
	case f.Intent == run.Relaunched:
		d.Code, d.Text = ManualRelaunch, said(f, "is restarting this run.")
	case f.Intent == run.Asked:
		d.Code, d.Text = Asked, said(Facts{Said: f.Said}, "has been asked about this run.")
	case f.Superseded != "":
		d.Code, d.Text = Superseded, fmt.Sprintf("A newer run (%s) has the name.", f.Superseded)
	default:
		return Decision{}
	}
	return d
}

// said is the sentence of what a person did, with their name and note where they are known.
func said(f Facts, did string) string {
	text := cmp.Or(f.By, "A person") + " " + did
	if f.Said != "" {
		text += " They noted: " + f.Said
	}
	return text
}

// other says of a replacement that it was no update which ended it.
func other(s classify.Verdict) string {
	if s.Disposition != classify.Never {
		return ""
	}
	return " This time it was no update's failure: " + words(string(s.Reason)) + "."
}

// lost is rule 4 for a run whose runner was killed: without a text there is no family, whatever its phase was, and so
// never a relaunch. It is always loud, for whoever would have shown the failure is gone with it.
func lost(f Facts) Decision {
	return Decision{Verdict: LeaveAlone, Rule: 4, Code: RunnerLost, Written: Answer, Loud: true,
		Text: unheard(f)}
}

// unheard says what is known of a run whose runner is gone.
func unheard(f Facts) string {
	said := "so nothing is known of its end."
	if f.Ending != "" {
		said = "but its end was seen. " + f.Ending
	}
	return "Whoever ran it is gone without a word, " + said + " " + reached(f.Phase)
}

// reached says how far a run had come that nobody can ask any more.
func reached(p run.Phase) string {
	switch {
	case p == run.Handoff:
		return "A person's answer was involved."
	case p.AfterWork():
		return "Its model turn had begun, so that a second start could repeat work."
	case p.BeforeWork():
		return "It had not begun its work (" + words(string(p)) + ")."
	}
	return "Nobody knows whether it had begun to work."
}

// signature are rules 3 to 6: every text that is not a known family's is left alone.
func signature(f Facts) Decision {
	s := f.Signature
	d := Decision{Verdict: LeaveAlone, Written: Answer, Loud: f.Silenced}
	switch {
	case s.Disposition == classify.Never:
		d.Rule, d.Code = 3, string(s.Reason)
		d.Text = "The failure is not an update's: " + words(string(s.Reason)) + tail(s) + "."
		if f.Lost {
			d.Loud = true
			d.Text += " " + unheard(f)
		}
	case f.Lost:
		return lost(f)
	case s.Disposition == classify.Annotate:
		d.Rule, d.Code = 6, string(s.Reason)
		d.Text = "A bug in managed code, which an update may have brought" + tail(s) + ". A restart would meet it again."
	case s.Disposition == classify.Skew:
		return Decision{}
	case s.Family == "" || s.Family == classify.NoFamily:
		d.Rule, d.Code = 4, NoUpdateSignature
		d.Text = "Nothing in the failure looks like an update's" + tail(s) + "."
	default:
		d.Rule, d.Code = 5, UnknownSignature
		d.Text = "It may be an update's failure, but this is not clear" + tail(s) + "." + open(s.Reason)
	}
	return d
}

// late are rules 9 to 14: a known family, before any work.
func late(f Facts) Decision {
	switch {
	case f.Quiet == nil:
		return Decision{Need: NeedQuiet}
	case !f.Quiet.Quiet:
		return Decision{Verdict: Defer, Rule: 9, Code: NotQuiet, Written: Record, Text: f.Quiet.Why}
	case f.Witnesses == nil:
		return Decision{Need: NeedWitnesses}
	case !f.Witnesses.Holds():
		return noWitness(f)
	case len(f.Probeable) == 0:
		return Decision{Verdict: Decline, Rule: 11, Code: NoProber, Written: Record, Loud: true,
			Text: "There is no way to prove the new tree healthy: " + cmp.Or(f.Unprobeable, "no prober for this root.")}
	case f.Probe == nil:
		return Decision{Need: NeedProbe}
	}
	if d := probed(*f.Probe); d.Verdict != Undecided {
		return d
	}
	if f.Preflight == nil {
		return Decision{Need: NeedPreflight}
	}
	if p := *f.Preflight; !p.Admitted() {
		d := Decision{Verdict: Defer, Rule: 12, Code: p.Code, Written: Record, Text: p.Text}
		if d.Code == "" {
			d.Code = LaunchRefused // a refusal that lost its code must not pass for a yes
		}
		if p.ForGood {
			d.Verdict, d.Loud = Decline, true
		}
		return d
	}
	switch {
	case f.Slot == nil:
		return Decision{Need: NeedSlot}
	case f.Slot.Tripped != nil:
		return Decision{Verdict: Pause, Rule: 13, Code: StormPaused, Written: State, Loud: true,
			Text: f.Slot.Tripped.Note}
	}
	return Decision{Verdict: Relaunch, Rule: 14, Code: Relaunching, Written: Record,
		Text: "An update broke it before it did any work, and the new tree is healthy."}
}

func noWitness(f Facts) Decision {
	d := Decision{Verdict: Decline, Rule: 10, Code: NoUpdateWitness, Written: Record, Loud: true,
		Text: "It looks like an update's failure, but nothing proves that an update happened under it."}
	if f.Witnesses.ClockJump {
		d.Code, d.Text = ClockJump, "The clock jumped between start and death, so that no update can be placed."
		return d
	}
	var whys []string
	for _, a := range f.Witnesses.Absent {
		whys = append(whys, a.Why)
	}
	if len(whys) > 0 {
		d.Text += " " + strings.Join(whys, "; ") + "."
	}
	return d
}

func probed(p Probe) Decision {
	switch {
	case p.Result == nil:
		return Decision{Verdict: Defer, Rule: 11, Code: ProbePending, Written: Record, Text: p.Pending}
	case p.Result.Outcome == probe.Healthy:
		return Decision{}
	case p.Result.Outcome == probe.Broken:
		text := "The new tree does not load"
		if p.Result.Failed != "" {
			text += ": " + p.Result.Failed
		}
		return Decision{Verdict: Defer, Rule: 11, Code: ProbeFailed, Written: Record, Text: text + "."}
	}
	return Decision{Verdict: Defer, Rule: 11, Code: ProbePending, Written: Record,
		Text: "The probe of the new tree did not come to an end."}
}

// absent is the expiry of a death that was too old when it was first seen.
func absent(f Facts) Decision {
	if f.Held > 0 {
		return Decision{Verdict: Decline, Code: HeldTooLong, Written: Answer, Loud: true,
			Text: fmt.Sprintf("The healer was held while it waited, and it is %s old now. Start it by hand if it is still wanted.", stamp.Short(f.Age))}
	}
	return Decision{Verdict: Decline, Code: HealerAbsent, Written: Record, Loud: true,
		Text: fmt.Sprintf("No healer was there when it died %s ago. Start it by hand if it is still wanted.", stamp.Short(f.Age))}
}

func unknownPhase(f Facts) string {
	if f.Marking == run.Unmarked {
		return "Nobody knows whether it had begun to work. Start it with --phases or --idempotent to let it be restarted."
	}
	return "The mark of its phase cannot be read, so nobody knows whether it had begun to work."
}

// words makes a code readable inside a sentence.
// open is what is not clear, in a sentence.
func open(r classify.Reason) string {
	for _, o := range classify.OpenReasons() {
		if o.Reason == r {
			return " " + o.Text
		}
	}
	return ""
}

func words(code string) string {
	switch code {
	case "":
		return "no reason given"
	case string(classify.OOM):
		return "out of memory"
	}
	return strings.ReplaceAll(code, "_", " ")
}

func tail(s classify.Verdict) string {
	if s.Exception == "" {
		return ""
	}
	return " (" + s.Exception + ")"
}
