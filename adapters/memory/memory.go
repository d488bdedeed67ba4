// Package memory keeps everything that Mulligan keeps, in memory: for tests, and for trying the library inside a
// program before there is a state folder. It forgets all of it when the process ends, so nothing here survives a crash,
// and no other process sees it.
//
// Begin with [New]; the methods of [Home] are the stores, the same as those of adapters/files. Instances are dead once
// they were told so with [Home.Kill]. The conformance suite of ledger/ledgertest holds for both packages.
package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// Config is how a home is made.
type Config struct {
	// Now is the clock of the stores. Nil means the machine's.
	Now func() stamp.Time
}

// Home is the stores of one host. It is safe for concurrent use.
type Home struct {
	now func() stamp.Time
	ids atomic.Int64
	// mu has a lock for each store: a function that one of them calls may use the others, as it may on a disk.
	mu struct{ records, answers, rows, state, evidence, reports, notes, runs, writer, life sync.Mutex }

	records  *table[ledger.Key, ledger.Record]
	answers  *table[string, ledger.Answer]
	rows     *table[string, journal.Row]
	runs     *table[string, run.Run]
	names    map[[2]string]string
	notes    *table[string, doorbell.Note]
	watchers map[chan<- struct{}]int
	state    storm.State
	evidence map[ledger.Key]map[string][]byte
	reports  map[string]map[string][]byte
	self     ledger.Instance
	writer   writer
	life     map[string]ledger.Liveness
}

// New is an empty home.
func New(c Config) *Home {
	if c.Now == nil {
		c.Now = host.Now
	}
	h := &Home{
		now:      c.Now,
		records:  newTable[ledger.Key, ledger.Record](),
		answers:  newTable[string, ledger.Answer](),
		rows:     newTable[string, journal.Row](),
		runs:     newTable[string, run.Run](),
		names:    map[[2]string]string{},
		notes:    newTable[string, doorbell.Note](),
		watchers: map[chan<- struct{}]int{},
		evidence: map[ledger.Key]map[string][]byte{},
		reports:  map[string]map[string][]byte{},
		life:     map[string]ledger.Liveness{},
		writer:   writer{holders: map[int]holder{}},
	}
	h.self = h.Spawn()
	return h
}

// Ledger is the ledger, which also has the power ledger.Newest.
func (h *Home) Ledger() ledger.Store { return (*records)(h) }

// Answers is the log of answers.
func (h *Home) Answers() ledger.Answers { return (*answers)(h) }

// Instances tells which processes live; its Self is this home's own.
func (h *Home) Instances() ledger.Instances { return As(h, h.self) }

// Doorbell is where dying runs leave their notes.
func (h *Home) Doorbell() doorbell.Box { return (*box)(h) }

// Breaker is the state of the storm breaker and the pause.
func (h *Home) Breaker() storm.Store { return (*breaker)(h) }

// Runs is the registry of runs and names.
func (h *Home) Runs() run.Store { return (*runs)(h) }

// Updates is the update journal.
func (h *Home) Updates() journal.Store { return (*updates)(h) }

// Writer is the writer lock of the managed trees.
func (h *Home) Writer() journal.Lock { return (*lock)(h) }

// Evidence keeps what decisions were based on.
func (h *Home) Evidence() ledger.Evidence { return (*evidence)(h) }

// Reports keeps the rendered reports of episodes.
func (h *Home) Reports() ledger.Reports { return (*reports)(h) }

// table is a map that remembers the order in which keys came and changed. Values are kept encoded, as a store on disk
// has them: nobody can alter what is stored by keeping a part of what he stored or read.
type table[K comparable, V any] struct {
	last  map[K][]byte
	order []K // as they came
	moved []K // as they changed last, newest at the end
}

func newTable[K comparable, V any]() *table[K, V] { return &table[K, V]{last: map[K][]byte{}} }

func (t *table[K, V]) get(k K) (v V, ok bool, err error) {
	b, ok := t.last[k]
	if !ok {
		return v, false, nil
	}
	return v, true, json.Unmarshal(b, &v)
}

