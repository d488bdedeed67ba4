package files_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/ledger/storm"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

// What processes do to each other is tried with processes: this binary, run again in a role.
const (
	roleVar = "MULLIGAN_FILES_TEST_ROLE"
	dirVar  = "MULLIGAN_FILES_TEST_DIR"
	argVar  = "MULLIGAN_FILES_TEST_ARG"
)

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) == "story" {
		if err := storyUntil(os.Getenv(dirVar), os.Getenv(argVar)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	role, ok := roles[os.Getenv(roleVar)]
	if !ok && os.Getenv(roleVar) != "race" {
		os.Exit(m.Run())
	}
	h, err := files.Open(files.Config{Dir: os.Getenv(dirVar)})
	if err == nil {
		fmt.Println("ready", h.Instances().Self().ID)
		if os.Getenv(roleVar) == "race" {
			if err := racer(h, os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			return
		}
		// All begin together, when their input ends or has a line.
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		err = role(h, os.Getenv(argVar))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const raceKeys = 40

var roles = map[string]func(h *files.Home, arg string) error{
	// claim races for every key and says which it won.
	"claim": func(h *files.Home, _ string) error {
		for i := range raceKeys {
			r, err := ledger.New(raceKey(i), ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: h.Instances().Self()})
			if err != nil {
				return err
			}
			switch err := h.Ledger().Create(context.Background(), r); {
			case err == nil:
				fmt.Println("won", i)
			case !errors.Is(err, ledger.ErrExists):
				return err
			}
		}
		return nil
	},
	// count changes one record a number of times.
	"count": func(h *files.Home, arg string) error {
		n, err := strconv.Atoi(arg)
		for i := 0; i < n && err == nil; i++ {
			_, err = h.Ledger().Update(context.Background(), key, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
				return ledger.Apply(cur, ledger.Change{Event: ledger.Annotate, Now: now, Actor: h.Instances().Self(),
					Told: []string{fmt.Sprint(h.Instances().Self().ID, i)}})
			})
		}
		return err
	},
	// churn claims and changes records until it is killed.
	"churn": func(h *files.Home, arg string) error {
		for i := 0; ; i++ {
			k := ledger.Key{Project: "churn", Lineage: fmt.Sprint(arg, "-", i)}
			r, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: h.Instances().Self()})
			if err == nil {
				err = h.Ledger().Create(context.Background(), r)
			}
			if err == nil {
				_, err = h.Ledger().Update(context.Background(), k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
					return ledger.Apply(cur, ledger.Change{Event: ledger.Defer, Now: now, Actor: h.Instances().Self(), Reason: "not_quiet"})
				})
			}
			if err != nil {
				return err
			}
			if i == 3 {
				fmt.Println("churning")
			}
		}
	},
	// stop is stopped in the middle of a change of the breaker's state, and again by whatever continues it, until a file is there.
	"stop": func(h *files.Home, arg string) error {
		_, err := h.Breaker().UpdateState(context.Background(), func(s storm.State, _ stamp.Time) (storm.State, error) {
			fmt.Println("changing")
			for {
				if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
					return s, err
				}
				if _, err := os.Stat(arg); err == nil {
					return s, nil
				}
			}
		})
		return err
	},
	// hold takes the writer lock, starts a child that outlives it, and waits to be killed.
	"hold": func(h *files.Home, _ string) error {
		if _, err := h.Writer().Exclusive(context.Background(), "update of the test"); err != nil {
			return err
		}
		child := exec.Command("sleep", "60")
		if err := child.Start(); err != nil {
			return err
		}
		fmt.Println("child", child.Process.Pid)
		select {}
	},
}

func raceKey(i int) ledger.Key { return ledger.Key{Project: "race", Lineage: fmt.Sprint(i)} }

// process is a running role.
type process struct {
	*exec.Cmd
	id    string // its instance
	in    io.WriteCloser
	lines *bufio.Scanner
}

func spawn(t *testing.T, dir, role, arg string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: exec.Command(self)}
	p.Env = append(os.Environ(), roleVar+"="+role, dirVar+"="+dir, argVar+"="+arg)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Process.Kill(); _ = p.Wait() })
	p.lines = bufio.NewScanner(out)
	p.id = p.expect(t, "ready")
	return p
}

// expect reads the next line, which begins with a word, and returns the rest.
func (p *process) expect(t *testing.T, word string) string {
	t.Helper()
	if !p.lines.Scan() {
		t.Fatalf("the process ended before it said %q", word)
	}
	rest, ok := strings.CutPrefix(p.lines.Text(), word)
	if !ok {
		t.Fatalf("the process said %q, want %q", p.lines.Text(), word)
	}
	return strings.TrimSpace(rest)
}

func (p *process) begin() { _ = p.in.Close() }

func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
}

