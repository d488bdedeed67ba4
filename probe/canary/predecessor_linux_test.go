// What a predecessor's canaries did to the service that they stood beside. The list of all such failures is at the top of
// restart/boot/predecessor_test.go.
package canary

import (
	"context"
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

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// bare is our environment without what marks a canary, for a role.
func bare(role string) []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, inside.Var) || strings.HasPrefix(kv, roleVar+"=")
	})
	return append(env, roleVar+"="+role)
}

func init() {
	// untitled has nothing left in its environment of what it was started with, as after setting a title.
	roles["untitled"] = func() error {
		return syscall.Exec("/proc/self/exe", os.Args, bare("login"))
	}
	// shares answers on its port together with somebody else.
	roles["shares"] = func() error {
		l, err := sharing("127.0.0.1:" + os.Getenv("PORT"))
		if err != nil {
			return err
		}
		if err := note("port", os.Getenv("PORT")); err != nil {
			return err
		}
		for !exists("shared") { // until the other one is there too
			time.Sleep(5 * time.Millisecond)
		}
		return answer(l, 401)
	}
	// child leaves its port to a process in a session of its own that knows nothing of a canary.
	roles["child"] = func() error {
		c := exec.Command("/proc/self/exe")
		c.Env, c.SysProcAttr = bare("serves"), &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			return err
		}
		if err := note("port", os.Getenv("PORT")); err != nil {
			return err
		}
		select {}
	}
	roles["serves"] = func() error {
		if err := note("pid", strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		return serve(200)
	}
	// hands leaves the socket that it was given to such a one that is not even its child any more.
	roles["hands"] = func() error {
		listener := os.NewFile(3, "listener")
		l, err := net.FileListener(listener)
		if err != nil {
			return err
		}
		if err := forks("holds", listener); err != nil {
			return err
		}
		return answer(l, 200)
	}
	// background serves from a process of its group that is not its child and knows nothing of a canary.
	roles["background"] = func() error {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		shell := exec.Command("/bin/sh", "-c", `"$0" &`, self)
		shell.Env = bare("login")
		if err := shell.Run(); err != nil {
			return err
		}
		select {}
	}
	roles["holds"] = func() error {
		if err := note("pid", strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		select {}
	}
}

func exists(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("NOTES"), name))
	return err == nil
}

// forks starts a process with a socket that is nobody's child, since the shell between ends at once.
func forks(role string, socket *os.File) error {
	if err := note("port", os.Getenv("PORT")); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	shell := exec.Command("/bin/sh", "-c", `"$0" &`, self)
	shell.Env, shell.ExtraFiles = bare(role), []*os.File{socket}
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := shell.Run(); err != nil {
		return err
	}
	for !exists("pid") {
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// sharing listens on a port on which somebody else may listen too.
func sharing(addr string) (net.Listener, error) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if e := c.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) }); e != nil {
			return e
		}
		return err
	}}
	return lc.Listen(context.Background(), "tcp4", addr)
}

// beside tries a candidate while somebody else answers on the port that it notes, for longer and longer, until an answer came
// in time.
func beside(t *testing.T, role string, listen func(notes, addr string) (net.Listener, error), status int) (r Result) {
	t.Helper()
	for within := 4 * time.Second; ; within *= 2 {
		c, notes := recipe(t, role, func(c *Config) { c.Within = within })
		done := make(chan Result, 1)
		go func() { done <- try(t, c) }()
		for !noted("port")(Result{}, notes) && len(done) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
		if noted("port")(Result{}, notes) {
			l, err := listen(notes, "127.0.0.1:"+waitFile(t, filepath.Join(notes, "port")))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = answer(l, status) }()
			r = <-done
			_ = l.Close()
		} else {
			r = <-done
		}
		if answered(r, notes) || within > time.Minute {
			return r
		}
	}
}