// put stores v and returns it as a reader will see it.
func (t *table[K, V]) put(k K, v V) (out V, err error) {
	b, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, err
	}
	if _, ok := t.last[k]; !ok {
		t.order = append(t.order, k)
	} else if i := slices.Index(t.moved, k); i >= 0 {
		t.moved = slices.Delete(t.moved, i, i+1)
	}
	t.moved = append(t.moved, k)
	t.last[k] = b
	return out, nil
}

func (t *table[K, V]) drop(k K) {
	delete(t.last, k)
	gone := func(o K) bool { return o == k }
	t.order, t.moved = slices.DeleteFunc(t.order, gone), slices.DeleteFunc(t.moved, gone)
}

// all yields the values in the order of keys, as they are when it is called.
func all[K comparable, V any](ctx context.Context, mu *sync.Mutex, t *table[K, V]) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		mu.Lock()
		vs := make([]V, 0, len(t.order))
		errs := make([]error, 0, len(t.order))
		for _, k := range t.order {
			v, _, err := t.get(k)
			vs, errs = append(vs, v), append(errs, err)
		}
		mu.Unlock()
		for i, v := range vs {
			if ctx.Err() != nil {
				var zero V
				yield(zero, context.Cause(ctx))
				return
			}
			if !yield(v, errs[i]) {
				return
			}
		}
	}
}

type records Home

func (s *records) Create(ctx context.Context, r ledger.Record) error {
	s.mu.records.Lock()
	defer s.mu.records.Unlock()
	switch _, ok, _ := s.records.get(r.Key); {
	case ok:
		return fmt.Errorf("claim %s: %w", r.Key, ledger.ErrExists)
	case ctx.Err() != nil:
		return fmt.Errorf("claim %s: %w", r.Key, context.Cause(ctx))
	case r.Revision != 1 || r.Schema != ledger.Schema:
		return fmt.Errorf("claim %s: revision %d and schema %d, want a record made by ledger.New", r.Key, r.Revision, r.Schema)
	}
	_, err := s.records.put(r.Key, r)
	return err
}

func (s *records) Get(_ context.Context, k ledger.Key) (ledger.Record, error) {
	s.mu.records.Lock()
	defer s.mu.records.Unlock()
	r, ok, err := s.records.get(k)
	if !ok {
		err = fmt.Errorf("record %s: %w", k, ledger.ErrNotFound)
	}
	return r, err
}

func (s *records) Update(ctx context.Context, k ledger.Key, f func(ledger.Record, stamp.Time) (ledger.Record, error)) (ledger.Record, error) {
	s.mu.records.Lock()
	defer s.mu.records.Unlock()
	cur, ok, err := s.records.get(k)
	switch {
	case !ok:
		err = ledger.ErrNotFound
	case err == nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	}
	var next ledger.Record
	if err == nil {
		next, err = f(cur, s.now())
	}
	switch {
	case err != nil:
	case next.Revision == cur.Revision:
		// Decoded again: f had its hands on cur.
		cur, _, err = s.records.get(k)
		return cur, err
	case next.Key != k, next.Revision < cur.Revision, next.Schema != ledger.Schema:
		err = fmt.Errorf("the change makes revision %d of %s from revision %d of %s", next.Revision, next.Key, cur.Revision, k)
	default:
		next, err = s.records.put(k, next)
	}
	if err != nil {
		return ledger.Record{}, fmt.Errorf("update %s: %w", k, err)
	}
	return next, nil
}

func (s *records) List(ctx context.Context) iter.Seq2[ledger.Record, error] {
	return all(ctx, &s.mu.records, s.records)
}

