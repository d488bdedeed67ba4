package handoff_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// listening is a world whose host listens in a folder.
func listening(t *testing.T, change func(*handoff.Config)) (*world, string) {
	t.Helper()
	w := newWorld(t, func(c *handoff.Config) {
		c.Delay = time.Millisecond
		if change != nil {
			change(c)
		}
	})
	dir := t.TempDir()
	if runtime.GOOS == "linux" { // deeper than a socket's path may be long
		dir = filepath.Join(dir, strings.Repeat("deep", 30))
	}
	dir = filepath.Join(dir, "boot")
	w.must(w.h.Listen(dir))
	t.Cleanup(func() {
		if err := errors.Join(w.h.Close(), w.s.Close()); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "self-restart.sock")); !os.IsNotExist(err) {
			t.Error("the socket is left after the close:", err)
		}
	})
	return w, dir
}

// outsideCall asks from beside, out of a call of the session's turn that is in the log.
func (w *world) outsideCall(dir string, turn *sessions.Turn, r handoff.Request) handoff.Result {
	w.t.Helper()
	g, err := effect.New(effect.Config{Turn: turn, Now: w.s.Now})
	w.must(err)
	_, err = g.Begin(w.t.Context(), effect.Call{ID: "c1", Tool: "shell"})
	w.must(err)
	res, err := handoff.AskHost(w.t.Context(), dir, handoff.Outside{Request: r, Session: turn.Session(), Call: "c1"})
	w.must(err)
	return res
}

func TestAHostEndsTheTurnOfWhoAsksFromBeside(t *testing.T) {
	t.Parallel()
	w, dir := listening(t, nil)
	turn := w.begin("one")
	if res := w.outsideCall(dir, turn, handoff.Request{Reason: "a new build"}); !res.OK || res.SessionID != "one" || res.Reason != "a new build" {
		t.Fatalf("%+v", res)
	}
	w.restarted("one")
	if st := w.status("one"); len(st.Head.Calls) != 0 {
		t.Errorf("the call that asked is open: %+v", st.Head.Calls)
	}
	if got := w.box.sessions(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("notices for %v", got)
	}
	if _, err := w.try("two"); session.CodeOf(err) != handoff.ErrRestarting {
		t.Error("a turn began during a restart:", err)
	}
}

func TestNoTurnBeginsWhileOneWaitsBeside(t *testing.T) {
	t.Parallel()
	w, dir := listening(t, nil)
	one, two := w.begin("one"), w.begin("two")
	refused := w.outsideCall(dir, one, handoff.Request{})
	if refused.OK || refused.Code != handoff.CodeBusy || !slices.Equal(refused.InFlight, []string{"two"}) {
		t.Errorf("%+v", refused)
	}
	answer := make(chan handoff.Result, 1)
	go func() {
		res, err := handoff.AskHost(t.Context(), dir, handoff.Outside{Session: "one", Call: "c1", Request: handoff.Request{Wait: true}})
		if err != nil {
			t.Error(err)
		}
		answer <- res
	}()
	w.until("the door to be shut", func() bool {
		leave, err := w.h.Admit("three")
		if err == nil {
			leave()
		}
		return session.CodeOf(err) == handoff.ErrRestarting
	})
	w.done(two)
	if res := <-answer; !res.OK {
		t.Errorf("%+v", res)
	}
	w.restarted("one")
}

func TestOneThatGoesAwayIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w, dir := listening(t, nil)
	w.begin("two")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := handoff.AskHost(ctx, dir, handoff.Outside{Request: handoff.Request{Wait: true}})
		gone <- err
	}()
	w.until("the door to be shut", func() bool {
		leave, err := w.h.Admit("three")
		if err == nil {
			leave()
		}
		return err != nil
	})
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	w.until("turns to be admitted again", func() bool {
		leave, err := w.h.Admit("three")
		if err == nil {
			leave()
		}
		return err == nil
	})
	if w.r.count() != 0 || len(w.hist.list()) != 0 {
		t.Error("a restart came of it")
	}
}

