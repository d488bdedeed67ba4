package files_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// proof is the evidence of every story.
var proof = map[string][]byte{"a": []byte("1"), "b": []byte("2")}

// again are the steps of a lineage that go another way the second time: files are written over their spares.
const again = "claim deferred reclaimed slot launching launched settled_ok"

// story is one lineage from its death to its end; each step says when it was acknowledged. The lineage l2 is told with
// the steps of again alone.
func story(h *files.Home, lineage string, done func(step string)) error {
	ctx, k, self := context.Background(), ledger.Key{Project: "p", Lineage: lineage}, h.Instances().Self()
	change := func(c ledger.Change) error {
		_, err := h.Ledger().Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			c.Now = now
			if c.Event != ledger.Bind {
				c.Actor = self
			}
			return ledger.Apply(cur, c)
		})
		return err
	}
	start := func(id string) error {
		return h.Runs().Start(ctx, run.Run{ID: id, Project: "p", Name: lineage, Lineage: lineage}, func(*run.Run) error { return nil })
	}
	update := func(f func(*run.Run)) error {
		_, err := h.Runs().Update(ctx, lineage+"-2", func(r run.Run) (run.Run, error) { f(&r); return r, nil })
		return err
	}
	for _, s := range []struct {
		name string
		do   func() error
	}{
		{"start", func() error { return start(lineage + "-1") }},
		{"ring", func() error { return h.Doorbell().Ring(ctx, doorbell.Note{Run: lineage}) }},
		{"claim", func() error { return claim(h, k) }},
		{"deferred", func() error { return change(ledger.Change{Event: ledger.Defer, Reason: "not_quiet"}) }},
		{"reclaimed", func() error { return change(ledger.Change{Event: ledger.Claim}) }},
		{"slot", func() error {
			_, err := h.Breaker().UpdateState(ctx, func(cur storm.State, now stamp.Time) (storm.State, error) {
				next, _ := storm.Reserve(cur, storm.Slot{Launch: lineage, Episode: "e", Project: "p", Lineage: lineage}, storm.Limits{}, now)
				return next, nil
			})
			return err
		}},
		{"evidence", func() error { _, err := h.Evidence().Put(ctx, k, proof); return err }},
		{"launching", func() error {
			return change(ledger.Change{Event: ledger.BeginLaunch, Launch: lineage, Episode: "e", Evidence: "evidence/x"})
		}},
		{"restart", func() error { return start(lineage + "-2") }},
		{"launched", func() error {
			return change(ledger.Change{Event: ledger.Bind, Launch: lineage, Run: lineage + "-2", Actor: ledger.Instance{ID: "runner"}})
		}},
		{"remove", func() error {
			items, err := h.Doorbell().Pending(ctx)
			for _, i := range items {
				if err = errors.Join(err, i.Err); i.Note.Run == lineage {
					err = errors.Join(err, h.Doorbell().Remove(ctx, i.ID))
				}
			}
			return err
		}},
		{"answer", func() error { return h.Answers().Append(ctx, ledger.Answer{Run: lineage}) }},
		{"row", func() error { return h.Updates().Append(ctx, journal.Row{ID: lineage, Status: journal.Begun}) }},
		{"report", func() error {
			return h.Reports().PutReport(ctx, "e-"+lineage, map[string][]byte{"report.md": []byte(lineage)})
		}},
		{"phase", func() error { return update(func(r *run.Run) { r.Phase = run.Preparing }) }},
		{"end", func() error { return update(func(r *run.Run) { r.Ended = &run.End{OK: true} }) }},
		{"settled_ok", func() error { return change(ledger.Change{Event: ledger.SettleOK}) }},
	} {
		if lineage == "l2" && !slices.Contains(strings.Fields(again), s.name) {
			continue
		}
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		done(s.name)
	}
	return nil
}

func claim(h *files.Home, k ledger.Key) error {
	r, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: h.Instances().Self()})
	if err != nil {
		return err
	}
	return h.Ledger().Create(context.Background(), r)
}

