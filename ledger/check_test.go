package ledger_test

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func TestValidateSaysWhatIsImpossible(t *testing.T) {
	t.Parallel()
	launched := func() ledger.Record { return walk(t, ledger.BeginLaunch, ledger.Bind) }
	for want, c := range map[string]struct {
		r     ledger.Record
		spoil func(*ledger.Record)
	}{
		"schema 9":                           {walk(t), func(r *ledger.Record) { r.Schema = 9 }},
		"no lineage":                         {walk(t), func(r *ledger.Record) { r.Lineage = "" }},
		"first claimed":                      {walk(t), func(r *ledger.Record) { r.First = stamp.Time{} }},
		"does not exist":                     {walk(t), func(r *ledger.Record) { r.State = "finished" }},
		"declined without a reason":          {walk(t, ledger.Decline), func(r *ledger.Record) { r.Reason = "" }},
		"only a final record":                {walk(t), func(r *ledger.Record) { r.Pruned = at(0) }},
		"has no history":                     {walk(t), func(r *ledger.Record) { r.History = nil }},
		"history ends with deferred":         {walk(t, ledger.Defer), func(r *ledger.Record) { r.State = ledger.Declined }},
		"revision 1 cannot have 2":           {walk(t, ledger.Defer), func(r *ledger.Record) { r.Revision = 1 }},
		"bind, which is not allowed":         {launched(), func(r *ledger.Record) { r.History = append(r.History[:1], r.History[2]) }},
		"leads to launching and not to":      {launched(), func(r *ledger.Record) { r.History[1].State = ledger.Launched }},
		"happened before entry 1":            {walk(t, ledger.Defer), func(r *ledger.Record) { r.History[1].At = at(-time.Hour) }},
		"nobody owns it":                     {walk(t), func(r *ledger.Record) { r.Owner = nil }},
		"still owns it":                      {walk(t, ledger.Defer), func(r *ledger.Record) { r.Owner = walk(t).Owner }},
		"no id or no lease":                  {walk(t), func(r *ledger.Record) { r.Owner = &ledger.Owner{} }},
		"launched without a launch":          {launched(), func(r *ledger.Record) { r.Launch = nil }},
		"claimed and has launch L":           {walk(t), func(r *ledger.Record) { r.Launch = &ledger.Launch{ID: "L"} }},
		"no id or no beginning":              {launched(), func(r *ledger.Record) { r.Launch.ID = "" }},
		"belongs to no episode":              {launched(), func(r *ledger.Record) { r.Episode = "" }},
		"there is no evidence":               {launched(), func(r *ledger.Record) { r.Evidence = "" }},
		"launched and no process passed":     {launched(), func(r *ledger.Record) { r.Launch.Bound = nil }},
		"and the record does not know it":    {walk(t, ledger.BeginLaunch), func(r *ledger.Record) { b := who("x"); r.Launch.Bound = &b }},
		"replacement has no id":              {launched(), func(r *ledger.Record) { r.Launch.Bound.ID = "" }},
		"passed the gate before the launch ": {launched(), func(r *ledger.Record) { r.Launch.BoundAt = at(-time.Hour) }},
		"run run is its own replacement":     {launched(), func(r *ledger.Record) { r.Facts.Death.Run = "run" }},
	} {
		if ps := ledger.Validate(c.r); len(ps) > 0 {
			t.Errorf("%q: already before: %v", want, ps)
		}
		c.spoil(&c.r)
		ps := ledger.Validate(c.r)
		if !strings.Contains(fmt.Sprint(ps), want) {
			t.Errorf("got %v, want %q", ps, want)
		}
	}
}

func of(rs ...ledger.Record) iter.Seq2[ledger.Record, error] {
	return func(yield func(ledger.Record, error) bool) {
		for _, r := range rs {
			if !yield(r, nil) {
				return
			}
		}
		yield(ledger.Record{}, errors.New("record x is damaged"))
	}
}

func TestCheckComparesRecords(t *testing.T) {
	t.Parallel()
	a, b := walk(t, ledger.BeginLaunch, ledger.Bind), walk(t, ledger.BeginLaunch, ledger.Bind)
	b.Lineage = "m"
	got := ledger.Check(of(a, b, walk(t)))
	want := []string{
		"p/m: its launch L is also that of p/l", "p/m: its replacement run is also that of p/l",
		"p/l: it is in the ledger more than once", "record x is damaged",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	c := walk(t, ledger.Defer)
	c.Lineage = "n"
	if got := ledger.Check(of(walk(t), c)); len(got) != 1 {
		t.Errorf("got %v of a sound ledger and one damaged record", got)
	}
}
