//go:build unix

package drain_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/restart/drain"
)

// childMode says which program a re-executed test binary is.
const childMode = "MULLIGAN_DRAIN_TEST"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); strings.HasPrefix(mode, "service") {
		os.Exit(serviceChild(mode))
	} else if mode != "" {
		child(mode)
		return
	}
	os.Exit(m.Run())
}

// child is a host that says what it is told, and never ends by itself.
func child(mode string) {
	say := func(who string) func(os.Signal) {
		return func(s os.Signal) { fmt.Println(who, s) }
	}
	if mode == "handler" || mode == "handler after close" {
		own := make(chan os.Signal, 16)
		signal.Notify(own, syscall.SIGTERM)
		go func() {
			for s := range own {
				fmt.Println("own", s)
			}
		}()
	}
	first := say("first")
	if mode == "hangs" {
		first = func(s os.Signal) { fmt.Println("first", s); select {} }
	}
	l, err := drain.Listen(drain.Signals{First: first, Again: say("again")})
	if err != nil {
		fmt.Println(err)
		return
	}
	if strings.HasSuffix(mode, "after close") {
		_ = l.Close()
		_ = l.Close()
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

// host is a running child.
type host struct {
	t     *testing.T
	cmd   *exec.Cmd
	lines chan string
}

func start(t *testing.T, mode string, prefix ...string) *host {
	t.Helper()
	args := append(slices.Clone(prefix), os.Args[0])
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	h := &host{t: t, cmd: exec.CommandContext(ctx, args[0], args[1:]...), lines: make(chan string, 64)}
	h.cmd.Env = append(os.Environ(), childMode+"="+mode)
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.cmd.Process.Kill(); _ = h.cmd.Wait() })
	go h.read(out)
	h.wants("ready")
	return h
}

func (h *host) read(out io.Reader) {
	defer close(h.lines)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		h.lines <- lines.Text()
	}
}

// wants is until the child has said all of these, in any order, and nothing else.
func (h *host) wants(want ...string) {
	h.t.Helper()
	for len(want) > 0 {
		line, ok := <-h.lines
		i := slices.Index(want, line)
		if !ok || i < 0 {
			h.t.Fatalf("the child said %q (alive: %v), and should have said %q", line, ok, want)
		}
		want = slices.Delete(want, i, i+1)
	}
}

func (h *host) send(s syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// killedBy waits for the end of the child, which says nothing more.
func (h *host) killedBy(s syscall.Signal) {
	h.t.Helper()
	h.wantsEnd()
	err := h.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != s {
		h.t.Fatalf("the child ended with %v, and not by signal %v", err, s)
	}
}

func (h *host) wantsEnd() {
	h.t.Helper()
	if line, ok := <-h.lines; ok {
		h.t.Fatalf("the child said %q, and should have ended", line)
	}
}

func TestTheFirstSignalIsToldFromTheSecondAndTheThirdEndsTheProcess(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"alone", "hangs"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			h := start(t, mode)
			h.send(syscall.SIGTERM)
			h.wants("first terminated")
			h.send(syscall.SIGINT)
			h.wants("again interrupt")
			h.send(syscall.SIGTERM)
			h.killedBy(syscall.SIGTERM)
		})
	}
}

func TestAHandlerOfTheHostsOwnGetsEachSignalOnce(t *testing.T) {
	t.Parallel()
	h := start(t, "handler")
	h.send(syscall.SIGTERM)
	h.wants("first terminated", "own terminated")
	h.send(syscall.SIGTERM)
	h.wants("again terminated", "own terminated")
	h.send(syscall.SIGTERM)
	h.wants("own terminated")
	h.send(syscall.SIGINT) // nobody handles that one
	h.killedBy(syscall.SIGINT)
}

func TestCloseLetsGo(t *testing.T) {
	t.Parallel()
	h := start(t, "after close")
	h.send(syscall.SIGTERM)
	h.killedBy(syscall.SIGTERM)

	h = start(t, "handler after close")
	h.send(syscall.SIGTERM)
	h.wants("own terminated")
	h.send(syscall.SIGKILL)
	h.killedBy(syscall.SIGKILL)
}

func TestASignalThatIsIgnoredStaysSo(t *testing.T) {
	t.Parallel()
	h := start(t, "alone", "/bin/sh", "-c", `trap "" INT; exec "$0"`)
	h.send(syscall.SIGINT)
	h.send(syscall.SIGTERM)
	h.wants("first terminated")
}

func TestListenWantsToKnowWhatTheSecondDoes(t *testing.T) {
	t.Parallel()
	_, err := drain.Listen(drain.Signals{})
	if err == nil || !strings.Contains(err.Error(), "First") || !strings.Contains(err.Error(), "Again") {
		t.Errorf("%v", err)
	}
}
