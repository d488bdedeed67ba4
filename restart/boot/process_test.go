package boot

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/internal/host"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/probe/canary"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Instances are processes: this binary, run again in a role.
const (
	roleVar = "BOOT_TEST_ROLE"
	dirVar  = "BOOT_TEST_DIR"
	argVar  = "BOOT_TEST_ARG"
)

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := roles[role](os.Getenv(dirVar)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// service is all that a host opens.
type service struct {
	home     *files.Home
	log      *sessionlog.Store
	sessions *sessions.Service
}

func open(dir string) (s service, err error) {
	if s.home, err = files.Open(files.Config{Dir: filepath.Join(dir, "home")}); err != nil {
		return s, err
	}
	if s.log, err = sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "log", "sessions")}); err != nil {
		return s, err
	}
	s.sessions, err = sessions.New(sessions.Config{Store: s.log, Instances: s.home.Instances()})
	return s, err
}

func (s service) close() error {
	return errors.Join(s.sessions.Close(), s.log.Close(), s.home.Close())
}

func (s service) keeper(dir string, d Deliverer, fs durable.FS) (*Keeper, error) {
	return New(context.Background(), Config{Dir: filepath.Join(dir, "boot"), Instance: s.home.Instances().Self(), Deliver: d,
		Sessions: s.sessions, Startup: []string{"main", "s1", "s2"}, Notice: noWait, Beat: 10 * time.Millisecond, fs: fs})
}

// work leaves session s1 in a turn of the store's and s2 in one that only the marker knows of.
func work(dir string) (*Keeper, error) {
	s, err := open(dir)
	if err != nil {
		return nil, err
	}
	k, err := s.keeper(dir, &recorder{}, nil)
	if err != nil {
		return nil, err
	}
	h, err := s.sessions.Open(context.Background(), "s1")
	if err != nil {
		return nil, err
	}
	if _, err := h.Begin(context.Background(), sessions.Start{}); err != nil {
		return nil, err
	}
	_, err = k.Busy("s2")
	return k, err
}

