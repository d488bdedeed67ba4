package systemd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
)

// restarts is the contract of restart notices under a service manager. Each row is a service with real sessions, whose
// first life does some work and then ends in one way; what the next life knows and whom it tells is what is checked, and
// that in two further lives nobody is told of that end again.
//
// The work is of sessions: "done" completed a turn, "open" is in one and gives way when it is asked to, "stuck" is in one
// and does not, "calling" is in a call, "asks" asks for the restart, "insists" does so by force. "noted" is in a turn of which
// only the keeper knows, in a host without a store.
var restarts = []scenario{
	{name: "an agent asked", work: "done:s1 done:s2 asks:s1", end: itself, clean: true, told: []recipient{requester("s1")}, says: asked},
	{name: "an agent asked while others worked", work: "done:s2 open:s3 insists:s1", end: itself, clean: true,
		told: []recipient{requester("s1")}, says: asked, also: "Also interrupted: s3."},
	{name: "an agent asked and the service exits for it", work: "done:s2 asks:s1", env: "EXITS=1", unit: onFailure, end: itself, clean: true, again: 1,
		told: []recipient{requester("s1")}, says: asked},

	{name: "restarted in a turn", work: "done:s2 open:s1 open:head-1", end: restarted, clean: true, told: []recipient{resumed("s1")}, says: stopped},
	{name: "restarted in turns that do not end", work: "done:s2 stuck:s1 stuck:s3 open:head-1", end: restarted, clean: true,
		told: []recipient{resumed("s1"), resumed("s3")}, says: stopped},
	{name: "restarted in a turn that is noted", work: "noted:s3", env: storeless, end: restarted, clean: true, told: []recipient{wokenMidTurn("s3")}, says: stopped},
	{name: "restarted when idle", work: "done:s1 done:s2", end: restarted, clean: true, told: []recipient{woken("s2")}, says: stopped},
	{name: "restarted when nobody ever worked", end: restarted, clean: true, told: []recipient{target("main")}, says: stopped},
	{name: "restarted beside a second instance", work: "done:s1 open:s2", second: true, end: restartedBesideAnother, clean: true,
		told: []recipient{resumed("s2")}, says: stopped},
	{name: "killed because it did not stop", work: "done:s2 stuck:s1", env: "DEAF=1", unit: "TimeoutStopSec=1\n", end: restarted,
		told: []recipient{resumed("s1")}, says: crashed},

	{name: "exited with 1", work: "done:s2 open:s1 open:head-1", unit: onFailure, end: exits1, again: 1, told: []recipient{resumed("s1")}, says: crashed},
	{name: "panicked", work: "done:s2 open:s1 open:head-1", unit: onFailure, end: panics, again: 1, told: []recipient{resumed("s1")}, says: crashed},
	{name: "killed", work: "done:s2 open:s1 open:head-1", unit: onFailure, end: killed, again: 1, told: []recipient{resumed("s1")}, says: crashed},
	{name: "killed when idle", work: "done:s1 done:s2", unit: onFailure, end: killed, again: 1, told: []recipient{woken("s2")}, says: crashed},
	{name: "killed in a call", work: "done:s2 calling:s1", unit: onFailure, end: killed, again: 1, told: []recipient{held("s1")}, says: crashed,
		also: "To go on: mulligan sessions resolve s1 "},
	{name: "crashed until the manager gave up", work: "done:s2 open:s1", unit: onFailure + "[Unit]\nStartLimitIntervalSec=200\nStartLimitBurst=5\n",
		end: crashesUntilGivenUp, stops: 5, told: []recipient{resumed("s1")}, says: crashed, also: "You were not told of 4 earlier restarts."},

	// Killed long after the last that its sessions wrote, so that nothing but the heartbeat tells how long it lived.
	{name: "killed in a long turn", work: "open:s1", lives: long, unit: onFailure, end: killed, again: 1, told: []recipient{resumed("s1")}, says: crashed},
	{name: "killed in a long turn that is noted", work: "noted:s3", env: storeless, lives: long, unit: onFailure, end: killed, again: 1,
		told: []recipient{wokenMidTurn("s3")}, says: crashed},
}

const (
	// asked, stopped and crashed are the reasons as a session reads them.
	asked   = "you asked for it (a new build)"
	stopped = "it was stopped, and no session had asked for that"
	crashed = "it ended without a word"

	onFailure = "Restart=on-failure\n"
	storeless = "NOTING=1"
	// long is more than two heartbeats.
	long = 12 * time.Second
	// pause is how long each start takes at least, so that there is a downtime.
	pause = 500 * time.Millisecond
)

