package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
)

// traceback is what an agent leaves when the update renamed what it asks for.
func (w *world) traceback() []byte {
	return fmt.Appendf(nil, `Traceback (most recent call last):
  File "<frozen runpy>", line 198, in _run_module_as_main
  File "<frozen runpy>", line 88, in _run_code
  File "%[1]s/acme/agent.py", line 36, in <module>
    main()
  File "%[1]s/acme/agent.py", line 32, in main
    do(sys.argv[1], step)
  File "%[1]s/acme/agent.py", line 27, in do
    getattr(jobs, what)()
  File "%[1]s/acme/jobs.py", line 8, in encode
    from acme.wire import Frame
ImportError: cannot import name 'Frame' from 'acme.wire' (%[1]s/acme/wire.py)
`, w.repo.Dir)
}

// fallen are runs of the host's own, as PROJECT and NAME, that one update broke: registered before it, and rung for after
// it. Their replacements are real programs, which count themselves under starts-I.
func (w *world) fallen(names ...[2]string) []run.Run {
	w.t.Helper()
	w.branch("v2", renamed...)
	var own []*managed.Run
	for i, n := range names {
		spec := w.spec(fmt.Sprint("fallen-", i), fmt.Sprint("count:starts-", i))
		spec.Project, spec.Name = n[0], n[1]
		r, err := w.runs.Start(w.ctx, spec)
		if err != nil {
			w.t.Fatalf("%q: %v", n, err)
		}
		own = append(own, r)
	}
	w.update("v2")
	var dead []run.Run
	for i, r := range own {
		if err := r.Fail(w.ctx, managed.Failure{Text: w.traceback(), Exit: classify.Exit{Code: 1}}); err != nil {
			w.t.Fatalf("%q: %v", names[i], err)
		}
		dead = append(dead, r.Registered())
	}
	return dead
}

// plain are n names that nobody would think about.
func plain(n int) (names [][2]string) {
	for i := range n {
		names = append(names, [2]string{project, fmt.Sprint("agent-", i)})
	}
	return names
}

// look is a pass in which not everything can be dealt with.
func (w *world) look() restart.Result {
	w.t.Helper()
	res, err := w.healer.Pass(w.ctx, everything)
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// lookUntil is passUntil where not everything can be dealt with.
func (w *world) lookUntil(what string, ok func() bool) {
	w.t.Helper()
	w.until(what, func() bool {
		w.look()
		return ok()
	})
}

// healed reports whether a run was put back and its replacement ended well.
func (w *world) healed(r run.Run) bool {
	w.t.Helper()
	rec, err := w.home.Ledger().Get(w.ctx, r.Key())
	return err == nil && rec.Reason == "replacement_ok"
}

// spoil is one way in which a file can be unusable. Root reads whatever its mode is, so what cannot be opened is a folder,
// a pipe or a symlink.
type spoil struct {
	name string
	do   func(path string, whole []byte) error
	// torn is set where a record looks like a claim that a power cut tore.
	torn bool
}

func put(b string) func(string, []byte) error {
	return func(path string, _ []byte) error { return os.WriteFile(path, []byte(b), 0o600) }
}

var spoils = []spoil{
	{"empty", put(""), true},
	{"cut", func(path string, whole []byte) error {
		whole = bytes.TrimSpace(whole)
		return os.WriteFile(path, whole[:len(whole)/2], 0o600)
	}, true},
	{"no text", put("\x00\xff\xfe{]"), true},
	{"newer", put(`{"schema":2,"sha512":"00","body":{"schema":2},"run":7}`), false},
	{"a folder", func(path string, _ []byte) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, false},
	{"a pipe", func(path string, _ []byte) error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }, false},
	{"a symlink", func(path string, whole []byte) error {
		to := path + ".elsewhere"
		return errors.Join(os.WriteFile(to, whole, 0o600), os.Remove(path), os.Symlink(to, path))
	}, false},
	{"a gigabyte", func(path string, _ []byte) error { return os.Truncate(path, 1<<30) }, false},
}

// spoilAll spoils one file in each way. It returns what lies there afterwards.
func (w *world) spoilAll(paths []string) (after []string) {
	w.t.Helper()
	for i, s := range spoils {
		whole, err := os.ReadFile(paths[i])
		if err == nil {
			err = s.do(paths[i], whole)
		}
		if err != nil {
			w.t.Fatalf("%s: %v", s.name, err)
		}
		after = append(after, lies(paths[i]))
	}
	return after
}

