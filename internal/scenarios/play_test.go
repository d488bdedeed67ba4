package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

// play is a screenplay under way.
type play struct {
	t       *testing.T
	script  script
	storage *storage
	w       *restarttest.World
	set     restart.Settings
	refuses policy.Preflight
	said    map[string]string // the failure text of each run that died
	names   *names
	began   int // replacements that were shown
	others  map[string]*restarttest.Healer
	arm     func(h *restarttest.Healer)
	stopped *stopped
	// passing is set while a pass goes on: what the healer does then is what a sweep breaks.
	passing atomic.Bool
	// loose is set by a sweep: the story goes another way, and what makes no sense any more is left out.
	loose bool
	// each is called for every healer that makes a pass for which the play has no plans of its own.
	each func(h *restarttest.Healer)
}

// stopped is a pass that stands still.
type stopped struct {
	at   chan struct{}
	goOn chan struct{}
	done chan passed
}

type passed struct {
	res restart.Result
	err error
}

func newPlay(t *testing.T, s script, st *storage) *play {
	p := &play{t: t, script: s, storage: st, said: map[string]string{}, names: newNames(), others: map[string]*restarttest.Healer{}}
	p.w = restarttest.New(t, restarttest.Config{Open: st.open(),
		Preflight: func(context.Context, restart.Order) policy.Preflight { return p.refuses }})
	return p
}

func (p *play) fail(l line, format string, args ...any) {
	p.t.Helper()
	p.t.Fatalf("%s, line %d of the play (%s): %s", p.script.name, l.number, l.text, fmt.Sprintf(format, args...))
}

// do does what a line says, and returns what it shows.
func (p *play) do(l line) []string {
	p.t.Helper()
	f := strings.Fields(l.text)
	verb, args := f[0], f[1:]
	if len(args) > 0 {
		// Two words are one command where the first alone would say too little.
		switch verb + " " + args[0] {
		case "begin update", "end update", "kill healer", "fail healer", "stop healer", "crash power":
			verb, args = verb+" "+args[0], args[1:]
		}
	}
	c, ok := commands[verb]
	if !ok {
		p.fail(l, "there is no command %q", verb)
	}
	if len(args) < c.atLeast {
		p.fail(l, "it needs %d words more", c.atLeast-len(args))
	}
	if p.loose && p.senseless(verb, args) {
		return nil
	}
	return c.do(p, l, args)
}

// senseless reports a command that the story cannot follow any more after it went another way.
func (p *play) senseless(verb string, args []string) bool {
	var latest *restarttest.Agent
	if len(args) > 0 {
		if all := p.w.Agents(args[0]); len(all) > 0 {
			latest = all[len(all)-1]
		}
	}
	switch verb {
	case "boot":
		return latest != nil && latest.Alive()
	case "die", "end", "vanish", "phase":
		return latest == nil || !latest.Alive()
	case "ring":
		return latest == nil || latest.Registered().Ended == nil
	case "prune":
		rec, err := p.w.Agents(args[0])[0].Record()
		return err != nil || rec == nil || !rec.State.Final()
	case "continue":
		return p.stopped == nil
	}
	return false
}

type command struct {
	atLeast int
	do      func(p *play, l line, args []string) []string
}

// commands is filled when the package starts because its entries refer to each other.
var commands map[string]command

func TestMain(m *testing.M) {
	commands = map[string]command{
		"boot": {1, (*play).boot}, "phase": {2, (*play).phase}, "die": {3, (*play).die}, "end": {1, (*play).end},
		"vanish": {1, (*play).vanish}, "ring": {1, (*play).ring},
		"update": {2, (*play).update}, "begin update": {2, (*play).update}, "end update": {0, (*play).endUpdate},
		"stop": {1, intent(run.Killed)}, "dismiss": {1, intent(run.Dismissed)}, "ask": {1, intent(run.Asked)},
		"pause": {0, (*play).pause}, "resume": {0, (*play).resume}, "settings": {1, (*play).settings},
		"advance": {1, (*play).advance}, "jump": {1, (*play).jump}, "launches": {1, (*play).launches}, "late": {0, (*play).late},
		"preflight": {1, (*play).preflight}, "prune": {1, (*play).prune},
		"kill healer": {2, (*play).killHealer}, "fail healer": {2, (*play).failHealer}, "stop healer": {2, (*play).stopHealer}, "continue": {0, (*play).goOn},
		"crash power": {0, (*play).crash}, "tear": {1, (*play).tear},
		"pass": {0, (*play).pass}, "show": {0, (*play).show}, "ledger": {0, (*play).ledger}, "notices": {0, (*play).notices},
		"journal": {0, (*play).journal},
	}
	m.Run()
}

