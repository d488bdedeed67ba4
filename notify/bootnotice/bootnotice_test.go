package bootnotice

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

var day = time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)

// at is a moment of kernel boot k1, seconds after the day's beginning.
func at(seconds float64) stamp.Time {
	d := time.Duration(seconds * float64(time.Second))
	return stamp.Time{Wall: day.Add(d), Boot: "k1", Uptime: time.Hour + d}
}

// on is the same wall time in another kernel boot.
func on(boot string, t stamp.Time) stamp.Time {
	t.Boot, t.Uptime = boot, time.Minute
	return t
}

func process(id, boot, ns string, pid int, start uint64) ledger.Instance {
	return ledger.Instance{ID: id, Boot: boot, PIDNS: ns, PID: pid, Start: start}
}

func marker(change func(*Marker)) *Marker {
	m := &Marker{Instance: process("old", "k1", "ns1", 100, 5000), Started: at(0), Beat: at(95)}
	if change != nil {
		change(m)
	}
	return m
}

func TestClassify(t *testing.T) {
	t.Parallel()
	other := process("new", "k1", "ns1", 200, 9000)
	now := at(225)
	for name, c := range map[string]struct {
		last  *Marker
		self  ledger.Instance
		now   stamp.Time
		held  bool
		kind  Kind
		clean bool
		down  time.Duration // below zero: not known
	}{
		"nothing before":                    {nil, other, now, false, FirstBoot, false, -1},
		"a second one before any marker":    {nil, other, now, true, SecondInstance, false, -1},
		"killed":                            {marker(nil), other, now, false, ProcessRestart, false, 130 * time.Second},
		"stopped in order":                  {marker(func(m *Marker) { m.Stop = at(96) }), other, now, false, ProcessRestart, true, 129 * time.Second},
		"killed right after a turn began":   {marker(func(m *Marker) { m.Active = []Activity{{"a", at(97)}} }), other, now, false, ProcessRestart, false, 128 * time.Second},
		"killed right after a turn ended":   {marker(func(m *Marker) { m.Last = Activity{"a", at(98)} }), other, now, false, ProcessRestart, false, 127 * time.Second},
		"killed before the first heartbeat": {marker(func(m *Marker) { m.Beat = stamp.Time{} }), other, now, false, ProcessRestart, false, 225 * time.Second},
		"host reboot":                       {marker(nil), process("new", "k2", "ns1", 100, 5000), on("k2", now), false, HostReboot, false, 130 * time.Second},
		"exec in place":                     {marker(nil), process("new", "k1", "ns1", 100, 5000), now, false, ExecInPlace, false, 130 * time.Second},
		"reload":                            {marker(nil), process("old", "k1", "ns1", 100, 5000), now, false, Reload, false, -1},
		"reload that holds its own lock":    {marker(nil), process("old", "k1", "ns1", 100, 5000), now, true, Reload, false, -1},
		"a second living one":               {marker(nil), other, now, true, SecondInstance, false, -1},
		"pid 1 in a container, restarted": {marker(func(m *Marker) { m.Instance = process("old", "k1", "ns1", 1, 5000) }),
			process("new", "k1", "ns1", 1, 9000), now, false, ProcessRestart, false, 130 * time.Second},
		"pid 1 in another container": {marker(func(m *Marker) { m.Instance = process("old", "k1", "ns1", 1, 5000) }),
			process("new", "k1", "ns2", 1, 5000), now, false, ProcessRestart, false, 130 * time.Second},
		"pid 1, and all four agree by chance": {marker(func(m *Marker) { m.Instance, m.Other = process("old", "k1", "ns1", 1, 5000), true }),
			process("new", "k1", "ns1", 1, 5000), now, false, ProcessRestart, false, 130 * time.Second},
		"no start times":           {marker(func(m *Marker) { m.Instance.Start = 0 }), process("new", "k1", "ns1", 100, 0), now, false, ProcessRestart, false, 130 * time.Second},
		"no kernel boot ids":       {marker(func(m *Marker) { m.Instance.Boot = "" }), process("new", "", "", 100, 0), now, false, ProcessRestart, false, 130 * time.Second},
		"corrupt marker":           {&Marker{Corrupt: true}, other, now, false, ProcessRestart, false, -1},
		"corrupt marker, held":     {&Marker{Corrupt: true}, other, now, true, SecondInstance, false, -1},
		"clock back over a reboot": {marker(nil), process("new", "k2", "ns1", 1, 1), on("k2", at(-3600)), false, HostReboot, false, -1},
		"clock back in one boot": {marker(nil), other, stamp.Time{Wall: day.Add(-time.Hour), Boot: "k1", Uptime: time.Hour + 225*time.Second},
			false, ProcessRestart, false, 130 * time.Second},
	} {
		b := Classify(c.last, c.self, c.now, c.held)
		if b.Kind != c.kind || b.Clean != c.clean || b.Known != (c.down >= 0) || b.Known && b.Downtime != c.down || b.Downtime < 0 {
			t.Errorf("%s: %+v, want %s, clean %v, downtime %v", name, b, c.kind, c.clean, c.down)
		}
	}
}