var roles = map[string]func(dir string) error{
	"work": func(dir string) error {
		k, err := work(dir)
		if err != nil {
			return err
		}
		fmt.Println("ready", k.Boot().Kind, k.c.Instance.ID)
		select {}
	},
	// next is the instance after that; it may be killed before a numbered operation on its files.
	"next": func(dir string) error {
		n, err := strconv.Atoi(os.Getenv(argVar))
		if err != nil {
			return err
		}
		s, err := open(dir)
		if err != nil {
			return err
		}
		k, err := s.keeper(dir, printer{}, faultfs.Tap(durable.System{}, faultfs.KillAt(n)))
		if err != nil {
			return err
		}
		// A heartbeat is an operation as well, so the number decides, and not the time.
		if err := k.Run(context.Background()); err != nil {
			return err
		}
		if err := errors.Join(k.Close(), s.close()); err != nil {
			return err
		}
		fmt.Println("the end")
		return nil
	},
	// exec becomes another program in the same process, in the middle of a turn.
	"exec": func(dir string) error {
		k, err := work(dir)
		if err != nil {
			return err
		}
		fmt.Println("before", k.Boot().Kind)
		if err := os.Setenv(roleVar, "kind"); err != nil {
			return err
		}
		return syscall.Exec("/proc/self/exe", os.Args, os.Environ())
	},
	"kind": func(dir string) error {
		s, err := open(dir)
		if err != nil {
			return err
		}
		k, err := s.keeper(dir, printer{}, nil)
		if err != nil {
			return err
		}
		fmt.Println("after", k.Boot().Kind)
		return k.Run(context.Background())
	},
	// candidate is a host that opens the live folders as it always does, and is a canary.
	"candidate": func(dir string) error {
		_, home := files.Open(files.Config{Dir: filepath.Join(dir, "home")})
		_, outbox := OpenOutbox(filepath.Join(dir, "boot"))
		_, history := handoff.OpenHistory(filepath.Join(dir, "handoff"))
		_, rows := inbox.New(inbox.Config{Dir: filepath.Join(dir, "inbox")})
		log, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "log", "sessions")})
		if err != nil {
			return err
		}
		own, err := files.Open(files.Config{}) // where its environment sends it
		if err != nil {
			return err
		}
		svc, err := sessions.New(sessions.Config{Store: log, Instances: own.Instances()})
		if err != nil {
			return err
		}
		st, err := svc.Status(context.Background(), "s1")
		if err != nil {
			return err
		}
		_, taken := svc.Open(context.Background(), "s1")
		aborted := svc.Abort(context.Background(), "s1", "by the canary")
		_, appended := log.Append(context.Background(), "s1", []session.Draft{session.NewAbort(svc.Now(), "x", "by the canary")})
		runner, err := resume.New(resume.Config{Sessions: svc, Resumer: nobody{}})
		if err != nil {
			return err
		}
		resumed, err := runner.Pass(context.Background())
		if err != nil {
			return err
		}
		k, err := service{own, log, svc}.keeper(dir, printer{}, nil)
		if err != nil {
			return err
		}
		busy, err := k.Busy("s9")
		if err != nil {
			return err
		}
		if err := errors.Join(busy(), k.Run(context.Background()), k.Close()); err != nil {
			return err
		}
		var said []string
		for _, c := range []struct {
			what string
			ok   bool
		}{
			{"home", errors.Is(home, inside.ErrOutside)}, {"outbox", errors.Is(outbox, inside.ErrOutside)},
			{"history", errors.Is(history, inside.ErrOutside)}, {"inbox", errors.Is(rows, inside.ErrOutside)},
			{"session seen", st.Head.Last != 0}, {"lease", errors.Is(taken, inside.ErrInert)}, {"control fact", errors.Is(aborted, inside.ErrInert)},
			{"append", errors.Is(appended, sessionlog.ErrReadOnly)}, {"auto-resume", len(resumed) == 0},
			{"marker and notices", k.Boot().Kind == bootnotice.Canary && k.Outbox() == nil},
		} {
			if !c.ok {
				said = append(said, c.what)
			}
		}
		report := fmt.Sprintln("not as it should be:", said)
		if err := os.WriteFile(os.Getenv("NOTES")+"/report", []byte(report), 0o600); err != nil {
			return err
		}
		l, err := net.Listen("tcp4", "127.0.0.1:"+os.Getenv("PORT"))
		if err != nil {
			return err
		}
		return http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	},
}

// nobody is a host that resumes what it is given.
type nobody struct{}

func (nobody) Workload(session.Status) (string, string) { return "agent", "" }
func (nobody) Resume(ctx context.Context, turn *sessions.Turn) error {
	return turn.End(ctx, session.TurnEnded{End: session.EndDone})
}

// printer is a host in another process.
type printer struct{}

func (printer) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	fmt.Println("told", d.Session, strings.Join(d.Notices, " "))
	return false, nil
}

func (printer) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	fmt.Println("gave up", n.Session)
	return nil
}

func spawn(t *testing.T, dir, role, arg string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+dir, argVar+"="+arg)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, bufio.NewScanner(out)
}