func TestProcessesRaceForClaims(t *testing.T) {
	t.Parallel()
	h := home(t)
	const n = 6
	ps := make([]*process, n)
	for i := range ps {
		ps[i] = spawn(t, h.Dir(), "claim", "")
	}
	for _, p := range ps {
		p.begin()
	}
	winner := map[string]string{}
	for _, p := range ps {
		for p.lines.Scan() {
			i := strings.TrimPrefix(p.lines.Text(), "won ")
			if winner[i] != "" {
				t.Errorf("key %s was won by %s and %s", i, winner[i], p.id)
			}
			winner[i] = p.id
		}
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	for i := range raceKeys {
		r, err := h.Ledger().Get(t.Context(), raceKey(i))
		if err != nil {
			t.Errorf("key %d: %v", i, err)
		} else if r.Owner.Instance.ID != winner[fmt.Sprint(i)] {
			t.Errorf("key %d was won by %s, and belongs to %s", i, winner[fmt.Sprint(i)], r.Owner.Instance.ID)
		}
	}
	names, err := os.ReadDir(filepath.Join(h.Dir(), "ledger"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range names {
		if strings.HasPrefix(e.Name(), ".") && e.Name() != ".newest" {
			t.Errorf("%s was left behind", e.Name())
		}
	}
	if len(names) != raceKeys+1 {
		t.Errorf("%d files for %d records and the index", len(names), raceKeys)
	}
}

func TestProcessesCountTogether(t *testing.T) {
	t.Parallel()
	h, _ := claimed(t)
	const n, each = 4, 15
	var ps [n]*process
	for i := range ps {
		ps[i] = spawn(t, h.Dir(), "count", fmt.Sprint(each))
	}
	for _, p := range ps {
		p.begin()
	}
	for _, p := range ps {
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	r, err := h.Ledger().Get(t.Context(), key)
	if err != nil || len(r.Told) != n*each || r.Revision != 1+n*each {
		t.Errorf("%d changes left %d of them and revision %d, %v", n*each, len(r.Told), r.Revision, err)
	}
}

func TestKilledProcessIsDeadAndHoldsNothing(t *testing.T) {
	t.Parallel()
	h := home(t)
	p := spawn(t, h.Dir(), "hold", "")
	p.begin()
	child, err := strconv.Atoi(p.expect(t, "child"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if c, err := os.FindProcess(child); err == nil {
			_ = c.Kill()
		}
	})
	other := ledger.Instance{ID: p.id}
	if got := h.Instances().Liveness(other); got != ledger.Alive {
		t.Errorf("a living process is %s", got)
	}
	who, held, err := h.Writer().Holder(t.Context())
	if err != nil || !held || !strings.Contains(who, "update of the test") || !strings.Contains(who, fmt.Sprint(p.Process.Pid)) {
		t.Errorf("holder %q, %v, %v", who, held, err)
	}
	var heldErr *journal.HeldError
	if _, err := h.Writer().Shared(t.Context(), "healer"); !errors.As(err, &heldErr) {
		t.Errorf("shared beside a writer: %v", err)
	}

	p.kill(t)
	if _, err := os.Stat(fmt.Sprint("/proc/", child)); err != nil {
		t.Fatalf("the child does not outlive its parent: %v", err)
	}
	if got := h.Instances().Liveness(other); got != ledger.Dead {
		t.Errorf("a killed process is %s", got)
	}
	if who, held, err := h.Writer().Holder(t.Context()); held || err != nil {
		t.Errorf("a child inherited the writer lock: %q, %v", who, err)
	}
	release, err := h.Writer().Exclusive(t.Context(), "next")
	if err != nil {
		t.Fatal(err)
	}
	if who, _, err := h.Writer().Holder(t.Context()); err != nil || strings.Contains(who, "update of the test") {
		t.Errorf("the dead holder is shown: %q, %v", who, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// TestKillsLeaveASoundLedger kills processes in the middle of claims and changes, and compares all that is left with
// what the index says is left.
func TestKillsLeaveASoundLedger(t *testing.T) {
	t.Parallel()
	h := home(t)
	var all sync.WaitGroup
	for round := range 6 {
		p := spawn(t, h.Dir(), "churn", fmt.Sprint(round))
		p.begin()
		p.expect(t, "churning")
		all.Go(func() {
			time.Sleep(time.Duration(round) * 7 * time.Millisecond) // kills at different moments; nothing waits for it
			_ = p.Process.Kill()
			_ = p.Wait()
		})
	}
	all.Wait()
	same(t, h)
	for _, p := range ledger.Check(h.Ledger().List(t.Context())) {
		t.Error(p)
	}
}

// same compares what the index lists with what lies there.
func same(t *testing.T, h *files.Home) {
	t.Helper()
	want := map[ledger.Key]uint64{}
	for r, err := range h.Ledger().List(t.Context()) {
		if err != nil {
			t.Error(err)
			continue
		}
		want[r.Key] = r.Revision
	}
	rs, err := h.Ledger().(ledger.Newest).Newest(t.Context(), len(want)+1)
	if err != nil {
		t.Error(err)
	}
	for _, r := range rs {
		if want[r.Key] != r.Revision {
			t.Errorf("%s has revision %d, the index lists %d", r.Key, want[r.Key], r.Revision)
		}
		delete(want, r.Key)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}