// lies is what lies under a name.
func lies(path string) string {
	st, err := os.Lstat(path)
	if err != nil {
		return err.Error()
	}
	out := fmt.Sprint(st.Mode(), " ", st.ModTime().UnixNano(), " ", st.Size())
	if st.Mode().IsRegular() && st.Size() < 1<<20 {
		b, err := os.ReadFile(path)
		out += fmt.Sprintf(" %x %v", b, err)
	}
	return out
}

func (w *world) file(parts ...string) string {
	return filepath.Join(append([]string{w.home.Dir()}, parts...)...)
}

// rowsOf counts the rows of a kind.
func (w *world) rowsOf(kind string) (n int) {
	for _, r := range w.rows.Rows() {
		if r.Kind == kind {
			n++
		}
	}
	return n
}

// wantErrors wants one outcome with an error for each text, in which it stands.
func wantErrors(t *testing.T, res restart.Result, texts ...string) {
	t.Helper()
	var errs []string
	for _, o := range res.Outcomes {
		if o.Error != "" {
			errs = append(errs, o.Error)
		}
	}
	for _, want := range texts {
		if !slices.ContainsFunc(errs, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("no outcome has an error about %s: %q", want, errs)
		}
	}
	if len(errs) != len(texts) {
		t.Errorf("%d outcomes have an error, want %d: %q", len(errs), len(texts), errs)
	}
}