// killedAtWork leaves a folder whose service was killed in the middle of two turns.
func killedAtWork(t *testing.T) (dir, instance string) {
	t.Helper()
	dir = t.TempDir()
	cmd, out := spawn(t, dir, "work", "")
	out.Scan()
	instance, ok := strings.CutPrefix(out.Text(), "ready first_boot ")
	if !ok {
		t.Fatalf("the service says %q", out.Text())
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	return dir, instance
}

// TestKilledInATurn kills a real service at work; the next one knows of both turns.
func TestKilledInATurn(t *testing.T) {
	t.Parallel()
	dir, _ := killedAtWork(t)
	s, err := open(dir)
	must(t, err)
	rec := &recorder{}
	k, err := s.keeper(dir, rec, nil)
	must(t, err)
	must(t, k.Run(t.Context()))
	if b := k.Boot(); b.Kind != bootnotice.ProcessRestart || b.Clean || !b.Known || b.Downtime < 0 {
		t.Errorf("%+v", b)
	}
	// What was cut off is told as such, and nothing is woken over an open question.
	same(t, "told", rec.told(), []string{"s1 wake", "s2 wake"})
	for _, d := range rec.got {
		if !strings.Contains(d.Text, "ended without a word") || !strings.Contains(d.Text, "in the middle of a turn") {
			t.Errorf("%s is told %q", d.Session, d.Text)
		}
	}
	must(t, errors.Join(k.Close(), s.close()))
}

// slowed is set where not every operation can be tried in reasonable time.
var slowed bool

// TestKilledBeforeEachOperation kills the next instance before each operation on its files, lets the one after that finish,
// and counts: each session that was cut off is told of that stop, by one notice, at most once in a boot.
func TestKilledBeforeEachOperation(t *testing.T) {
	t.Parallel()
	step := 1
	if testing.Short() || slowed {
		step = 5
	}
	for n := 1; ; n += step {
		dir, stopped := killedAtWork(t)
		told := map[string]int{} // notices of the first stop, over both boots
		ended := false
		for boots, arg := 0, n; boots < 2; boots, arg = boots+1, 1<<30 {
			_, out := spawn(t, dir, "next", strconv.Itoa(arg))
			inBoot := map[string]int{}
			for out.Scan() {
				f := strings.Fields(out.Text())
				switch f[0] {
				case "told":
					inBoot[f[1]]++
					for _, id := range f[2:] {
						told[id]++
					}
				case "the":
					ended = ended || boots == 0
				}
			}
			for name, times := range inBoot {
				if times > 1 {
					t.Errorf("killed before operation %d: %s got %d messages in one boot", n, name, times)
				}
			}
		}
		for _, name := range []string{"s1", "s2"} {
			if got := told[bootnotice.NoticeID(stopped, name)]; got < 1 || got > 2 {
				t.Errorf("killed before operation %d: %s was told %d times of the stop, over two boots (%v)", n, name, got, told)
			}
		}
		if ended {
			if n < 20 {
				t.Errorf("only %d operations were tried", n)
			}
			return
		}
	}
}

// TestSecondInstance opens the folder of a living service.
func TestSecondInstance(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, _ := boot(t, dir, "a", nil)
	must(t, first.Outbox().Request(t.Context(), bootnotice.Request{ID: "r", Session: "main"}))
	before := digest(t, dir, true)
	second, rec := boot(t, dir, "b", func(c *Config) { c.Notice = noWait })
	if second.Boot().Kind != bootnotice.SecondInstance {
		t.Errorf("the second is %+v", second.Boot())
	}
	idle, err := second.Busy("x")
	must(t, err)
	must(t, errors.Join(idle(), second.Run(t.Context())))
	if d, ok, err := second.Take(t.Context(), "main"); ok || err != nil {
		t.Errorf("the second takes %+v, %v", d, err)
	}
	must(t, second.Close())
	same(t, "the second tells", rec.told(), nil)
	if after := digest(t, dir, true); after != before {
		t.Errorf("the second changed the folder:\n%s\n%s", before, after)
	}
	must(t, first.Close())
	third, _ := boot(t, dir, "c", nil)
	if third.Boot().Kind != bootnotice.ProcessRestart || !third.Boot().Clean {
		t.Errorf("the third is %+v", third.Boot())
	}
}

// TestExecInPlace replaces a real process by itself: pid and start time stay.
func TestExecInPlace(t *testing.T) {
	t.Parallel()
	_, out := spawn(t, t.TempDir(), "exec", "")
	var got []string
	for out.Scan() {
		f := strings.Fields(out.Text())
		got = append(got, strings.Join(f[:2], " "))
	}
	slices.Sort(got)
	same(t, "said", got, []string{"after exec_in_place", "before first_boot", "told s1", "told s2"})
}

// digest is all that lies in a folder: names, contents, modes and times. The heartbeat of a living one is left out, also
// where it is on its way to its name and gone before it is looked at.
func digest(t *testing.T, dir string, living bool) string {
	t.Helper()
	var b strings.Builder
	must(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if living && (strings.HasSuffix(path, beatName) || e.IsDir()) {
			return nil
		}
		in, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(&b, path, in.Mode(), in.ModTime().UnixNano())
		if e.IsDir() {
			return nil
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		fmt.Fprintln(&b, hex.EncodeToString(h.Sum(nil)))
		return nil
	}))
	return b.String()
}