// Newest implements ledger.Newest.
func (s *records) Newest(_ context.Context, n int) ([]ledger.Record, error) {
	s.mu.records.Lock()
	defer s.mu.records.Unlock()
	var out []ledger.Record
	for _, k := range slices.Backward(s.records.moved) {
		if len(out) >= n {
			break
		}
		r, _, err := s.records.get(k)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

type answers Home

func (s *answers) Append(_ context.Context, a ledger.Answer) error {
	s.mu.answers.Lock()
	defer s.mu.answers.Unlock()
	a.Schema = max(a.Schema, 1)
	_, err := s.answers.put(a.Run, a)
	return err
}

func (s *answers) Answer(_ context.Context, run string) (ledger.Answer, bool, error) {
	s.mu.answers.Lock()
	defer s.mu.answers.Unlock()
	return s.answers.get(run)
}

func (s *answers) Answers(ctx context.Context) iter.Seq2[ledger.Answer, error] {
	return all(ctx, &s.mu.answers, s.answers)
}

type updates Home

func (s *updates) Append(_ context.Context, r journal.Row) error {
	s.mu.rows.Lock()
	defer s.mu.rows.Unlock()
	r.Schema = max(r.Schema, 1)
	_, err := s.rows.put(r.ID, r)
	return err
}

func (s *updates) Rows(ctx context.Context) iter.Seq2[journal.Row, error] {
	return all(ctx, &s.mu.rows, s.rows)
}

type breaker Home

func (s *breaker) State(context.Context) (storm.State, error) {
	s.mu.state.Lock()
	defer s.mu.state.Unlock()
	return copied(s.state)
}

func (s *breaker) UpdateState(_ context.Context, f func(storm.State, stamp.Time) (storm.State, error)) (storm.State, error) {
	s.mu.state.Lock()
	defer s.mu.state.Unlock()
	cur, err := copied(s.state)
	if err != nil {
		return storm.State{}, err
	}
	next, err := f(cur, s.now())
	if err != nil {
		return storm.State{}, fmt.Errorf("change the breaker's state: %w", err)
	}
	if next.Revision != s.state.Revision {
		next.Schema = storm.Schema
		if s.state, err = copied(next); err != nil {
			return storm.State{}, err
		}
	}
	return copied(s.state)
}

func copied[V any](v V) (out V, err error) {
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &out)
	}
	return out, err
}

type evidence Home

func (s *evidence) Put(_ context.Context, k ledger.Key, files map[string][]byte) (string, error) {
	s.mu.evidence.Lock()
	defer s.mu.evidence.Unlock()
	at := path.Join("evidence", k.String())
	if have, ok := s.evidence[k]; ok {
		if maps.EqualFunc(have, files, bytes.Equal) {
			return at, nil
		}
		return at, fmt.Errorf("put evidence of %s: %w", k, ledger.ErrExists)
	}
	s.evidence[k] = cloned(files)
	return at, nil
}

func (s *evidence) Get(_ context.Context, k ledger.Key) (map[string][]byte, error) {
	s.mu.evidence.Lock()
	defer s.mu.evidence.Unlock()
	if files, ok := s.evidence[k]; ok {
		return cloned(files), nil
	}
	return nil, fmt.Errorf("evidence of %s: %w", k, ledger.ErrNotFound)
}

func cloned(files map[string][]byte) map[string][]byte {
	out := make(map[string][]byte, len(files))
	for n, b := range files {
		out[n] = slices.Clone(b)
	}
	return out
}

type reports Home

func (s *reports) PutReport(_ context.Context, episode string, files map[string][]byte) error {
	s.mu.reports.Lock()
	defer s.mu.reports.Unlock()
	if s.reports[episode] == nil {
		s.reports[episode] = map[string][]byte{}
	}
	maps.Copy(s.reports[episode], cloned(files))
	return nil
}

func (s *reports) GetReport(_ context.Context, episode string) (map[string][]byte, error) {
	s.mu.reports.Lock()
	defer s.mu.reports.Unlock()
	if len(s.reports[episode]) == 0 {
		return nil, fmt.Errorf("report of episode %s: %w", episode, ledger.ErrNotFound)
	}
	return cloned(s.reports[episode]), nil
}

type box Home

func (s *box) Ring(_ context.Context, n doorbell.Note) error {
	n.Schema = max(n.Schema, 1)
	if err := n.Validate(); err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	s.mu.notes.Lock()
	defer s.mu.notes.Unlock()
	if _, err := s.notes.put(strconv.FormatInt(s.ids.Add(1), 10), n); err != nil {
		return fmt.Errorf("ring for run %s: %w", n.Run, err)
	}
	for w := range s.watchers {
		send(w)
	}
	return nil
}