// recipient is a session that is told: why, whether it reads that it was in a turn, and how the notice gets to it.
type recipient struct {
	session string
	why     bootnotice.Why
	mid     bool
	way     bootnotice.Way
}

func requester(name string) recipient {
	return recipient{name, bootnotice.Requested, false, bootnotice.ByWake}
}
func resumed(name string) recipient {
	return recipient{name, bootnotice.Unplanned, true, bootnotice.InTurn}
}
func woken(name string) recipient {
	return recipient{name, bootnotice.Unplanned, false, bootnotice.ByWake}
}
func wokenMidTurn(name string) recipient {
	return recipient{name, bootnotice.Unplanned, true, bootnotice.ByWake}
}
func held(name string) recipient {
	return recipient{name, bootnotice.Unplanned, true, bootnotice.ByInject}
}
func target(name string) recipient {
	return recipient{name, bootnotice.Target, false, bootnotice.ByWake}
}

type scenario struct {
	name string
	// unit is added to the service's section, env to its environment.
	unit, env string
	work      string
	// lives is how long the first life goes on after its work has begun; 0 is not at all.
	lives time.Duration
	// second says that the end has to do with another instance over the same state.
	second bool
	// end ends the first life, and returns when the manager has been told or the process is gone.
	end func(t *testing.T, s *served)

	// clean says that the stop is on record, again what the manager counts as restarts of its own.
	clean bool
	again int
	// told are all who are told, each by one message; stops is how many ends it is about when not one.
	told  []recipient
	stops int
	// says and also stand in each message.
	says, also string
}

// served is a service of the role "agents".
type served struct {
	unit, dir, out string
	row            scenario
	second         *served // another instance over the same state
}

// agentLife is one life of the host, as its diary has it.
type agentLife struct {
	born
	ready time.Time
	// read are the notices with which its sessions had turns.
	read []string
}

func (s *served) lives(t *testing.T) (out []agentLife) {
	t.Helper()
	b, err := os.ReadFile(s.out + "/diary")
	if err != nil {
		return nil
	}
	for line := range bytes.Lines(b) {
		var l said
		if !bytes.HasSuffix(line, []byte("\n")) {
			return out // it is being written
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		switch {
		case l.Born != nil:
			out = append(out, agentLife{born: *l.Born})
		case l.Read != "":
			out[len(out)-1].read = append(out[len(out)-1].read, l.Read)
		default:
			out[len(out)-1].ready = l.Ready
		}
	}
	return out
}

// up waits for a life after one of the given instance, in which nobody has to be told any more.
func (s *served) up(t *testing.T, after string) (l agentLife) {
	t.Helper()
	until(t, "the service "+s.unit+" to be up and everybody told", func() bool {
		all := s.lives(t)
		if len(all) == 0 {
			return false
		}
		l = all[len(all)-1]
		return !l.ready.IsZero() && l.Instance != after && l.settled(s.notices(t))
	})
	return l
}

// settled reports that nobody has to be told any more, and that whoever was to go on with a notice has.
func (l agentLife) settled(notices []bootnotice.Notice) bool {
	for _, n := range notices {
		if n.State == bootnotice.Pending {
			return false
		}
		if i := slices.IndexFunc(n.Attempts, func(a bootnotice.Attempt) bool { return a.Instance == l.Instance }); i >= 0 && n.Attempts[i].Way != bootnotice.ByInject {
			together := func(o bootnotice.Notice) bool {
				return o.Session == n.Session && o.Tried(l.Instance) && slices.Contains(l.read, o.ID)
			}
			if !slices.ContainsFunc(notices, together) {
				return false
			}
		}
	}
	return true
}

// notices are those of the outbox.
func (s *served) notices(t *testing.T) []bootnotice.Notice {
	t.Helper()
	outbox, err := boot.OpenOutbox(s.dir + "/boot")
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	all, err := outbox.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// message is a notice in a session's log.
type message struct {
	recipient
	text string
	// merged are the notices that it tells, by the instance by.
	merged []bootnotice.Notice
	by     string
}

// messages are those of all logs.
func (s *served) messages(t *testing.T) (out []message) {
	t.Helper()
	notices := s.notices(t)
	store, err := sessionlog.Read(sessionlog.Config{Path: s.dir + "/log/sessions"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, name := range append([]string{"main"}, agents...) {
		events, err := store.Read(t.Context(), name, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			i := slices.IndexFunc(notices, func(n bootnotice.Notice) bool { return n.ID == e.ID })
			if e.Kind != session.KindMessage || i < 0 {
				continue
			}
			n := notices[i]
			if n.State != bootnotice.Acknowledged || len(n.Attempts) != 1 {
				t.Errorf("the log of %s has the notice %+v", name, n)
			}
			m := message{recipient: recipient{session: name, why: n.Why, way: n.Attempts[0].Way}, by: n.Attempts[0].Instance}
			if err := e.Into(&m.text); err != nil {
				t.Fatal(err)
			}
			for _, o := range notices {
				if o.Session == name && o.Tried(m.by) {
					m.merged, m.mid = append(m.merged, o), m.mid || o.MidTurn
				}
			}
			out = append(out, m)
		}
	}
	return out
}

// install writes the unit. All are there before the first one starts: a manager that reads its units anew forgets how often
// each was started.
func (s *served) install(t *testing.T) {
	t.Helper()
	install(t, s.unit, fmt.Sprintf("[Service]\nType=notify\nExecStartPre=/bin/sleep %v\nStandardError=append:%s/stderr\n%s\n%s",
		pause.Seconds(), s.out, program(t, "agents", dirVar+"="+s.dir, outVar+"="+s.out, workVar+"="+s.row.work, s.row.env), s.row.unit))
}

// start starts the service, and shows what it wrote to its standard error if the test fails.
func (s *served) start(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if b, err := os.ReadFile(s.out + "/stderr"); err == nil && t.Failed() {
			t.Logf("%s said:\n%s", s.unit, b)
		}
	})
	systemctl(t, "start", s.unit)
}

func TestRestartsUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		restartsAreTold(t)
	}
}

func TestRestartsUnderUserManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.UserManager) {
		restartsAreTold(t)
	}
}

func restartsAreTold(t *testing.T) {
	var all []*served
	for i, row := range restarts {
		s := &served{unit: fmt.Sprintf("host-%d.service", i), dir: t.TempDir(), out: t.TempDir(), row: row}
		s.install(t)
		if row.second {
			s.second = &served{unit: "second-" + s.unit, dir: s.dir, out: t.TempDir(), row: scenario{env: "SECOND=1"}}
			s.second.install(t)
		}
		all = append(all, s)
	}
	for _, s := range all {
		if s.row.lives > 0 {
			s.start(t) // it lives through the tests of the others
		}
	}
	inService, inScope := newHealed(t, false), newHealed(t, true)
	t.Run("an_agent_in_a_service_outlives_its_healer", func(t *testing.T) { t.Parallel(); inService.run(t) })
	t.Run("an_agent_in_a_scope_outlives_its_healer", func(t *testing.T) { t.Parallel(); inScope.run(t) })
	for _, s := range all {
		t.Run(strings.ReplaceAll(s.row.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			s.run(t)
		})
	}
}

func (s *served) run(t *testing.T) {
	if s.row.lives == 0 {
		s.start(t)
	}
	var began time.Time
	until(t, "its work to begin", func() bool {
		at, err := os.Stat(s.out + "/at-work")
		if err == nil {
			began = at.ModTime()
		}
		return err == nil
	})
	one := s.up(t, "")
	if m := s.messages(t); one.Boot.Kind != bootnotice.FirstBoot || len(m) > 0 {
		t.Errorf("the first life is a %s, and told %+v", one.Boot.Kind, m)
	}
	until(t, "the turn to be long", func() bool { return time.Since(began) >= s.row.lives })

	ended := time.Now()
	s.row.end(t, s)
	two := s.up(t, one.Instance)
	if got := systemctl(t, "show", "-p", "NRestarts", "--value", s.unit); got != fmt.Sprint(s.row.again) {
		t.Errorf("the manager counts %s restarts of its own, not %d", got, s.row.again)
	}
	s.knows(t, one, two, ended)
	s.tells(t, one, two)

	// In two further boots the sessions are told of other ends.
	for last, n := two, 0; n < 2; n++ {
		systemctl(t, "restart", s.unit)
		last = s.up(t, last.Instance)
	}
	s.tells(t, one, two)
	systemctl(t, "stop", s.unit)
	s.stands(t)
}

// knows checks what the life after the end knows of it.
func (s *served) knows(t *testing.T, one, two agentLife, ended time.Time) {
	t.Helper()
	b := two.Boot
	if b.Kind != bootnotice.ProcessRestart || b.Clean != s.row.clean || !b.Known || two.PID == one.PID {
		t.Errorf("process %d after %d: it knows %+v", two.PID, one.PID, b)
	}
	if s.row.stops <= 1 && (b.ID != one.Instance || !b.Previous.Wall.Equal(one.Boot.At.Wall)) {
		t.Errorf("the boot before was %s at %v: it knows %+v", one.Instance, one.Boot.At, b)
	}
	// Nothing ran for as long as a start takes at least, and at most from the moment at which we ended it. A stop that nobody
	// recorded is known as well as the heartbeat tells it, of which a busy machine may miss one.
	most := b.At.Wall.Sub(ended) + 10*time.Millisecond // two clocks
	if !s.row.clean {
		most += 2 * bootnotice.BeatEvery
	}
	if b.Downtime < pause || b.Downtime > most {
		t.Errorf("it was down for %v at most, and it knows of %v", b.At.Wall.Sub(ended), b.Downtime)
	}
}