// TestCanaryAgainstALiveStore boots a candidate that finds the live folders, with an interrupted session and a pending
// notice in them, beside the living service and after it was stopped: both stay untouched, and the session is told
// afterwards.
func TestCanaryAgainstALiveStore(t *testing.T) {
	t.Parallel()
	for _, living := range []bool{true, false} {
		t.Run(map[bool]string{true: "living", false: "stopped"}[living], func(t *testing.T) {
			t.Parallel()
			canaryAgainst(t, living)
		})
	}
}

func canaryAgainst(t *testing.T, living bool) {
	dir, _ := killedAtWork(t)
	s, err := open(dir)
	must(t, err)
	rows, err := inbox.New(inbox.Config{Dir: filepath.Join(dir, "inbox")})
	must(t, err)
	budget, err := handoff.OpenHistory(filepath.Join(dir, "handoff"))
	must(t, err)
	must(t, budget.Reserve(t.Context(), handoff.Entry{ID: "e", At: host.Now()}))
	must(t, rows.Notify(t.Context(), notify.Row{Key: "k", Title: "something to see"}))
	k, err := s.keeper(dir, &recorder{fail: errors.New("not yet")}, nil)
	must(t, err)
	must(t, k.Outbox().Request(t.Context(), bootnotice.Request{ID: "r", Session: "s1", Reason: "a new build"}))
	end := func() { must(t, errors.Join(k.Close(), s.close(), rows.Close(), budget.Close())) }
	if !living {
		end()
	}

	self, err := os.Executable()
	must(t, err)
	notes := t.TempDir()
	before := digest(t, dir, living)
	c, err := canary.New(canary.Config{
		Command: []string{self}, Env: append(os.Environ(), roleVar+"=candidate"), Attempt: 10 * time.Second,
		// Passed on as they are: it is sent to the live folders, and nothing but its being a canary holds it back.
		Overrides: []canary.Override{{Var: dirVar, Path: dir}, {Var: "NOTES", Path: notes}},
	})
	must(t, err)
	if r := c.Run(t.Context()); r.Outcome != canary.Passed {
		t.Fatalf("%+v", r)
	}
	report, err := os.ReadFile(filepath.Join(notes, "report"))
	must(t, err)
	if got, want := string(report), "not as it should be: []\n"; got != want {
		t.Error(got)
	}
	if after := digest(t, dir, living); after != before {
		t.Errorf("the canary changed the live folder:\n%s\n%s", before, after)
	}
	if living {
		end()
	}

	s, err = open(dir)
	must(t, err)
	st, err := s.sessions.Status(t.Context(), "s1")
	must(t, err)
	if st.Headline != session.Interrupted || st.Liveness != ledger.Dead {
		t.Errorf("the session is %s", st)
	}
	rec := &recorder{}
	k, err = s.keeper(dir, rec, nil)
	must(t, err)
	must(t, k.Run(t.Context()))
	if got := rec.told(); !slices.Contains(got, "s1 wake") || !slices.Contains(got, "s2 wake") || !strings.Contains(rec.got[0].Text, "a new build") {
		t.Errorf("told %v", rec.got)
	}
	must(t, errors.Join(k.Close(), s.close()))
}