func (p *play) boot(l line, args []string) []string {
	r := restarttest.Run{Name: args[0]}
	for _, a := range args[1:] {
		k, v, _ := strings.Cut(a, "=")
		switch root, rev, tree := strings.Cut(a, "@"); {
		case tree:
			if got := p.w.Tree(root, rev); got != rev {
				p.fail(l, "the tree %s is at %s", root, got)
			}
			r.Roots = append(r.Roots, root)
		case k == "idempotent":
			r.Marking = run.Idempotent
		case k == "unmarked":
			r.Unmarked = true
		case k == "unprobed":
			r.Unprobed = true
		case k == "shown":
			r.Shown = true
		case k == "waits-for":
			r.WaitsFor = append(r.WaitsFor, v)
		case k == "supervised":
			r.Supervised = v
		default:
			p.fail(l, "a run is not booted with %q", a)
		}
	}
	p.names.run(p.w.Boot(r))
	return nil
}

func (p *play) phase(_ line, args []string) []string {
	p.w.Latest(args[0]).Phase(run.Phase(args[1]))
	return nil
}

func (p *play) die(l line, args []string) []string {
	var f restarttest.Failure
	rest := args[3:]
	if args[2] == "torn-import" {
		if len(rest) == 0 {
			p.fail(l, "torn-import needs the name that is missing")
		}
		f, rest = restarttest.TornImport(rest[0]), rest[1:]
	} else {
		i := slices.IndexFunc(p.script.texts, func(s section) bool { return s.name == args[2] })
		if i < 0 {
			p.fail(l, "there is no section %q", args[2])
		}
		f.Text = p.script.texts[i].body
	}
	for _, a := range rest {
		switch k, v, _ := strings.Cut(a, "="); k {
		case "cause":
			f.Cause = classify.Reason(v)
		case "signal":
			f.Exit.Signal = v
		case "exit":
			n, err := strconv.Atoi(v)
			if err != nil {
				p.fail(l, "%v", err)
			}
			f.Exit.Code = n
		default:
			p.fail(l, "nobody dies with %q", a)
		}
	}
	a := p.w.Latest(args[0])
	p.said[a.ID()] = f.Text
	a.Die(f)
	return nil
}

func (p *play) end(_ line, args []string) []string {
	p.w.Latest(args[0]).Done()
	return nil
}

func (p *play) vanish(_ line, args []string) []string {
	p.w.Latest(args[0]).Vanish()
	return nil
}

// ring leaves the note of a death once more, as a second reporter of it would.
func (p *play) ring(l line, args []string) []string {
	a := p.w.Latest(args[0])
	r := a.Registered()
	if r.Ended == nil {
		p.fail(l, "it has not ended")
	}
	p.must(p.w.Stores().Doorbells.Ring(p.t.Context(), doorbell.Note{Schema: doorbell.Schema, Run: r.ID, At: r.Ended.At, Phase: r.Phase,
		Exit: r.Ended.Exit, Text: doorbell.Text(p.said[r.ID]), Identities: r.Ended.Identities, Silenced: r.Silenced}))
	return nil
}

func (p *play) update(l line, args []string) []string {
	var c restarttest.Change
	for rest := args[2:]; len(rest) > 0; {
		word := rest[0]
		rest = rest[1:]
		switch word {
		case "skipped":
			c.Skipped = true
			continue
		case "fails":
			c.Fails = true
			continue
		case "unrecorded":
			c.Unrecorded = true
			continue
		}
		into := map[string]*[]string{"removes": &c.Removes, "adds": &c.Adds, "breaks": &c.Breaks, "mends": &c.Mends}[word]
		if into == nil || len(rest) == 0 {
			p.fail(l, "an update does not do %q", word)
		}
		*into = append(*into, rest[0])
		rest = rest[1:]
	}
	p.w.BeginUpdate(args[0], args[1], c)
	if strings.HasPrefix(l.text, "update ") {
		p.w.EndUpdate()
	}
	return nil
}