// tells checks who has been told of the end of the first life: those of the row, by the second life, once.
func (s *served) tells(t *testing.T, one, two agentLife) {
	t.Helper()
	var got []recipient
	read := map[string]int{} // how often a session had a turn with a notice
	for _, l := range s.lives(t) {
		for _, id := range l.read {
			read[id]++
		}
	}
	for _, m := range s.messages(t) {
		i := slices.IndexFunc(m.merged, func(n bootnotice.Notice) bool { return n.Boot.ID == one.Instance })
		if i < 0 {
			// The ends that came later cut nobody off, and nobody asked for them.
			if m.mid || m.why == bootnotice.Requested {
				t.Errorf("%s was told of a later end as if it were the first: %+v", m.session, m)
			}
			continue
		}
		got = append(got, m.recipient)
		if m.by != two.Instance || len(m.merged) != max(1, s.row.stops) {
			t.Errorf("%s was told of %d ends, by %s: %s", m.session, len(m.merged), m.by, m.text)
		}
		times := 0
		for _, n := range m.merged {
			times += read[n.ID]
		}
		if want := map[bool]int{true: 1}[m.way != bootnotice.ByInject]; times != want {
			t.Errorf("%s had %d turns with the notice, not %d", m.session, times, want)
		}
		for _, want := range []string{s.row.says, s.row.also, map[bool]string{true: "in the middle of a turn", false: "Resume what is still open"}[m.mid]} {
			if !strings.Contains(m.text, want) {
				t.Errorf("%s does not read %q, but %s", m.session, want, m.text)
			}
		}
	}
	slices.SortFunc(got, func(a, b recipient) int { return strings.Compare(a.session, b.session) })
	if !slices.Equal(got, s.row.told) {
		t.Errorf("told were %+v, not %+v", got, s.row.told)
	}
}

// stands checks that no session that went on is still interrupted, or in doubt of what it did.
func (s *served) stands(t *testing.T) {
	t.Helper()
	store, err := sessionlog.Read(sessionlog.Config{Path: s.dir + "/log/sessions"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, r := range s.row.told {
		head, err := store.Head(t.Context(), r.session)
		if err != nil {
			t.Fatal(err)
		}
		if r.way != bootnotice.ByInject && (head.Turn != nil || head.Mark != nil || head.Interrupted != nil || len(head.Calls) > 0) {
			t.Errorf("%s is left with %+v", r.session, head)
		}
	}
}

// itself: the service restarts by its agent's wish.
func itself(*testing.T, *served) {}

func restarted(t *testing.T, s *served) { systemctl(t, "restart", s.unit) }

// What the host does at a signal.
func exits1(t *testing.T, s *served) { s.signal(t, syscall.SIGUSR1) }
func panics(t *testing.T, s *served) { s.signal(t, syscall.SIGUSR2) }
func killed(t *testing.T, s *served) { s.signal(t, syscall.SIGKILL) }

func (s *served) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(s.up(t, "").PID, sig); err != nil {
		t.Fatal(err)
	}
}

// restartedBesideAnother starts the program once more over the same state: that one tells nobody and changes nothing.
func restartedBesideAnother(t *testing.T, s *served) {
	s.second.start(t)
	if l, m := s.second.up(t, ""), s.messages(t); l.Boot.Kind != bootnotice.SecondInstance || len(m) > 0 || len(l.read) > 0 {
		t.Errorf("the second instance is a %s, and told %+v %v", l.Boot.Kind, m, l.read)
	}
	restarted(t, s)
	systemctl(t, "stop", s.second.unit)
}

// crashesUntilGivenUp leaves a program that dies at once, until somebody mends it and starts the service by hand.
func crashesUntilGivenUp(t *testing.T, s *served) {
	broken := filepath.Join(s.out, "broken")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	exits1(t, s)
	until(t, "the manager to give up", func() bool {
		return systemctl(t, "show", "-p", "ActiveState", "--value", s.unit) == "failed"
	})
	if r, err := connect(t).Result(t.Context(), s.unit); err != nil || r.Restarts != 5 || r.Result != "exit-code" || r.Code != 1 || r.Status != 1 {
		t.Errorf("the adapter tells %+v, %v", r, err)
	}
	if err := os.Remove(broken); err != nil {
		t.Fatal(err)
	}
	systemctl(t, "reset-failed", s.unit)
	systemctl(t, "start", s.unit)
}
