package probe_test

import (
	"fmt"
	"reflect"
	"slices"
	"sort"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
	"pgregory.net/rapid"
)

func drawNeed() *rapid.Generator[probe.Need] {
	word := func(words ...string) *rapid.Generator[string] { return rapid.SampledFrom(words) }
	list := func(words ...string) *rapid.Generator[[]string] { return rapid.SliceOfN(word(words...), 0, 2) }
	return rapid.Custom(func(t *rapid.T) probe.Need {
		return probe.Need{
			Tree:        word("", "t1", "t2").Draw(t, "tree"),
			Interpreter: word("/py", "/py3").Draw(t, "interpreter"),
			Args:        list("-O", "-E").Draw(t, "args"),
			Path:        list("/a", "/b").Draw(t, "path"),
			Env:         list("A=1", "B=2").Draw(t, "env"),
			Modules:     list("x", "y", "z").Draw(t, "modules"),
		}
	})
}

// twin is the rule of covering, said slowly: field by field.
func twin(n, m probe.Need) bool {
	if n.Tree == "" || n.Tree != m.Tree || n.Interpreter != m.Interpreter || len(m.Modules) == 0 {
		return false
	}
	equal := func(a, b []string) bool { return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b) }
	sorted := func(s []string) []string {
		s = append([]string(nil), s...)
		sort.Strings(s)
		return s
	}
	if !equal(n.Args, m.Args) || !equal(n.Path, m.Path) || !equal(sorted(n.Env), sorted(m.Env)) {
		return false
	}
	has := map[string]bool{}
	for _, x := range n.Modules {
		has[x] = true
	}
	for _, x := range m.Modules {
		if !has[x] {
			return false
		}
	}
	return true
}

func TestCoversAgreesWithItsTwin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n, m := drawNeed().Draw(t, "n"), drawNeed().Draw(t, "m")
		if rapid.Bool().Draw(t, "same setting") {
			mods := m.Modules
			m = n
			m.Modules = mods
		}
		if got, want := n.Covers(m), twin(n, m); got != want {
			t.Fatalf("%+v covers %+v = %t, want %t", n, m, got, want)
		}
	})
}

// TestSettingsDoNotRunTogether holds the boundaries between the fields: what moves from one list to the next is another
// setting.
func TestSettingsDoNotRunTogether(t *testing.T) {
	t.Parallel()
	base := probe.Need{Tree: "t", Interpreter: "/py", Modules: []string{"x"}}
	variants := []func(*probe.Need){
		func(n *probe.Need) { n.Args = []string{"/a", "/b"} },
		func(n *probe.Need) { n.Args = []string{"/a"}; n.Path = []string{"/b"} },
		func(n *probe.Need) { n.Path = []string{"/a", "/b"} },
		func(n *probe.Need) { n.Path = []string{"/a"}; n.Env = []string{"/b"} },
		func(n *probe.Need) { n.Path = []string{`/a" "/b`} },
		func(n *probe.Need) { n.Path = []string{"/a\n1 /b"} },
	}
	for i := range variants {
		for j := range variants {
			a, b := base, base
			variants[i](&a)
			variants[j](&b)
			if a.Covers(b) != (i == j) {
				t.Errorf("variant %d covers variant %d = %t", i, j, a.Covers(b))
			}
		}
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Few settings, so that many needs meet in one union.
		needs := rapid.SliceOfN(drawNeed(), 0, 8).Draw(t, "needs")
		if rapid.Bool().Draw(t, "few settings") {
			for i := range needs {
				needs[i].Interpreter, needs[i].Args, needs[i].Path = "/py", nil, nil
				needs[i].Env = rapid.SampledFrom([][]string{{"A=1", "B=2"}, {"B=2", "A=1"}}).Draw(t, "env")
			}
		}
		unions := probe.Group(needs)
		seen := map[int]int{}
		for _, u := range unions {
			for _, i := range u.Members() {
				seen[i]++
				n := needs[i]
				if n.Tree != "" && !twin(u.Need, n) {
					t.Fatalf("the union %+v does not cover its member %+v", u.Need, n)
				}
				if n.Tree == "" && len(u.Members()) != 1 {
					t.Fatalf("a need of an unknown tree shares a probe: %+v", u)
				}
			}
			checkSets(t, needs, u)
		}
		for i, n := range needs {
			want := 1
			if len(n.Modules) == 0 {
				want = 0
			}
			if seen[i] != want {
				t.Fatalf("need %d %+v is in %d unions, want %d", i, n, seen[i], want)
			}
		}
		// Fewest: no two unions could have been one.
		for i, u := range unions {
			for j, v := range unions {
				joint := u.Need
				joint.Modules = append(slices.Clone(u.Modules), v.Modules...)
				if i != j && twin(joint, v.Need) {
					t.Fatalf("unions %d and %d have one setting: %+v, %+v", i, j, u.Need, v.Need)
				}
			}
		}
	})
}