// TestPredecessorLoginWall has 401 as the answer: alive when it provably is the candidate's own, and a failure when another
// process on the port gave it, or may have.
func TestPredecessorLoginWall(t *testing.T) {
	t.Parallel()
	t.Run("its own", func(t *testing.T) {
		t.Parallel()
		c, _ := recipe(t, "login", nil)
		want(t, try(t, c), CodeAlive)
	})
	t.Run("its own, on the socket that it was given", func(t *testing.T) {
		t.Parallel()
		c, _ := recipe(t, "inherits", func(c *Config) { c.Inherit, c.Preflight = true, []string{"/bin/true"} })
		want(t, try(t, c), CodeAlive)
	})
	t.Run("its own, and it has overwritten its environment", func(t *testing.T) {
		t.Parallel()
		c, _ := recipe(t, "untitled", nil)
		want(t, try(t, c), CodeAlive)
	})
	t.Run("its own, from another process of its group", func(t *testing.T) {
		t.Parallel()
		c, _ := recipe(t, "background", nil)
		want(t, try(t, c), CodeAlive)
	})
	t.Run("one of two that share the port", func(t *testing.T) {
		t.Parallel()
		r := beside(t, "shares", func(notes, addr string) (net.Listener, error) {
			l, err := sharing(addr)
			if err == nil {
				err = os.WriteFile(filepath.Join(notes, "shared"), nil, 0o600)
			}
			return l, err
		}, 401)
		want(t, r, CodeUnprovenFrom)
	})
	// A healthy service in its place is no better.
	for _, status := range []int{200, 401} {
		t.Run(strconv.Itoa(status), func(t *testing.T) {
			t.Parallel()
			r := beside(t, "absent", func(_, addr string) (net.Listener, error) { return net.Listen("tcp4", addr) }, status)
			want(t, r, CodeUnprovenFrom)
			if r.Status != status {
				t.Errorf("status %d", r.Status)
			}
		})
	}
}

// TestPredecessorLeakKeepsNoPort leaves processes that the end of its group does not reach, with the port: they are ended,
// it has failed, and the port is free.
func TestPredecessorLeakKeepsNoPort(t *testing.T) {
	t.Parallel()
	for role, inherit := range map[string]bool{"leaks": false, "child": false, "hands": true} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c, notes := recipe(t, role, func(c *Config) { c.Within, c.Inherit = 30*time.Second, inherit })
			r := try(t, c)
			want(t, r, CodeLeaked)
			if r.Status != http.StatusOK || strings.Contains(r.Text, "still listened on") {
				t.Errorf("it was not up, or its port was not freed: %+v", r)
			}
			dead(t, notes)
			l, err := net.Listen("tcp4", "127.0.0.1:"+waitFile(t, filepath.Join(notes, "port")))
			if err != nil {
				t.Fatalf("the port is not free: %v", err)
			}
			_ = l.Close()
		})
	}
}

// TestPredecessorCanaryReadsLiveStateByARelativeFolder is the candidate that finds the living service's state by the folder that it is started
// in: it gets nothing where the kernel enforces that, and is found out where not.
func TestPredecessorCanaryReadsLiveStateByARelativeFolder(t *testing.T) {
	t.Parallel()
	live := func(c *Config) {
		c.Dir = service(t)
		c.Live = []string{filepath.Join(c.Dir, "state")}
	}
	t.Run("found open", func(t *testing.T) {
		t.Parallel()
		c, _ := recipe(t, "relative", func(c *Config) { live(c); c.noLandlock = true })
		r := try(t, c)
		want(t, r, CodeLivePath)
		if r.Isolation != Unproven || !strings.Contains(r.Text, "state/db") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("kept from opening", func(t *testing.T) {
		t.Parallel()
		needLandlock(t)
		c, _ := recipe(t, "relative", live)
		r := try(t, c)
		want(t, r, CodeExited)
		if r.Isolation != Enforced || !strings.Contains(r.Tail, "permission denied") {
			t.Errorf("%+v", r)
		}
	})
	t.Run("kept from peeking", func(t *testing.T) {
		t.Parallel()
		needLandlock(t)
		c, notes := recipe(t, "peeks", live)
		want(t, try(t, c), CodeAlive)
		if got := waitFile(t, filepath.Join(notes, "peeked")); strings.Contains(got, "secret") || !strings.Contains(got, "permission denied") {
			t.Errorf("it read %q", got)
		}
	})
	t.Run("kept from writing", func(t *testing.T) {
		t.Parallel()
		needLandlock(t)
		c, notes := recipe(t, "writes", live)
		want(t, try(t, c), CodeAlive)
		if got := waitFile(t, filepath.Join(notes, "wrote")); got != "" {
			t.Errorf("it could %s", got)
		}
		if b, err := os.ReadFile(filepath.Join(c.Dir, "state", "db")); string(b) != "secret" {
			t.Errorf("the live state is %q, %v", b, err)
		}
	})
	t.Run("through a symlink", func(t *testing.T) {
		t.Parallel()
		needLandlock(t)
		c, _ := recipe(t, "relative", func(c *Config) {
			live(c)
			real := filepath.Join(c.Dir, "state")
			c.Dir = t.TempDir()
			if err := os.Symlink(real, filepath.Join(c.Dir, "state")); err != nil {
				t.Fatal(err)
			}
			c.Live = []string{filepath.Join(c.Dir, "state")}
		})
		want(t, try(t, c), CodeExited)
	})
}