func defaults(t *testing.T, c Config) Config {
	t.Helper()
	c, err := c.WithDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDefaults pins what users know.
func TestDefaults(t *testing.T) {
	t.Parallel()
	want := Config{Target: "primary", Mode: "wake", Grace: 600 * time.Second, Wait: 15 * time.Second, Ignore: []string{"head-"}}
	if d := cmp.Diff(want, defaults(t, Config{})); d != "" {
		t.Error(d)
	}
	if Expiry != 24*time.Hour || Boots != 3 || BeatEvery != 5*time.Second {
		t.Errorf("expiry %v, boots %d, heartbeat %v", Expiry, Boots, BeatEvery)
	}
	if c := defaults(t, Config{Grace: -1, Wait: -1, Ignore: []string{}}); c.Grace != 0 || c.Wait != 0 || len(c.Ignore) != 0 {
		t.Errorf("what was switched off is %+v", c)
	}
	_, err := Config{Mode: "shout", Ignore: []string{""}}.WithDefaults()
	if err == nil || !strings.Contains(err.Error(), "shout") || !strings.Contains(err.Error(), "Ignore") {
		t.Errorf("both problems at once: %v", err)
	}
}

// told is who gets which notice, for comparing.
func told(d Decision) (out []string) {
	for _, n := range d.Notices {
		s := n.Session + " " + string(n.Why)
		for _, id := range d.Passed {
			if id == n.ID {
				s += " passed"
			}
		}
		if len(n.Others) > 0 {
			s += " +" + strings.Join(n.Others, "+")
		}
		out = append(out, s)
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	killed := Boot{Kind: ProcessRestart, ID: "old", At: at(225), Previous: at(0), Stopped: at(95), Known: true, Downtime: 130 * time.Second}
	idle := func(name string, ago float64) Session { return Session{Name: name, Active: at(95 - ago)} }
	mid := func(name string) Session { return Session{Name: name, MidTurn: true, Active: at(90)} }
	ask := []Request{{ID: "r1", Session: "c", Reason: "new build", At: at(90)}}
	roots := []string{"a", "b"}
	for name, c := range map[string]struct {
		in   Input
		want []string
	}{
		"requested, to exactly that session": {Input{Boot: killed, Requests: ask, Sessions: []Session{mid("a"), idle("c", 1)}, Startup: roots, Present: []string{"a", "c"}},
			[]string{"c requested +a"}},
		"requested, and it is not there": {Input{Boot: killed, Requests: ask, Startup: roots, Present: roots, Over: true}, []string{"c requested"}},
		"asked for more than a day ago":  {Input{Boot: killed, Requests: []Request{{Session: "c", At: at(225 - 86401)}}, Startup: roots}, []string{"a target"}},
		"mid-turn and the one last active": {Input{Boot: killed, Sessions: []Session{mid("b"), idle("c", 30), idle("d", 1)}, Startup: roots, Present: []string{"b", "c", "d"}},
			[]string{"b unplanned", "d unplanned"}},
		"mid-turn is the one last active":    {Input{Boot: killed, Sessions: []Session{mid("b"), idle("c", 30)}, Present: []string{"b", "c"}}, []string{"b unplanned"}},
		"last active just within the grace":  {Input{Boot: killed, Sessions: []Session{idle("c", 600)}, Startup: roots, Present: []string{"c"}}, []string{"c unplanned"}},
		"last active just beyond it":         {Input{Boot: killed, Sessions: []Session{idle("c", 600.001)}, Startup: roots, Present: []string{"c"}}, []string{"a target"}},
		"ignored prefixes are no candidates": {Input{Boot: killed, Sessions: []Session{{Name: "head-1", MidTurn: true, Active: at(94)}, idle("c", 5)}, Present: []string{"c"}}, []string{"c unplanned"}},
		"nothing was going on":               {Input{Boot: killed, Startup: roots, Present: roots}, []string{"a target"}},
		"primary is exactly one":             {Input{Boot: killed, Startup: roots, Present: []string{"b"}}, []string{"a target"}},
		"no root agents":                     {Input{Boot: killed, Present: []string{"x"}}, nil},
		"lazy sessions are waited for":       {Input{Boot: killed, Sessions: []Session{mid("c")}, Startup: roots, Present: roots}, []string{"c unplanned"}},
		"one of two is there at the end":     {Input{Boot: killed, Sessions: []Session{mid("c"), mid("d")}, Startup: roots, Present: []string{"d"}, Over: true}, []string{"c unplanned", "d unplanned"}},
		"none came": {Input{Boot: killed, Sessions: []Session{mid("c")}, Startup: roots, Present: roots, Over: true},
			[]string{"c unplanned passed +c", "a target +c"}},
		"a slow root agent is not passed over": {Input{Boot: killed, Sessions: []Session{mid("b")}, Startup: roots, Over: true}, []string{"b unplanned"}},
		"first boot":                           {Input{Boot: Boot{Kind: FirstBoot}, Startup: roots}, nil},
		"reload":                               {Input{Boot: Boot{Kind: Reload}, Sessions: []Session{mid("a")}, Startup: roots}, nil},
		"second instance":                      {Input{Boot: Boot{Kind: SecondInstance}, Sessions: []Session{mid("a")}, Startup: roots}, nil},
		"disabled":                             {Input{Boot: killed, Requests: ask, Sessions: []Session{mid("a")}, Startup: roots, Config: Config{Disabled: true}}, nil},
		"all":                                  {Input{Boot: killed, Startup: roots, Config: Config{Target: All}}, []string{"a target", "b target"}},
		"an id":                                {Input{Boot: killed, Startup: roots, Config: Config{Target: "b"}}, []string{"b target"}},
		"an id that is no start-up session":    {Input{Boot: killed, Startup: roots, Present: []string{"z"}, Config: Config{Target: "z"}}, nil},
		"no grace":                             {Input{Boot: killed, Sessions: []Session{idle("c", 0)}, Startup: roots, Config: Config{Grace: -1}}, []string{"a target"}},
		"unknown stop has no grace": {Input{Boot: Boot{Kind: ProcessRestart, ID: "new", At: at(225)}, Sessions: []Session{idle("c", 1), mid("b")}, Startup: roots, Present: []string{"b"}},
			[]string{"b unplanned"}},
	} {
		c.in.Config = defaults(t, c.in.Config)
		d := Decide(c.in)
		if diff := cmp.Diff(c.want, told(d)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		again := Decide(c.in)
		for i, n := range d.Notices {
			if n.ID != again.Notices[i].ID || n.ID != NoticeID(c.in.Boot.ID, n.Session) {
				t.Errorf("%s: the notice has another id the second time", name)
			}
		}
	}
	two := Decide(Input{Boot: killed, Requests: append(ask, Request{Session: "c", Reason: "and a new model", At: at(91)}), Config: defaults(t, Config{})})
	if len(two.Notices) != 1 || two.Notices[0].Reason != "new build; and a new model" || two.Notices[0].Made != at(90) {
		t.Errorf("two requests of one session are %+v", two.Notices)
	}
}

// TestSessions derives the state at the stop from real logs.
func TestSessions(t *testing.T) {
	t.Parallel()
	last := marker(func(m *Marker) {
		m.Active = []Activity{{"storeless", at(90)}}
		m.Last = Activity{"said", at(80)}
	})
	status := func(name string, owner ledger.Instance, live ledger.Liveness, start float64, drafts ...session.Draft) session.Status {
		t.Helper()
		h := session.Head{Session: name}
		for i, d := range append([]session.Draft{session.Own(at(start), name+"-own", owner, 0)}, drafts...) {
			if i > 0 {
				d = d.As(h.Fence, "t")
			}
			res, err := session.Step(h, []session.Draft{d}, func(string) (e session.Event, ok bool, err error) { return })
			if err != nil {
				t.Fatal(name, err)
			}
			h = res.Receipt.Head
			for _, o := range res.Receipt.Outcomes {
				if err := o.Err(); err != nil {
					t.Fatal(name, err)
				}
			}
		}
		return h.Status(live)
	}
	begin := func(name string, s float64) session.Draft {
		return session.Begin(at(s), name+"-b", session.TurnBegun{})
	}
	done := func(name string, s float64) session.Draft {
		return session.Finish(at(s), name+"-e", session.TurnEnded{End: session.EndDone})
	}
	got := Sessions(last, []session.Status{
		status("cut", last.Instance, ledger.Dead, 1, begin("cut", 50)),
		status("unproven", last.Instance, ledger.LifeUnknown, 1, begin("unproven", 50)),
		status("done", last.Instance, ledger.Dead, 1, begin("done", 50), done("done", 60)),
		status("others", process("else", "k1", "ns1", 7, 7), ledger.Dead, 1, begin("others", 50)),
		status("ours-before", process("older", "k1", "ns1", 7, 7), ledger.Dead, -90, begin("ours-before", -80)),
		status("said", last.Instance, ledger.Dead, 1),
	})
	want := []Session{{"cut", true, at(50)}, {"unproven", true, at(50)}, {"done", false, at(60)}, {"others", false, at(50)}, {"ours-before", false, at(-80)},
		{"said", false, at(80)}, {"storeless", true, at(90)}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	unknown := Sessions(&Marker{Corrupt: true}, []session.Status{status("others", process("else", "k1", "ns1", 7, 7), ledger.Dead, 1, begin("others", 50))})
	if len(unknown) != 1 || !unknown[0].MidTurn {
		t.Errorf("with a corrupt marker %+v: a turn that was cut off is better told than forgotten", unknown)
	}
}

// TestTexts pins every wording.
func TestTexts(t *testing.T) {
	t.Parallel()
	boot := Boot{Kind: ProcessRestart, ID: "old", At: at(225), Previous: at(0), Stopped: at(96), Downtime: 129 * time.Second, Known: true}
	note := func(change func(*Notice)) Notice {
		n := Notice{ID: "rn-1", Session: "a", Why: Unplanned, Boot: boot, State: Pending}
		change(&n)
		return n
	}
	for name, c := range map[string]struct {
		notices []Notice
		ruling  Ruling
		config  Config
		want    string
	}{
		"requested": {[]Notice{note(func(n *Notice) { n.Why, n.Reason, n.Boot.Clean = Requested, "new\n build", true })}, Ruling{}, Config{},
			`[Mulligan restart notice rn-1]
This process was restarted at 2026-03-04 10:03:45 UTC. The previous boot was at 2026-03-04 10:00:00 UTC. Downtime: ~2m 9s.
Reason: you asked for it (new build).
Resume what is still open, or acknowledge rn-1 if there is nothing to do.`},
		"killed in a turn": {[]Notice{note(func(n *Notice) { n.MidTurn, n.Others = true, []string{"b", "c"} })}, Ruling{}, Config{},
			`[Mulligan restart notice rn-1]
This process was restarted at 2026-03-04 10:03:45 UTC. The previous boot was at 2026-03-04 10:00:00 UTC. Downtime: ~2m 9s.
Reason: it ended without a word (a crash, a kill or a power loss).
Also interrupted: b, c.
You were in the middle of a turn. Resume what you were doing, or acknowledge rn-1 if there is nothing left to do.`},
		"nothing is known": {[]Notice{note(func(n *Notice) { n.Boot = Boot{Kind: ProcessRestart, ID: "new", At: at(225)} })}, Ruling{}, Config{},
			`[Mulligan restart notice rn-1]
This process was restarted at 2026-03-04 10:03:45 UTC.
Reason: not known; what the last run left could not be read.
Resume what is still open, or acknowledge rn-1 if there is nothing to do.`},
		"host reboot, held back": {[]Notice{note(func(n *Notice) { n.Boot.Kind, n.Boot.Clean = HostReboot, true })},
			Ruling{Fate: Held, Reason: "the session is paused on a question", Way: "answer the question"}, Config{},
			`[Mulligan restart notice rn-1]
The host was rebooted, and this process came back at 2026-03-04 10:03:45 UTC. The previous boot was at 2026-03-04 10:00:00 UTC. Downtime: ~2m 9s.
Reason: it was stopped, and no session had asked for that.
Resume what is still open, or acknowledge rn-1 if there is nothing to do.
The session was not continued by itself: the session is paused on a question. To go on: answer the question.`},
		"exec, after one that was not told": {[]Notice{note(func(n *Notice) { n.Boot.Kind = ExecInPlace }), note(func(n *Notice) { n.Why, n.Reason = Requested, "" })}, Ruling{}, Config{},
			`[Mulligan restart notice rn-1]
This process was replaced in place at 2026-03-04 10:03:45 UTC. The previous boot was at 2026-03-04 10:00:00 UTC. Downtime: ~2m 9s. You were not told of 1 earlier restart.
Reason: you asked for it.
Resume what is still open, or acknowledge rn-1 if there is nothing to do.`},
		"custom": {[]Notice{note(func(*Notice) {})}, Ruling{}, Config{Text: " Back again: {x} 50%!\n"}, "[Mulligan restart notice rn-1]\n Back again: {x} 50%!\n"},
	} {
		if d := cmp.Diff(c.want, Text(c.notices, c.ruling, c.config)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	long := Text([]Notice{note(func(n *Notice) { n.Why, n.Reason = Requested, strings.Repeat("x ", 4000) })}, Ruling{}, Config{})
	crowd := Text([]Notice{note(func(n *Notice) { n.Others = strings.Split(strings.Repeat("x,", 12)+"x", ",") })}, Ruling{}, Config{})
	if !strings.Contains(crowd, "x, x and 3 more.") {
		t.Errorf("thirteen others are named as %q", crowd)
	}
	if len(long) > 1000 {
		t.Errorf("a reason of 8000 bytes makes a text of %d", len(long))
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	c := defaults(t, Config{})
	n := func(id, session string, second float64, change func(*Notice)) Notice {
		n := Notice{ID: id, Session: session, Why: Unplanned, Boot: Boot{Kind: ProcessRestart, At: at(second)}, Made: at(second), State: Pending}
		if change != nil {
			change(&n)
		}
		return n
	}
	all := []Notice{n("rn-1", "a", 10, nil), n("rn-2", "a", 20, nil), n("rn-3", "b", 20, nil),
		n("rn-4", "c", 20, func(n *Notice) { n.Attempts = []Attempt{{Instance: "i2"}} }),
		n("rn-5", "d", 20, func(n *Notice) { n.State = Acknowledged })}
	for name, c := range map[string]struct {
		session string
		ruling  Ruling
		config  Config
		ids     []string // nil: nothing is delivered
		way     Way
	}{
		"two are one":                {"a", Ruling{}, c, []string{"rn-2", "rn-1"}, ByWake},
		"injected":                   {"b", Ruling{}, Config{Mode: Inject}, []string{"rn-3"}, ByInject},
		"resumed":                    {"b", Ruling{Fate: Resumed}, c, []string{"rn-3"}, InTurn},
		"held":                       {"b", Ruling{Fate: Held}, c, []string{"rn-3"}, ByInject},
		"its host runs a turn":       {"b", Ruling{Fate: Attended}, c, []string{"rn-3"}, ByInject},
		"aborted":                    {"b", Ruling{Fate: Aborted}, c, nil, ""},
		"tried in this boot already": {"c", Ruling{}, c, nil, ""},
		"acknowledged":               {"d", Ruling{}, c, nil, ""},
		"nobody":                     {"z", Ruling{}, c, nil, ""},
	} {
		d, ok := Merge(all, c.session, "i2", c.ruling, c.config)
		if diff := cmp.Diff(c.ids, d.Notices); ok != (c.ids != nil) || diff != "" || d.Way != c.way {
			t.Errorf("%s: %+v, want %v by %s", name, d, c.ids, c.way)
		} else if ok && (d.ID != c.ids[0] || !strings.Contains(d.Text, d.ID)) {
			t.Errorf("%s: the id %s does not stand in %q", name, d.ID, d.Text)
		}
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	three := []Attempt{{Instance: "i1"}, {Instance: "i2"}, {Instance: "i3"}}
	for name, c := range map[string]struct {
		n    Notice
		now  stamp.Time
		self string
		want State
	}{
		"fresh":                 {Notice{Made: at(0), State: Pending}, at(86400), "i1", Pending},
		"a day old":             {Notice{Made: at(0), State: Pending}, at(86400.001), "i1", Undeliverable},
		"in its third boot":     {Notice{Made: at(0), State: Pending, Attempts: three}, at(9), "i3", Pending},
		"in a fourth boot":      {Notice{Made: at(0), State: Pending, Attempts: three}, at(9), "i4", Undeliverable},
		"two boots were not it": {Notice{Made: at(0), State: Pending, Attempts: three[:2]}, at(9), "i4", Pending},
		"over already":          {Notice{Made: at(0), State: Acknowledged}, at(90000), "i4", Acknowledged},
	} {
		if got := c.n.Settle(c.now, c.self); got.State != c.want || (got.State == Undeliverable) != (got.By != "") {
			t.Errorf("%s: %s (%s), want %s", name, got.State, got.By, c.want)
		}
	}
}

func TestRulingOf(t *testing.T) {
	t.Parallel()
	for want, st := range map[Fate]session.Status{
		Aborted: {Headline: session.Aborted, Quarantined: true},
		Free:    {Headline: session.Idle},
	} {
		if got := RulingOf(st); got.Fate != want {
			t.Errorf("%s: %+v, want %s", st.Headline, got, want)
		}
	}
	for _, st := range []session.Status{{Headline: session.Paused}, {Quarantined: true}, {Ambiguous: true, Interruption: &session.Interruption{}}} {
		if got := RulingOf(st); got.Fate != Held || got.Reason == "" || got.Way == "" {
			t.Errorf("%+v: %+v, want it held with a reason and a way out", st, got)
		}
	}
}

// TestStays holds what is written on disk to what is read back.
func TestStays(t *testing.T) {
	t.Parallel()
	m := marker(func(m *Marker) { m.Active = []Activity{{"a", at(1)}}; m.Stop = at(5) })
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back Marker
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(*m, back); d != "" {
		t.Error(d)
	}
}