func (p *play) endUpdate(line, []string) []string {
	p.w.EndUpdate()
	return nil
}

func intent(k run.IntentKind) func(*play, line, []string) []string {
	return func(p *play, _ line, args []string) []string {
		p.w.Latest(args[0]).Intend(k)
		return nil
	}
}

func (p *play) pause(line, []string) []string {
	p.state(func(cur storm.State, now stamp.Time) storm.State {
		return cur.Pause(storm.Pause{Since: now, Reason: "by_hand", Note: "a person paused it", By: "a person"})
	})
	return nil
}

func (p *play) resume(line, []string) []string {
	was, err := p.w.Healer().Resume(p.t.Context(), "a person")
	p.must(err)
	if !was {
		return []string{"it was not paused"}
	}
	return nil
}

func (p *play) state(f func(storm.State, stamp.Time) storm.State) {
	_, err := p.w.Stores().Storm.UpdateState(p.t.Context(), func(cur storm.State, now stamp.Time) (storm.State, error) { return f(cur, now), nil })
	p.must(err)
}

func (p *play) settings(l line, args []string) []string {
	set := p.set
	for _, a := range args {
		k, v, _ := strings.Cut(a, "=")
		number := func() int {
			n, err := strconv.Atoi(v)
			if err != nil {
				p.fail(l, "%v", err)
			}
			return n
		}
		switch k {
		case "disabled":
			set.Disabled = v == "true"
		case "quiescence":
			set.Quiescence = p.duration(l, v)
		case "max_defer":
			set.MaxDefer = p.duration(l, v)
		case "resurface":
			set.Resurface = p.duration(l, v)
		case "per_episode":
			set.StormPerEpisode = number()
		case "per_30m":
			set.StormPer30m = number()
		default:
			p.fail(l, "there is no setting %q", k)
		}
	}
	p.set = set
	p.w.Configure(set)
	return nil
}

func (p *play) duration(l line, s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		p.fail(l, "%v", err)
	}
	return d
}

func (p *play) advance(l line, args []string) []string {
	p.w.Advance(p.duration(l, args[0]))
	return nil
}

func (p *play) jump(l line, args []string) []string {
	p.w.Jump(p.duration(l, args[0]))
	return nil
}

func (p *play) launches(l line, args []string) []string {
	fates := map[string]restarttest.Fate{"runs": restarttest.Runs, "fails": restarttest.Fails, "dies": restarttest.Dies, "hangs": restarttest.Hangs}
	f, ok := fates[args[0]]
	if !ok {
		p.fail(l, "no launch %q", args[0])
	}
	p.w.Launches(f)
	return nil
}

func (p *play) late(line, []string) []string {
	if err := p.w.Late(); err != nil {
		return []string{p.names.plain(err.Error())}
	}
	return p.starts()
}

func (p *play) preflight(_ line, args []string) []string {
	p.refuses = policy.Preflight{}
	if args[0] != "ok" {
		p.refuses = policy.Preflight{Code: args[0], ForGood: slices.Contains(args, "for-good"), Text: "The launcher says " + args[0] + "."}
	}
	return nil
}

func (p *play) prune(l line, args []string) []string {
	a := p.w.Agents(args[0])
	if len(a) == 0 {
		p.fail(l, "nobody was ever called so")
	}
	_, err := p.w.Stores().Ledger.Update(p.t.Context(), a[0].Registered().Key(), func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
		return ledger.Apply(cur, ledger.Change{Event: ledger.Prune, Now: now, Actor: p.w.Stores().Instances.Self()})
	})
	p.must(err)
	return nil
}

// moment tells the step that a command names: "before STEP" or "after STEP".
func (p *play) moment(l line, args []string) func(restarttest.Op) bool {
	if args[0] != "before" && args[0] != "after" {
		p.fail(l, "want before STEP or after STEP")
	}
	return func(op restarttest.Op) bool { return op.Name == args[1] && op.Done == (args[0] == "after") }
}