// TestBadDoorbells: each note that cannot be used is an outcome with an error in every pass, is told once although
// healers come and go, and stays; the death beside them is put back.
func TestBadDoorbells(t *testing.T) {
	t.Parallel()
	rows := &notifytest.Recorder{}
	count := &counter{Notifier: rows}
	w := newWorld(t, options{notifiers: []notify.Notifier{count}})
	w.rows = rows
	dead := w.fallen(plain(1)...)
	var paths []string
	for i := range spoils {
		path := w.file("doorbell", fmt.Sprintf("left by hand %d 🙂", i))
		if err := os.WriteFile(path, []byte(`{"schema":1,"run":"r"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	before := w.spoilAll(paths)
	if err := os.Remove(paths[6] + ".elsewhere"); err != nil { // the symlink leads nowhere: it is no note of its own
		t.Fatal(err)
	}
	w.lookUntil("the sound one to be put back", func() bool { return w.healed(dead[0]) })
	for range 3 {
		other := w.another(options{})
		for range 10 {
			if _, err := other.healer.Pass(w.ctx, everything); err != nil {
				t.Fatal(err)
			}
			w.look()
		}
	}
	wantErrors(t, w.look(), paths...)
	if n := w.rowsOf("unreadable"); n != len(spoils) || w.rows.Toasts() != len(spoils)+1 {
		t.Errorf("%d rows of kind unreadable and %d toasts, want %d and one more for the episode:\n%s", n, w.rows.Toasts(), len(spoils), w.rows.Text())
	}
	for i, p := range paths {
		if lies(p) != before[i] {
			t.Errorf("%s is not what it was: %s", spoils[i].name, lies(p))
		}
		if text := w.rows.Text(); !strings.Contains(text, p) {
			t.Errorf("no row says where %s lies:\n%s", p, text)
		}
	}
	// A note that a person has removed is forgotten: the next of its name is told again.
	if err := os.Remove(paths[0]); err != nil {
		t.Fatal(err)
	}
	w.look()
	if err := os.WriteFile(paths[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	told := count.n.Load()
	w.look()
	w.look()
	if got := count.n.Load() - told; got != 1 {
		t.Errorf("a new note under an old name was told %d times", got)
	}
}

// TestBadRecords: a waiting death whose record is spoiled. What a power cut may have torn, before anything was started,
// is claimed again and put back once; everything else stays closed, as it lies, and is an error in every pass.
func TestBadRecords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	dead := w.fallen(plain(len(spoils) + 1)...)
	w.pass()
	var paths []string
	for _, r := range dead {
		paths = append(paths, w.file("ledger", project+"__"+r.Lineage+".json"))
	}
	before := w.spoilAll(paths)
	w.rewritten = true
	w.clock.forward(hourAndMore)
	w.lookUntil("the sound ones to be put back", func() bool {
		for i, r := range dead {
			if (i == len(spoils) || spoils[i].torn) && !w.healed(r) {
				return false
			}
		}
		return true
	})
	res := w.look()
	for i, s := range spoils {
		if s.torn {
			continue
		}
		if lies(paths[i]) != before[i] || w.times(fmt.Sprint("starts-", i)) != 0 {
			t.Errorf("%s: it was altered (%s) or put back", s.name, lies(paths[i]))
		}
		if !slices.ContainsFunc(res.Outcomes, func(o restart.Outcome) bool { return strings.Contains(o.Error, filepath.Base(paths[i])) }) {
			t.Errorf("%s: no outcome says so: %+v", s.name, res.Outcomes)
		}
	}
	for i := range dead {
		if n := w.times(fmt.Sprint("starts-", i)); n > 1 {
			t.Errorf("%d was put back %d times", i, n)
		}
	}
	closed := 0
	for _, s := range spoils {
		if !s.torn {
			closed++
		}
	}
	if n := w.rowsOf("unreadable"); n != closed {
		t.Errorf("%d rows of kind unreadable, want %d:\n%s", n, closed, w.rows.Text())
	}
}

// TestBadRunFiles: nobody knows what such a run was, so nothing is decided; its doorbell stays and it is told once.
func TestBadRunFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	dead := w.fallen(plain(len(spoils) + 1)...)
	var paths []string
	for _, r := range dead {
		paths = append(paths, w.file("runs", r.ID+".json"))
	}
	before := w.spoilAll(paths)
	w.lookUntil("the sound one to be put back", func() bool { return w.healed(dead[len(spoils)]) })
	for range 5 {
		w.look()
	}
	wantErrors(t, w.look(), paths[:len(spoils)]...)
	if n := w.rowsOf("unreadable"); n != len(spoils) || w.bells() != len(spoils) || w.records() != 1 {
		t.Errorf("%d rows, %d doorbells, %d records, want %d, %[4]d, 1", n, w.bells(), w.records(), len(spoils))
	}
	for i := range spoils {
		if lies(paths[i]) != before[i] {
			t.Errorf("%s: it was altered: %s", spoils[i].name, lies(paths[i]))
		}
	}
}

// TestBadNames: who has the name cannot be told, so the run is not started; nor can the name be taken by hand.
func TestBadNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	dead := w.fallen(plain(len(spoils) + 1)...)
	var paths []string
	for _, r := range dead {
		paths = append(paths, w.file("runs", "names", project+"__"+r.Name+".json"))
	}
	before := w.spoilAll(paths)
	w.lookUntil("the sound one to be put back", func() bool { return w.healed(dead[len(spoils)]) })
	res := w.look()
	for i, s := range spoils {
		if w.times(fmt.Sprint("starts-", i)) != 0 || lies(paths[i]) != before[i] {
			t.Errorf("%s: it was put back, or its name altered: %s", s.name, lies(paths[i]))
		}
		if !slices.ContainsFunc(res.Outcomes, func(o restart.Outcome) bool {
			return o.Run == dead[i].ID && strings.Contains(o.Error, filepath.Base(paths[i]))
		}) {
			t.Errorf("%s: no outcome says so: %+v", s.name, res.Outcomes)
		}
	}
	if w.bells() != len(spoils) {
		t.Errorf("%d doorbells are left, want %d", w.bells(), len(spoils))
	}
}

// TestBadFilesOfAll: state, journal and answers are one file each. While one is spoiled nothing is started on a guess,
// nothing of it is overwritten, and once a person has put it right all goes on.
func TestBadFilesOfAll(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state.json", "updates.jsonl", "answers.jsonl"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options{settings: slow})
			dead := w.fallen(plain(1)...)
			// Something stands in each of the files before it is spoiled.
			w.pause()
			w.resume()
			if err := w.home.Answers().Append(w.ctx, ledger.Answer{Schema: 1, Run: "of another day", Reason: "auth"}); err != nil {
				t.Fatal(err)
			}
			w.clock.forward(hourAndMore)
			path := w.file(name)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			// A line that cannot be read is left out, and the other lines count; a file that is none counts for nothing.
			lines := func(s spoil) bool {
				return strings.HasSuffix(name, ".jsonl") && (s.torn || s.name == "newer" || s.name == "a gigabyte")
			}
			order := slices.SortedStableFunc(slices.Values(spoils), func(a, b spoil) int {
				switch {
				case lines(a) == lines(b):
					return 0
				case lines(a):
					return 1
				}
				return -1
			})
			for _, s := range order {
				if err := s.do(path, whole); err != nil {
					t.Fatal(err)
				}
				before := lies(path)
				res, err := w.healer.Pass(w.ctx, everything)
				said := fmt.Sprint(err)
				for _, o := range res.Outcomes {
					said += o.Error + o.Code
				}
				switch {
				case lines(s):
				case !strings.Contains(said, name) && !strings.Contains(said, "state_unreadable"):
					t.Errorf("%s: the pass says %q", s.name, said)
				case w.times("starts-0") != 0:
					t.Fatalf("%s: it was put back on a guess", s.name)
				}
				if lies(path) != before && !lines(s) {
					t.Errorf("%s: it was altered: %s", s.name, lies(path))
				}
				if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, whole, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			w.passUntil("it to be put back", func() bool { return w.healed(dead[0]) || !w.undecided(dead[0]) })
			if n := w.times("starts-0"); n > 1 {
				t.Errorf("it was put back %d times", n)
			}
			t.Logf("it ended as %s", w.standsRun(dead[0]))
		})
	}
}

// undecided reports whether a death has neither a final record nor an answer.
func (w *world) undecided(r run.Run) bool {
	w.t.Helper()
	rec, err := w.home.Ledger().Get(w.ctx, r.Key())
	_, answered, e := w.home.Answers().Answer(w.ctx, r.ID)
	return !answered && e == nil && (err != nil || !rec.State.Final())
}

func (w *world) standsRun(r run.Run) string {
	w.t.Helper()
	rec, err := w.home.Ledger().Get(w.ctx, r.Key())
	return fmt.Sprint(rec.State, " ", rec.Reason, " ", err)
}

// TestBadInstanceFiles: what proves that a claimer is dead is spoiled. It is not taken for dead on a guess; its lease
// decides, and its death is put back once.
func TestBadInstanceFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	dead := w.fallen(plain(len(spoils))...)
	w.pass()
	var paths []string
	for i, r := range dead {
		other := w.another(options{})
		self := other.home.Instances().Self()
		_, err := w.home.Ledger().Update(w.ctx, r.Key(), func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			return ledger.Apply(cur, ledger.Change{Event: ledger.Claim, Now: now, Actor: self, Lease: time.Minute})
		})
		if err == nil {
			err = other.close()
		}
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, w.file("instances", self.ID))
		whole, err := os.ReadFile(paths[i])
		if err == nil {
			err = spoils[i].do(paths[i], whole)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	w.clock.forward(hourAndMore)
	w.passUntil("all to be put back", func() bool {
		for _, r := range dead {
			if !w.healed(r) {
				return false
			}
		}
		return true
	})
	for i := range dead {
		if n := w.times(fmt.Sprint("starts-", i)); n != 1 {
			t.Errorf("%s: put back %d times", spoils[i].name, n)
		}
	}
}

// TestStrangeNames: whatever a project and a run are called, each has its own record, evidence and name, all of it inside
// the state folder, and each is put back once.
func TestStrangeNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: restart.Settings{Quiescence: rest, StormPerEpisode: 100, StormPer30m: 100}})
	long := strings.Repeat("x", 300)
	names := [][2]string{
		{"a/b", "c/d"}, {"a_b", "c/d"}, {"a_2Fb", "c/d"}, {"a%2Fb", "c/d"}, {"a/b", "c_2Fd"}, {"a__b", "c"}, {"a", "b__c"}, {"a_", "_b"}, {"a", "__b"},
		{"..", ".."}, {".", "."}, {"../..", "../../etc/passwd"}, {"/", "/"}, {" ", "\t"}, {"a\nb", "c\r\nd"}, {"a\x00b", "\x00"},
		{"🙂", "👩\u200d🚀"}, {"\u202e", "é"}, {"\u202e", "e\u0301"}, {long, long}, {long, long + "y"}, {long + "/", long}, {"-rf", "--help"}, {"A", "a"}, {"a", "A"},
		{"CON", "nul."}, {".hidden", ".swap-x"}, {"~", "$(id)"},
	}
	dead := w.fallen(names...)
	w.passUntil("all to be put back", func() bool {
		return !slices.ContainsFunc(dead, func(r run.Run) bool { return !w.healed(r) })
	})
	if n := w.records(); n != len(names) || w.bells() != 0 {
		t.Errorf("%d records and %d doorbells for %d runs", n, w.bells(), len(names))
	}
	for i, r := range dead {
		if n := w.times(fmt.Sprint("starts-", i)); n != 1 {
			t.Errorf("%q was put back %d times", names[i], n)
		}
		h, err := w.home.Runs().Holder(w.ctx, r.Project, r.Name)
		if err != nil || h.Replaces != r.ID {
			t.Errorf("%q is held by %+v, %v", names[i], h.ID, err)
		}
		if files, err := w.home.Evidence().Get(w.ctx, r.Key()); err != nil || len(files["failure.txt"]) == 0 {
			t.Errorf("%q has the evidence %d, %v", names[i], len(files), err)
		}
	}
	for _, r := range w.rows.Rows() {
		if strings.ContainsAny(r.Title, "\n\r\x00\u202e") {
			t.Errorf("a row says %q", r.Title)
		}
	}
	outside, err := os.ReadDir(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range outside {
		if n := e.Name(); !strings.HasPrefix(n, "ws-") && n != "mulligan" && n != "live" && n != "sdk" && n != "state" {
			t.Errorf("%s lies beside the state folder", n)
		}
	}
}