func checkSets(t *rapid.T, needs []probe.Need, u probe.Union) {
	set := func(m []string) string {
		m = slices.Clone(m)
		slices.Sort(m)
		return fmt.Sprint(slices.Compact(m))
	}
	distinct := map[string]bool{}
	for _, s := range u.Sets {
		if distinct[set(s.Modules)] {
			t.Fatalf("the set %v is there twice", s.Modules)
		}
		distinct[set(s.Modules)] = true
		for _, i := range s.Members {
			if set(needs[i].Modules) != set(s.Modules) {
				t.Fatalf("need %v is in the set %v", needs[i].Modules, s.Modules)
			}
		}
	}
	alone := u.Alone()
	if len(u.Sets) == 1 && alone != nil {
		t.Fatalf("one set has another try: %+v", alone)
	}
	if len(u.Sets) > 1 && len(alone) != len(u.Sets) {
		t.Fatalf("%d sets, %d of them alone", len(u.Sets), len(alone))
	}
}

func TestUnionKeepsTheOrderOfImport(t *testing.T) {
	t.Parallel()
	// The order in which modules import one another can decide whether a cycle holds, so it is the program's own.
	n := func(m ...string) probe.Need { return probe.Need{Tree: "t", Interpreter: "/py", Modules: m} }
	u := probe.Group([]probe.Need{n("main", "cli"), n("cli", "loop", "main"), n("aaa")})
	if len(u) != 1 || !slices.Equal(u[0].Modules, []string{"main", "cli", "loop", "aaa"}) {
		t.Errorf("Group = %+v, want one union of main, cli, loop, aaa", u)
	}
}

func TestMemo(t *testing.T) {
	t.Parallel()
	// The twin keeps everything that ever happened and judges it at each question.
	type event struct {
		need    probe.Need
		result  probe.Result
		at      time.Time
		present []string // set for a change
	}
	start := time.Unix(1_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		var m probe.Memo
		var log []event
		now, back := start, false
		for range rapid.IntRange(0, 12).Draw(t, "steps") {
			step := time.Duration(rapid.SampledFrom([]int{0, 1, 30, 90, -5}).Draw(t, "seconds")) * time.Second
			now, back = now.Add(step), back || step < 0
			if rapid.IntRange(0, 4).Draw(t, "kind") == 0 {
				present := rapid.SliceOf(rapid.SampledFrom([]string{"t1", "t2"})).Draw(t, "present")
				m = m.Changed(present...)
				log = append(log, event{present: append([]string{}, present...)})
				continue
			}
			n := drawNeed().Draw(t, "need")
			n.Args, n.Path, n.Env = nil, nil, nil
			r := probe.Result{Outcome: rapid.SampledFrom([]probe.Outcome{probe.Healthy, probe.Broken, probe.Unknown}).Draw(t, "outcome")}
			before := probe.Memo{Answers: slices.Clone(m.Answers)}
			next := m.Remember(n, r, now)
			if !reflect.DeepEqual(before.Answers, m.Answers) && len(m.Answers)+len(before.Answers) > 0 {
				t.Fatalf("Remember changed the memo it was called on")
			}
			m = next
			log = append(log, event{need: n, result: r, at: now})

			q := drawNeed().Draw(t, "question")
			q.Args, q.Path, q.Env = nil, nil, nil
			// A clock that goes back may make the memo forget what its twin still knows, never the other way round.
			got, ok := m.Lookup(q, now)
			var want *probe.Result
			for i := len(log) - 1; i >= 0 && want == nil; i-- {
				e := log[i]
				if e.present != nil || !twin(e.need, q) {
					continue
				}
				healthy := e.result.Outcome == probe.Healthy
				age := now.Sub(e.at)
				if age < 0 || healthy && age >= probe.HealthyFor || !healthy && age >= probe.FailedFor {
					continue
				}
				if !healthy {
					if !twin(q, e.need) {
						continue
					}
					gone := slices.ContainsFunc(log[i:], func(c event) bool {
						return c.present != nil && !slices.Contains(c.present, e.need.Tree)
					})
					if gone {
						continue
					}
				}
				want = &e.result
			}
			switch {
			case ok && want == nil:
				t.Fatalf("the memo answers %+v with %+v, and nobody ever said so", q, got)
			case !back && ok != (want != nil):
				t.Fatalf("the memo does not know the answer to %+v, which is %+v", q, *want)
			case !back && ok && got != *want:
				t.Fatalf("the memo says %+v, want %+v", got, *want)
			}
		}
	})
}

