package restart

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
	"pgregory.net/rapid"
)

var dawn = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// deaths makes deaths of "NAME>WAITSFOR,WAITSFOR", in the order in which they died.
func deaths(specs ...string) (out []*death) {
	for i, s := range specs {
		name, waits, _ := strings.Cut(s, ">")
		d := &death{run: run.Run{ID: name, Project: "p", Name: name}}
		if waits != "" {
			d.run.WaitsFor = strings.Split(waits, ",")
		}
		d.note.At = stamp.Wall(dawn.Add(time.Duration(i)*time.Second), 0)
		out = append(out, d)
	}
	return out
}

func names(ds []*death) string {
	var out []string
	for _, d := range ds {
		out = append(out, d.run.Name)
	}
	return strings.Join(out, " ")
}

func TestInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		specs      []string
	}{
		{"the oldest first", "a b c", []string{"a", "b", "c"}},
		{"who waits comes after", "b a c", []string{"a>b", "b", "c"}},
		{"a chain of waits", "d c b a", []string{"a>b", "b>c", "c>d", "d"}},
		{"several waits", "c b a", []string{"a>c,b", "b", "c"}},
		{"a circle ends", "b a", []string{"a>b", "b>a"}},
		{"for nobody who died", "a b", []string{"a>z", "b"}},
		{"for itself", "a", []string{"a>a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ds := deaths(c.specs...)
			slices.Reverse(ds)
			if got := names(inOrder(ds)); got != c.want {
				t.Errorf("the order is %q, want %q", got, c.want)
			}
		})
	}
}

// TestWaitsOfAnotherProject: a name means a run of the same project.
func TestWaitsOfAnotherProject(t *testing.T) {
	t.Parallel()
	ds := deaths("a>b", "b")
	ds[1].run.Project = "q"
	if got := names(inOrder(ds)); got != "a b" {
		t.Errorf("the order is %q: a run waited for another project's", got)
	}
}

// TestInOrderKeepsAll: whatever waits for whatever, everybody is there once, and nobody without a circle stands before
// a run that it waits for.
func TestInOrderKeepsAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 7).Draw(t, "n")
		var specs []string
		for i := range n {
			s := string(rune('a' + i))
			// Waits lead to later letters alone, so that there is no circle.
			var waits []string
			for j := i + 1; j < n; j++ {
				if rapid.Bool().Draw(t, "waits") {
					waits = append(waits, string(rune('a'+j)))
				}
			}
			specs = append(specs, s+">"+strings.Join(waits, ","))
		}
		ds := deaths(rapid.Permutation(specs).Draw(t, "specs")...)
		out := inOrder(slices.Clone(ds))
		if len(out) != n {
			t.Fatalf("%d of %d are left", len(out), n)
		}
		at := map[string]int{}
		for i, d := range out {
			if _, twice := at[d.run.Name]; twice {
				t.Fatalf("%s is there twice", d.run.Name)
			}
			at[d.run.Name] = i
		}
		for _, d := range out {
			for _, w := range d.run.WaitsFor {
				if at[w] > at[d.run.Name] {
					t.Fatalf("%s stands before %s, for which it waits: %s", d.run.Name, w, names(out))
				}
			}
		}
	})
}

func TestWithin(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/ws/a", "/ws/a", true}, {"/ws/a/b", "/ws/a", true}, {"/ws/a/", "/ws/a", true}, {"/ws/a", "/ws/a/", true}, {"/ws/a", "/", true},
		{"/ws/ab", "/ws/a", false}, {"/ws", "/ws/a", false}, {"/ws/a/../b", "/ws/a", false}, {"/ws/..a", "/ws", true}, {"rel", "/ws", false},
	} {
		if got := within(c.path, c.dir); got != c.want {
			t.Errorf("%s within %s: %v", c.path, c.dir, got)
		}
	}
}

// TestSignatureSurvivesTheRecord: what a later pass decides on is what the record kept of the verdict.
func TestSignatureSurvivesTheRecord(t *testing.T) {
	t.Parallel()
	v := classify.Verdict{Disposition: classify.Skew, Family: classify.TornImport, Reason: "r", Exception: "ImportError", Module: "acme.wire",
		Symbol: "Frame", ManagedModules: []string{"acme.agent"}, Root: "acme", Asked: []string{"acme", "tools"}, Message: "m"}
	d := &death{run: run.Run{Roots: []witness.Root{{Root: classify.Root{Name: "acme"}}}}}
	d.facts.Signature = v
	got := signatureOf(d.record().Signature)
	if got.Family != v.Family || got.Module != v.Module || got.Symbol != v.Symbol || got.Root != v.Root || got.Message != v.Message ||
		!slices.Equal(got.Asked, v.Asked) || !slices.Equal(got.ManagedModules, v.ManagedModules) || got.Disposition != classify.Skew {
		t.Errorf("the record gave back %+v, want %+v", got, v)
	}
}

func TestInvolvedRoots(t *testing.T) {
	t.Parallel()
	root := func(n string) witness.Root { return witness.Root{Root: classify.Root{Name: n}} }
	d := &death{run: run.Run{Roots: []witness.Root{root("a"), root("b"), root("c")}}}
	list := func() (out []string) {
		for _, r := range d.involved() {
			out = append(out, r.Name)
		}
		return out
	}
	if got := list(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("a failure that names no root involves %v, want all", got)
	}
	d.facts.Signature.Root, d.facts.Signature.Asked = "c", []string{"a", "z"}
	if got := list(); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("involved are %v, want the owner and who asked", got)
	}
}

// TestLoudRecords: refusals and bad ends are told; what a person did, what waits and what went well is not.
func TestLoudRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		state  ledger.State
		reason string
		loud   bool
	}{
		{ledger.Declined, "no_update_witness", true}, {ledger.Declined, "handoff", true}, {ledger.SettledFailed, "already_restarted", true},
		{ledger.SettledFailed, "launch_aborted", true}, {ledger.Declined, "killed", false}, {ledger.SettledFailed, "killed", false},
		{ledger.Declined, "manual_relaunch", false}, {ledger.Declined, "superseded", false}, {ledger.Declined, "asked", false},
		{ledger.Declined, "dismissed", false}, {ledger.Deferred, "not_quiet", false}, {ledger.SettledOK, "replacement_ok", false},
		{ledger.Claimed, "", false}, {ledger.Launching, "relaunch", false}, {ledger.Launched, "relaunch", false},
	} {
		if got := loud(ledger.Record{State: c.state, Reason: c.reason}) != ""; got != c.loud {
			t.Errorf("%s %s: loud is %v", c.state, c.reason, got)
		}
	}
}