// broken are the promises that a home does not keep about a lineage, given the steps that were acknowledged. A step that
// was not may have come to pass or not, but never by half.
func broken(h *files.Home, lineage string, acked []string) (bad []error) {
	ctx, k := context.Background(), ledger.Key{Project: "p", Lineage: lineage}
	told := func(step string) bool { return slices.Contains(acked, step) }
	fault := func(step string, err error) {
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %s (acknowledged %v): %w", lineage, step, acked, err))
		}
	}
	want := func(step string, ok bool, format string, args ...any) {
		if told(step) && !ok {
			fault(step, fmt.Errorf(format, args...))
		}
	}
	rec, err := h.Ledger().Get(ctx, k)
	var damage *ledger.DamageError
	switch {
	case told("claim"):
		fault("claim", err)
		if err := claim(h, k); !errors.Is(err, ledger.ErrExists) {
			fault("claim", fmt.Errorf("a second claim gets %w", err))
		}
	case errors.As(err, &damage) && !damage.Torn:
		fault("claim", fmt.Errorf("a torn claim is taken for damage: %w", err))
	case err != nil && damage == nil && !errors.Is(err, ledger.ErrNotFound):
		fault("claim", err)
	}
	for _, step := range strings.Fields("deferred launching launched settled_ok") {
		want(step, reached(rec, step), "the record is %s", rec.State)
	}
	if told("reclaimed") && (rec.State == ledger.Deferred || !reached(rec, "deferred")) {
		fault("reclaimed", fmt.Errorf("the record is %s", rec.State))
	}
	st, err := h.Breaker().State(ctx)
	fault("slot", err)
	want("slot", slices.ContainsFunc(st.Slots, func(s storm.Slot) bool { return s.Launch == lineage }), "no slot in %+v", st)
	got, err := h.Evidence().Get(ctx, k)
	if err == nil && (len(got) != len(proof) || string(got["b"]) != "2") {
		err = fmt.Errorf("it is %q", got)
	}
	if told("evidence") || !errors.Is(err, ledger.ErrNotFound) {
		fault("evidence", err)
	}
	items, err := h.Doorbell().Pending(ctx)
	fault("ring", err)
	there := slices.ContainsFunc(items, func(i doorbell.Item) bool { return i.Note.Run == lineage })
	want("ring", there || told("launched"), "no note")
	want("remove", !there, "the note is back")
	_, ok, err := h.Answers().Answer(ctx, lineage)
	fault("answer", err)
	want("answer", ok, "no answer")
	row := false
	for r, err := range h.Updates().Rows(ctx) {
		row = row || r.ID == lineage
		fault("row", err)
	}
	want("row", row, "no row")
	report, err := h.Reports().GetReport(ctx, "e-"+lineage)
	want("report", string(report["report.md"]) == lineage, "%q, %w", report, err)
	return append(bad, brokenRuns(h, lineage, told)...)
}

// brokenRuns is broken for runs and names.
func brokenRuns(h *files.Home, lineage string, told func(string) bool) (bad []error) {
	ctx := context.Background()
	if told("start") {
		r, err := h.Runs().Holder(ctx, "p", lineage)
		if err != nil || told("restart") && r.ID != lineage+"-2" {
			bad = append(bad, fmt.Errorf("the name %s is held by %q: %w", lineage, r.ID, err))
		}
	}
	if !told("restart") {
		return bad
	}
	r, err := h.Runs().Get(ctx, lineage+"-2")
	if err != nil || told("phase") && r.Phase != run.Preparing || told("end") && r.Ended == nil {
		bad = append(bad, fmt.Errorf("run %+v: %w", r, err))
	}
	return bad
}

// reached reports whether a record passed through a state.
func reached(r ledger.Record, state string) bool {
	return slices.ContainsFunc(r.History, func(e ledger.Entry) bool { return string(e.State) == state })
}