func TestAHostAnswersOnlyForItself(t *testing.T) {
	t.Parallel()
	w, dir := listening(t, func(c *handoff.Config) { c.Unit = "acme.service" })
	w.r.needs = true
	ask := func(o handoff.Outside) (handoff.Result, error) { return handoff.AskHost(t.Context(), dir, o) }
	if _, err := ask(handoff.Outside{Unit: "other.service"}); !errors.Is(err, handoff.ErrNoHost) {
		t.Error("another unit:", err)
	}
	w.r.needs = false // as one that executes itself anew
	for _, found := range []bool{false, true} {
		res, err := ask(handoff.Outside{Unit: "other.service", Found: found, Request: handoff.Request{Reason: strings.Repeat("x", handoff.MaxReason+1)}})
		if found && (err != nil || res.Code != handoff.CodeMalformed) || !found && !errors.Is(err, handoff.ErrNoHost) {
			t.Errorf("without a unit of its own, found %v: %+v, %v", found, res, err)
		}
	}
	w.r.needs = true
	if res, err := ask(handoff.Outside{Session: "nobody"}); err != nil || res.OK || res.Code != handoff.CodeMalformed || !strings.Contains(res.Error, `no session "nobody"`) {
		t.Errorf("%+v, %v", res, err)
	}
	// What only a person may allow is the host's to ask, whoever wants it.
	w.begin("two")
	if res, err := ask(handoff.Outside{Request: handoff.Request{Force: true}}); err != nil || res.Code != handoff.CodeUnconfirmed {
		t.Errorf("%+v, %v", res, err)
	}
	if got := len(w.hist.list()); got != 0 {
		t.Errorf("%d restarts of what was refused", got)
	}
	w.must(w.s.Abort(t.Context(), "two", "enough"))
	w.until("the unit to be restarted", func() bool {
		res, err := ask(handoff.Outside{Unit: "acme"})
		return err == nil && res.OK
	})
	w.until("the manager to be asked", func() bool { return w.r.count() == 1 })
}

func TestWhereNobodyListens(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "boot")
	for _, state := range []string{"no folder", "no socket", "one that is left"} {
		switch state {
		case "no socket":
			must(t, os.Mkdir(dir, 0o700))
		case "one that is left":
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "self-restart.sock"), Net: "unix"})
			must(t, err)
			l.SetUnlinkOnClose(false)
			must(t, l.Close())
		}
		if _, err := handoff.AskHost(t.Context(), dir, handoff.Outside{}); !errors.Is(err, handoff.ErrNoHost) {
			t.Errorf("%s: %v", state, err)
		}
	}
	// Whoever comes next takes it over, and keeps it from a second one.
	w, second := newWorld(t, nil), newWorld(t, nil)
	must(t, w.h.Listen(dir))
	if err := second.h.Listen(dir); err == nil || !strings.Contains(err.Error(), "another process listens there") {
		t.Error(err)
	}
	must(t, w.h.Close())
	must(t, second.h.Listen(dir))
	must(t, second.h.Close())
	if err := second.h.Listen(dir); err == nil {
		t.Error("one that is closed listens")
	}
}

func TestAnAnswerThatIsLostIsUnknown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "self-restart.sock"), Net: "unix"})
	must(t, err)
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close() // the host is killed with the request in its hands
		}
	}()
	if res, err := handoff.AskHost(t.Context(), dir, handoff.Outside{}); !errors.Is(err, handoff.ErrUnknown) || res.OK {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAFolderThatOthersMayEnterIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	dir := t.TempDir()
	must(t, os.Chmod(dir, 0o755))
	if err := w.h.Listen(dir); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Error(err)
	}
	must(t, w.h.Close())
}

func TestWhatIsNoRequestIsToldSo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("the socket is reached through /proc")
	}
	w, dir := listening(t, nil)
	for _, line := range []string{"", "nonsense\n", `{"wish":1}` + "\n", `{"reason":"` + strings.Repeat("x", 1<<17) + `"}`} {
		folder, err := os.Open(dir)
		must(t, err)
		conn, err := net.Dial("unix", filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), "self-restart.sock"))
		must(t, err)
		_, _ = conn.Write([]byte(line)) // it may have had enough of it already
		must(t, conn.(*net.UnixConn).CloseWrite())
		var got struct {
			Result handoff.Result
			Code   handoff.Code
		}
		if err := json.NewDecoder(conn).Decode(&got); err != nil || got.Result.OK || got.Code != handoff.CodeMalformed {
			t.Errorf("%.20q: %+v, %v", line, got, err)
		}
		_, _ = conn.Close(), folder.Close()
	}
	if w.r.count() != 0 {
		t.Error("a restart came of it")
	}
}

func TestACanaryNeitherListensNorAsks(t *testing.T) { // the environment is the process's: not parallel
	w, dir := listening(t, nil)
	t.Setenv(inside.Var, "c1")
	if _, err := handoff.AskHost(t.Context(), dir, handoff.Outside{}); !errors.Is(err, inside.ErrInert) {
		t.Error(err)
	}
	other := filepath.Join(t.TempDir(), "other")
	w.must(w.h.Listen(other))
	if _, err := os.Stat(other); !os.IsNotExist(err) {
		t.Error("a canary made a folder:", err)
	}
}

// until waits for what has to happen.
func (w *world) until(what string, f func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal("never came: ", what)
		}
	}
}