func (p *play) killHealer(l line, args []string) []string {
	now := p.moment(l, args)
	p.arm = func(h *restarttest.Healer) {
		h.Hook(func(op restarttest.Op) error {
			if now(op) {
				h.Kill()
			}
			return nil
		})
	}
	return nil
}

// errStep is what a step ends in that a play lets fail.
var errStep = errors.New("no space left on device")

func (p *play) failHealer(l line, args []string) []string {
	now := p.moment(l, args)
	p.arm = func(h *restarttest.Healer) {
		h.Hook(func(op restarttest.Op) error {
			if now(op) {
				h.Hook(nil)
				return errStep
			}
			return nil
		})
	}
	return nil
}

func (p *play) stopHealer(l line, args []string) []string {
	now := p.moment(l, args)
	p.arm = func(h *restarttest.Healer) {
		s := &stopped{at: make(chan struct{}), goOn: make(chan struct{}), done: make(chan passed, 1)}
		p.stopped = s
		h.Hook(func(op restarttest.Op) error {
			if now(op) {
				h.Hook(nil)
				close(s.at)
				<-s.goOn
			}
			return nil
		})
	}
	return nil
}

func (p *play) goOn(l line, _ []string) []string {
	if p.stopped == nil {
		p.fail(l, "no healer is stopped")
	}
	s, before := p.stopped, p.w.Rows()
	p.stopped = nil
	close(s.goOn)
	got := <-s.done
	p.passing.Store(false)
	return p.outcome(got.res, got.err, before)
}

func (p *play) pass(l line, args []string) []string {
	before := p.w.Rows()
	p.w.Advance(time.Second)
	var h *restarttest.Healer
	if len(args) == 2 {
		if h = p.others[args[1]]; h == nil {
			h = p.w.NewHealer(p.set)
			p.others[args[1]] = h
		}
	} else {
		h = p.w.Healer()
	}
	if p.arm == nil && p.each != nil {
		p.each(h)
	}
	if p.arm != nil {
		p.arm(h)
		p.arm = nil
		p.passing.Store(true)
		if s := p.stopped; s != nil {
			go func() {
				res, err := h.Pass()
				s.done <- passed{res, err}
			}()
			select {
			case <-s.at:
				return []string{"it is stopped"}
			case got := <-s.done:
				if p.loose {
					p.stopped = nil
					return p.outcome(got.res, got.err, before)
				}
				p.fail(l, "it was not stopped: %+v %v", got.res, got.err)
			}
		}
	}
	p.passing.Store(true)
	res, err := h.Pass()
	p.passing.Store(false)
	if p.each != nil {
		h.Hook(nil) // it may be asked for more than a pass
	}
	return p.outcome(res, err, before)
}

func (p *play) crash(line, []string) []string {
	old, hook := p.w, p.storage.hook
	p.storage = p.storage.cut(p.t, nothingUnflushed)
	p.storage.hook = hook
	p.w = old.PowerCut(p.storage.open())
	old.Close()
	p.others = map[string]*restarttest.Healer{}
	return nil
}

func (p *play) tear(l line, args []string) []string {
	a := p.w.Agents(args[0])
	if len(a) == 0 {
		p.fail(l, "nobody was ever called so")
	}
	k := a[0].Registered().Key()
	p.storage.tear(p.t, k.Project, k.Lineage)
	return nil
}

func (p *play) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v", p.script.name, err)
	}
}

// sound is what must hold after every play: no lineage was put back twice, and the machine can have made every record.
func (p *play) sound() {
	p.t.Helper()
	times := map[string]int{}
	for _, s := range p.w.Starts() {
		times[s.Lineage]++
		if times[s.Lineage] > 1 {
			p.t.Errorf("%s: %s was put back twice", p.script.name, s.Name)
		}
	}
	for _, bad := range ledger.Check(p.w.Stores().Ledger.List(p.t.Context())) {
		if !p.script.damages() || !strings.Contains(bad.Text, "damaged") {
			p.t.Errorf("%s: an impossible record: %s", p.script.name, bad)
		}
	}
}