func (s *box) Pending(context.Context) ([]doorbell.Item, error) {
	s.mu.notes.Lock()
	defer s.mu.notes.Unlock()
	items := make([]doorbell.Item, 0, len(s.notes.order))
	for _, id := range s.notes.order {
		n, _, err := s.notes.get(id)
		items = append(items, doorbell.Item{ID: id, Note: n, Err: err})
	}
	return items, nil
}

func (s *box) Remove(_ context.Context, id string) error {
	s.mu.notes.Lock()
	defer s.mu.notes.Unlock()
	s.notes.drop(id)
	return nil
}

func (s *box) Watch(ctx context.Context, wake chan<- struct{}) error {
	s.mu.notes.Lock()
	s.watchers[wake]++
	s.mu.notes.Unlock()
	send(wake) // what arrived before
	<-ctx.Done()
	s.mu.notes.Lock()
	if s.watchers[wake]--; s.watchers[wake] == 0 {
		delete(s.watchers, wake)
	}
	s.mu.notes.Unlock()
	return nil
}

func send(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

type runs Home

func (s *runs) Start(ctx context.Context, r run.Run, allow func(*run.Run) error) error {
	if r.ID == "" || r.Name == "" {
		return fmt.Errorf("start run %q: it needs an id and a name, and has the name %q", r.ID, r.Name)
	}
	s.mu.runs.Lock()
	defer s.mu.runs.Unlock()
	fail := func(err error) error { return fmt.Errorf("start run %s as %q: %w", r.ID, r.Name, err) }
	if _, ok := s.runs.last[r.ID]; ok {
		return fail(run.ErrExists)
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	at := [2]string{r.Project, r.Name}
	var holder *run.Run
	if id, ok := s.names[at]; ok {
		cur, _, err := s.runs.get(id)
		if err != nil {
			return fail(err)
		}
		holder = &cur
	}
	if err := allow(holder); err != nil {
		return fail(err)
	}
	r.Schema, r.Revision = max(r.Schema, run.Schema), 1
	if _, err := s.runs.put(r.ID, r); err != nil {
		return fail(err)
	}
	s.names[at] = r.ID
	return nil
}

func (s *runs) Get(_ context.Context, id string) (run.Run, error) {
	s.mu.runs.Lock()
	defer s.mu.runs.Unlock()
	r, ok, err := s.runs.get(id)
	if !ok {
		err = fmt.Errorf("run %s: %w", id, run.ErrNotFound)
	}
	return r, err
}

func (s *runs) Holder(_ context.Context, project, name string) (run.Run, error) {
	s.mu.runs.Lock()
	defer s.mu.runs.Unlock()
	r, ok, err := s.runs.get(s.names[[2]string{project, name}])
	if !ok {
		err = fmt.Errorf("name %q of project %q: %w", name, project, run.ErrNotFound)
	}
	return r, err
}

// Update implements run.Store. The revision is counted here, whatever f makes of it.
func (s *runs) Update(_ context.Context, id string, f func(run.Run) (run.Run, error)) (run.Run, error) {
	s.mu.runs.Lock()
	defer s.mu.runs.Unlock()
	cur, ok, err := s.runs.get(id)
	if !ok {
		err = run.ErrNotFound
	}
	var next run.Run
	if err == nil {
		next, err = f(cur)
	}
	if err == nil && (next.ID != id || next.Project != cur.Project || next.Name != cur.Name) {
		err = errors.New("the change gives the run another id, project or name")
	}
	if err == nil {
		next.Revision = cur.Revision + 1
		next, err = s.runs.put(id, next)
	}
	if err != nil {
		return run.Run{}, fmt.Errorf("update run %s: %w", id, err)
	}
	return next, nil
}

func (s *runs) List(ctx context.Context) iter.Seq2[run.Run, error] {
	return all(ctx, &s.mu.runs, s.runs)
}
