package prometheus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/adapters/prometheus"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/session/sessiontest"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// workloadOf is a host's: what stands before the first dash.
func workloadOf(name string) string {
	w, _, _ := strings.Cut(name, "-")
	return w
}

// world is a process that runs sessions, with its metrics behind a real HTTP server.
type world struct {
	*testing.T
	m       *prometheus.Metrics
	home    *memory.Home
	self    ledger.Instance
	store   session.Store
	service *sessions.Service
	url     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	registry := prom.NewPedanticRegistry()
	m, err := prometheus.New(prometheus.Config{Registerer: registry, Workloads: []string{"chat", "oncall"}, Workload: workloadOf})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	w := &world{T: t, m: m, home: memory.New(memory.Config{}), store: m.Store(memory.NewSessions(memory.SessionsConfig{})), url: server.URL}
	w.self = w.home.Spawn()
	w.service, err = sessions.New(sessions.Config{Store: w.store, Instances: memory.As(w.home, w.self)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.service.Close() })
	return w
}

// scrape is what a server that scrapes gets: the value of each series.
func (w *world) scrape() map[string]string {
	w.Helper()
	resp, err := http.Get(w.url)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		w.Fatalf("scrape: %s, %v", resp.Status, err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(line, " "); i > 0 && !strings.HasPrefix(line, "#") {
			out[line[:i]] = line[i+1:]
		}
	}
	return out
}

func (w *world) want(series, value string) {
	w.Helper()
	if got, ok := w.scrape()[series]; !ok || got != value {
		w.Errorf("%s is %q (there: %v), want %s", series, got, ok, value)
	}
}

func (w *world) turn(name, id string) *sessions.Turn {
	w.Helper()
	h, err := w.service.Open(context.Background(), name)
	if err != nil {
		w.Fatal(err)
	}
	t, err := h.Begin(context.Background(), sessions.Start{ID: id, Invocation: "request"})
	if err != nil {
		w.Fatal(err)
	}
	return t
}