func TestMemoAnswers(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	n := func(tree string, m ...string) probe.Need {
		return probe.Need{Tree: tree, Interpreter: "/py", Modules: m}
	}
	healthy, broken := probe.Result{Outcome: probe.Healthy}, probe.Result{Outcome: probe.Broken}
	m := probe.Memo{}.Remember(n("t", "a", "b"), healthy, now).Remember(n("t", "c", "d"), broken, now)
	tests := []struct {
		name string
		memo probe.Memo
		ask  probe.Need
		at   time.Time
		want probe.Outcome
	}{
		{"the same", m, n("t", "a", "b"), now, probe.Healthy},
		{"a part", m, n("t", "b"), now, probe.Healthy},
		{"more than was probed", m, n("t", "a", "z"), now, ""},
		{"another tree", m, n("u", "a"), now, ""},
		{"unknown tree", m, n("", "a"), now, ""},
		{"nothing asked", m, n("t"), now, ""},
		{"a failure answers its own set", m, n("t", "d", "c"), now, probe.Broken},
		{"a failure says nothing of a part", m, n("t", "c"), now, ""},
		{"healthy, just fresh", m, n("t", "a"), now.Add(probe.HealthyFor - 1), probe.Healthy},
		{"healthy, too old", m, n("t", "a"), now.Add(probe.HealthyFor), ""},
		{"failed, too old", m, n("t", "c", "d"), now.Add(probe.FailedFor), ""},
		{"clock set back", m, n("t", "a"), now.Add(-1), ""},
		{"failure after a change", m.Changed("u"), n("t", "c", "d"), now, ""},
		{"failure without a change", m.Changed("t", "u"), n("t", "c", "d"), now, probe.Broken},
		{"healthy after a change and back", m.Changed("u"), n("t", "a"), now, probe.Healthy},
		{"the newest counts", m.Remember(n("t", "a"), broken, now), n("t", "a"), now, probe.Broken},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := tt.memo.Lookup(tt.ask, tt.at)
			if ok != (tt.want != "") || got.Outcome != tt.want {
				t.Errorf("Lookup = %q, %t, want %q", got.Outcome, ok, tt.want)
			}
		})
	}
}

func TestMemoIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_000_000, 0)
	var m probe.Memo
	for i := range 1000 {
		m = m.Remember(probe.Need{Tree: fmt.Sprint(i), Interpreter: "/py", Modules: []string{"x"}}, probe.Result{Outcome: probe.Healthy}, now)
	}
	if len(m.Answers) > 256 {
		t.Errorf("the memo holds %d answers", len(m.Answers))
	}
	if _, ok := m.Lookup(probe.Need{Tree: "999", Interpreter: "/py", Modules: []string{"x"}}, now); !ok {
		t.Error("the newest answer was dropped")
	}
}