// TestAllSeriesFromTheBeginning pins that everything is there with zero, and that nothing which happens makes a series.
func TestAllSeriesFromTheBeginning(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.scrape()
	if len(before) == 0 {
		t.Fatal("nothing to scrape")
	}
	for series, value := range before {
		if value != "0" {
			t.Errorf("%s is %s before anything happened", series, value)
		}
	}
	for _, workload := range []string{"chat", "oncall", "undeclared"} {
		for _, o := range resume.Outcomes() {
			if _, ok := before[fmt.Sprintf("mulligan_autoresume_total{outcome=%q,workload=%q}", o, workload)]; !ok {
				t.Errorf("no series for outcome %s of %s", o, workload)
			}
		}
	}
	ctx := context.Background()
	for _, name := range []string{"chat-1", "oncall-1", "session-4711", "x"} {
		if _, _, err := w.service.Pause(ctx, name, "", nil); err != nil {
			t.Fatal(err)
		}
		if err := w.service.Abort(ctx, name, ""); err != nil {
			t.Fatal(err)
		}
		w.m.AutoResume(name, "made_up")
		w.m.Effect(name, "made_up")
	}
	w.m.AutoResume("oncall", resume.SkippedAmbiguous)
	w.m.MarkFailed()
	if err := w.m.Survey(ctx, w.service); err != nil {
		t.Fatal(err)
	}
	after := w.scrape()
	for series := range after {
		if _, ok := before[series]; !ok {
			t.Errorf("%s was made by what happened", series)
		}
		if strings.Contains(series, "4711") || strings.Contains(series, "made_up") {
			t.Errorf("%s has a label that a caller made up", series)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d series before, %d after", len(before), len(after))
	}
	w.want(`mulligan_autoresume_total{outcome="skipped_ambiguous",workload="oncall"}`, "1")
	w.want(`mulligan_autoresume_total{outcome="error",workload="undeclared"}`, "4")
	w.want("mulligan_drain_mark_failures_total", "1")
	w.want(`mulligan_session_aborts_total{workload="undeclared"}`, "2")
	w.want(`mulligan_sessions{state="aborted",workload="chat"}`, "1")
	// Four resumes, four calls, two pauses, two aborts and two sessions in the survey.
	w.want("mulligan_undeclared_workload_total", "14")
}

func TestNamesAndHelp(t *testing.T) {
	t.Parallel()
	registry := prom.NewPedanticRegistry()
	if _, err := prometheus.New(prometheus.Config{Registerer: registry, Workloads: []string{"chat"}}); err != nil {
		t.Fatal(err)
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("problems %v, error %v", problems, err)
	}
}

// TestStore holds the wrapped store to all that is promised of a store.
func TestStore(t *testing.T) {
	t.Parallel()
	m, err := prometheus.New(prometheus.Config{Registerer: prom.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	sessiontest.Run(t, func(*testing.T) session.Store { return m.Store(memory.NewSessions(memory.SessionsConfig{})) },
		sessiontest.Sheet{Watches: true, Leases: true, Another: func(_ *testing.T, s session.Store) session.Store { return s }})
}

// TestPowers pins that a wrapped store can what the store can, and no more: a service asks for the powers.
func TestPowers(t *testing.T) {
	t.Parallel()
	m, err := prometheus.New(prometheus.Config{Registerer: prom.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	all := memory.NewSessions(memory.SessionsConfig{})
	for _, c := range []struct {
		store           session.Store
		watches, leases bool
	}{
		{all, true, true},
		{struct {
			session.Store
			session.Watcher
		}{all, all}, true, false},
		{struct {
			session.Store
			session.Leaser
		}{all, all}, false, true},
		{struct{ session.Store }{all}, false, false},
	} {
		s := m.Store(c.store)
		_, watches := s.(session.Watcher)
		_, leases := s.(session.Leaser)
		if watches != c.watches || leases != c.leases {
			t.Errorf("watches %v, leases %v; want %v, %v", watches, leases, c.watches, c.leases)
		}
	}
}

// slow is a store whose appends end as they are told to.
type slow struct {
	session.Store
	err error
}

func (s *slow) Append(ctx context.Context, name string, batch []session.Draft) (session.Receipt, error) {
	time.Sleep(2 * time.Millisecond)
	if s.err != nil {
		return session.Receipt{}, s.err
	}
	return s.Store.Append(ctx, name, batch)
}

func TestAppendsAreMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	under := &slow{Store: memory.NewSessions(memory.SessionsConfig{})}
	store := w.m.Store(under)
	for _, under.err = range []error{nil, fmt.Errorf("cut off: %w", session.ErrOutcomeUnknown), errors.New("disk full")} {
		store.Append(context.Background(), "chat-1", []session.Draft{session.NewAbort(now(), sessions.NewID(), "")})
	}
	for _, outcome := range []string{"done", "unknown", "error"} {
		w.want(fmt.Sprintf(`mulligan_session_append_duration_seconds_count{outcome=%q}`, outcome), "1")
		w.want(fmt.Sprintf(`mulligan_session_append_duration_seconds_bucket{outcome=%q,le="0.001"}`, outcome), "0")
	}
	w.want(`mulligan_session_aborts_total{workload="chat"}`, "1")
}

func now() stamp.Time { return stamp.Wall(time.Now(), 0) }

// TestPausesCountOnce pins that neither an extension nor the same event again is a pause, nor one that was refused.
func TestPausesCountOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	p, _, err := w.service.NewPause("chat-1", "deploy", nil)
	if err != nil {
		t.Fatal(err)
	}
	gate := session.NewGate(now(), p)
	for range 3 {
		if _, err := w.service.Append(ctx, "chat-1", gate); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.service.Pause(ctx, "chat-1", "deploy", json.RawMessage(`"another"`)); err == nil {
		t.Fatal("two questions under one id")
	}
	if _, err := w.service.Extend(ctx, "chat-1", "deploy"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.service.Extend(ctx, "chat-1", "absent"); err == nil {
		t.Fatal("a pause that is not there was extended")
	}
	w.want(`mulligan_session_pauses_total{kind="gate",workload="chat"}`, "1")
	turn := w.turn("oncall-1", "t")
	if p, _, err = w.service.NewPause("oncall-1", "scale", nil); err != nil {
		t.Fatal(err)
	}
	if err := turn.Park(ctx, p); err != nil {
		t.Fatal(err)
	}
	w.want(`mulligan_session_pauses_total{kind="park",workload="oncall"}`, "1")
}

// TestEffects takes the real guard through each decision.
func TestEffects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	turn := w.turn("oncall-1", "one")
	guard := func(turn *sessions.Turn) prometheus.Doer {
		g, err := effect.New(effect.Config{Turn: turn, Tools: effect.Tools{"read": session.ReadOnly}, Now: now})
		if err != nil {
			t.Fatal(err)
		}
		return w.m.Effects("oncall", g)
	}
	g := guard(turn)
	fine := func(context.Context) (effect.Result, error) {
		return effect.Result{Value: json.RawMessage("1")}, nil
	}
	bad := func(err error) func(context.Context) (effect.Result, error) {
		return func(context.Context) (effect.Result, error) { return effect.Result{}, err }
	}
	call := func(id string) effect.Call { return effect.Call{ID: id, Tool: "scale"} }
	g.Do(ctx, effect.Call{ID: "r", Tool: "read"}, fine)
	g.Do(ctx, call("a"), fine)
	g.Do(ctx, call("a"), fine)
	g.Do(ctx, effect.Call{ID: "a", Tool: "other"}, fine)
	g.Do(ctx, call("n"), bad(fmt.Errorf("refused: %w", effect.NotApplied)))
	g.Do(ctx, call("d"), bad(errors.New("cut off")))
	g.Do(ctx, call("d"), fine)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		g.Do(ctx, call("p"), func(context.Context) (effect.Result, error) { panic("tool") })
	}()
	gone, cancel := context.WithCancel(ctx)
	cancel()
	g.Do(gone, call("c"), fine)
	if err := turn.End(ctx, session.TurnEnded{End: session.EndFailed}); err != nil {
		t.Fatal(err)
	}
	g.Do(ctx, call("z"), fine) // its turn is over
	count := func(d prometheus.Decision, n string) {
		t.Helper()
		w.want(fmt.Sprintf(`mulligan_effects_total{decision=%q,workload="oncall"}`, d), n)
	}
	count(prometheus.Ran, "2")
	count(prometheus.Replayed, "1")
	count(prometheus.KeyConflict, "1")
	count(prometheus.NotApplied, "1")
	count(prometheus.Dangling, "2")
	count(prometheus.InProgress, "1")
	count(prometheus.Failed, "1")
	count(prometheus.Refused, "1")
}

// TestSurvey counts what waits for a person, and keeps what it had when a survey fails.
func TestSurvey(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	turn := w.turn("oncall-1", "t")
	g, err := effect.New(effect.Config{Turn: turn, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.Begin(ctx, effect.Call{ID: "1", Tool: "scale"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.service.Pause(ctx, "chat-1", "deploy", nil); err != nil {
		t.Fatal(err)
	}
	// Another process looks: to it the owner of the call is dead.
	w.home.Kill(w.self)
	other, err := sessions.New(sessions.Config{Store: w.store, Instances: memory.As(w.home, w.home.Spawn())})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := w.m.Survey(ctx, other); err != nil {
		t.Fatal(err)
	}
	w.want(`mulligan_sessions_needing_operator{need="resolve",workload="oncall"}`, "1")
	w.want(`mulligan_sessions_needing_operator{need="answer",workload="chat"}`, "1")
	w.want(`mulligan_sessions{state="interrupted",workload="oncall"}`, "1")
	at := w.scrape()["mulligan_sessions_surveyed_timestamp_seconds"]
	if at == "0" {
		t.Error("the survey has no time")
	}
	if err := other.Answer(ctx, "chat-1", session.Answer{Interrupt: "deploy"}); err != nil {
		t.Fatal(err)
	}
	if err := w.m.Survey(ctx, failing{}); err == nil {
		t.Error("a survey that could not read ended well")
	}
	w.want(`mulligan_sessions_needing_operator{need="answer",workload="chat"}`, "1")
	w.want("mulligan_sessions_surveyed_timestamp_seconds", at)
	if err := w.m.Survey(ctx, other); err != nil {
		t.Fatal(err)
	}
	w.want(`mulligan_sessions_needing_operator{need="answer",workload="chat"}`, "0")
	w.want(`mulligan_sessions_needing_operator{need="repair",workload="chat"}`, "0")
	if err := w.m.Survey(ctx, holey{other}); err != nil {
		t.Errorf("a survey with one session that cannot be read: %v", err)
	}
	w.want(`mulligan_sessions_needing_operator{need="repair",workload="chat"}`, "1")
	w.want(`mulligan_sessions_needing_operator{need="resolve",workload="oncall"}`, "1")
}

// holey is a list in which one session cannot be read.
type holey struct{ prometheus.Lister }

func (h holey) List(ctx context.Context, after string, limit int) ([]session.Status, error) {
	page, err := h.Lister.List(ctx, after, limit)
	if err == nil && after < "chat-0" {
		err = &session.PageError{Sessions: []*session.UnreadableError{{Session: "chat-0", Err: errors.New("damaged")}}}
	}
	return page, err
}

// turning is a store whose one session is another at each survey.
type turning struct{ n int }

func (l *turning) List(_ context.Context, after string, _ int) ([]session.Status, error) {
	if after != "" {
		return nil, nil
	}
	l.n++
	return []session.Status{{Head: session.Head{Session: []string{"chat-1", "oncall-1"}[l.n%2]}, Headline: session.Idle}}, nil
}

// TestScrapeBesideASurvey holds that a scrape never sees parts of two surveys.
func TestScrapeBesideASurvey(t *testing.T) {
	t.Parallel()
	registry := prom.NewRegistry()
	m, err := prometheus.New(prometheus.Config{Registerer: registry, Workloads: []string{"chat", "oncall"}, Workload: workloadOf})
	if err != nil {
		t.Fatal(err)
	}
	list := &turning{}
	if err := m.Survey(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			if err := m.Survey(context.Background(), list); err != nil {
				ended <- err
				return
			}
			runtime.Gosched()
		}
	}()
	for range 200 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, f := range families {
			if f.GetName() == "mulligan_sessions" {
				for _, s := range f.GetMetric() {
					sum += s.GetGauge().GetValue()
				}
			}
		}
		if sum != 1 {
			t.Errorf("a scrape sees %v sessions of one", sum)
			break
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

type failing struct{}

func (failing) List(context.Context, string, int) ([]session.Status, error) {
	return nil, errors.New("the server is away")
}

func TestConfigProblems(t *testing.T) {
	t.Parallel()
	_, err := prometheus.New(prometheus.Config{Workloads: []string{"a", "a", "", "undeclared", strings.Repeat("x", 65)}})
	if err == nil {
		t.Fatal("a config with five problems was taken")
	}
	for _, want := range []string{"Registerer is missing", `"a" is declared twice`, `workload "": want`, "nobody declared", `"xxx`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
	many := make([]string, prometheus.MaxWorkloads+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	if _, err := prometheus.New(prometheus.Config{Registerer: prom.NewRegistry(), Workloads: many}); err == nil {
		t.Error("more workloads than there may be were taken")
	}
	// A second one in a registry is refused and leaves the first whole; after Close there is room.
	registry := prom.NewRegistry()
	first, err := prometheus.New(prometheus.Config{Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prometheus.New(prometheus.Config{Registerer: registry}); err == nil {
		t.Error("two in one registry")
	}
	if n, err := testutil.GatherAndCount(registry, "mulligan_autoresume_total"); err != nil || n != len(resume.Outcomes()) {
		t.Errorf("after the refusal %d series, %v", n, err)
	}
	first.Close()
	if _, err := prometheus.New(prometheus.Config{Registerer: registry}); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

// TestAlertsNameRealSeries reads every expression of the page: a metric, a label or a value that is not there would make
// an alert that never fires.
func TestAlertsNameRealSeries(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	there := newWorld(t).scrape()
	var names []string
	for series := range there {
		name, _, _ := strings.Cut(series, "{")
		names = append(names, name)
	}
	seen := map[string]bool{}
	for _, use := range regexp.MustCompile(`(mulligan_[a-z_]+)(?:\{([^}]*)\})?`).FindAllStringSubmatch(strings.ReplaceAll(string(page), `\|`, "|"), -1) {
		seen[use[1]] = true
		if !slices.Contains(names, use[1]) {
			t.Errorf("there is no metric %s", use[1])
		}
		for _, match := range regexp.MustCompile(`([a-z]+)=~?"([^"]*)"`).FindAllStringSubmatch(use[2], -1) {
			for value := range strings.SplitSeq(match[2], "|") {
				if !slices.ContainsFunc(slices.Collect(keys(there)), func(s string) bool {
					return strings.HasPrefix(s, use[1]+"{") && strings.Contains(s, fmt.Sprintf("%s=%q", match[1], value))
				}) {
					t.Errorf("%s never has %s=%q", use[1], match[1], value)
				}
			}
		}
	}
	for _, name := range names {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		if !slices.ContainsFunc(slices.Collect(keys(seen)), func(s string) bool { return strings.HasPrefix(s, base) }) {
			t.Errorf("the page says nothing of %s", base)
		}
	}
}

func keys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

func ExampleNew() {
	registry := prom.NewRegistry()
	m, err := prometheus.New(prometheus.Config{Registerer: registry, Workloads: []string{"oncall"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	store := m.Store(memory.NewSessions(memory.SessionsConfig{}))
	now := stamp.Wall(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), 0)
	store.Append(context.Background(), "incident-7", []session.Draft{session.NewAbort(now, "event-1", "enough")})

	err = testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP mulligan_session_aborts_total Sessions that this process aborted.
# TYPE mulligan_session_aborts_total counter
mulligan_session_aborts_total{workload="oncall"} 1
mulligan_session_aborts_total{workload="undeclared"} 0
`), "mulligan_session_aborts_total")
	fmt.Println(err)
	// Output: <nil>
}

// A guard that counts stands where the guard stood.
func ExampleDoer() {
	m, err := prometheus.New(prometheus.Config{Registerer: prom.NewRegistry(), Workloads: []string{"oncall"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := m.Effects("oncall", always{})
	result, err := tools.Do(context.Background(), effect.Call{ID: "1", Tool: "scale"}, nil)
	fmt.Println(result.Replayed, err)
	// Output: true <nil>
}

type always struct{}

func (always) Do(context.Context, effect.Call, func(context.Context) (effect.Result, error)) (effect.Result, error) {
	return effect.Result{Replayed: true}, nil
}

// ExampleLister shows a survey over sessions that a host keeps elsewhere.
func ExampleLister() {
	m, err := prometheus.New(prometheus.Config{Registerer: prom.NewRegistry()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var none prometheus.Lister = noSessions{}
	fmt.Println(m.Survey(context.Background(), none))
	// Output: <nil>
}

type noSessions struct{}

func (noSessions) List(context.Context, string, int) ([]session.Status, error) { return nil, nil }
