package canary

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

func init() {
	// polite ends itself when it is asked to, and has something to finish first.
	roles["polite"] = func() error {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		go func() {
			<-asked
			time.Sleep(50 * time.Millisecond)
			if err := note("ended", "in order"); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(0)
		}()
		return serve(200)
	}
	// family has a child in its group that takes no notice of SIGTERM, and takes none itself.
	roles["family"] = func() error {
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), roleVar+"=hangs")
		if err := child.Start(); err != nil {
			return err
		}
		for !exists("pid") {
			time.Sleep(5 * time.Millisecond)
		}
		return serve(200)
	}
	// stalls never answers its first question, and every other one at once.
	roles["stalls"] = func() error {
		l, err := net.Listen("tcp4", "127.0.0.1:"+os.Getenv("PORT"))
		if err != nil {
			return err
		}
		var asked atomic.Int32
		return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				<-r.Context().Done()
			}
		}))
	}
}

// TestDefaultsAreFilledIn holds what a config that names no bound gets.
func TestDefaultsAreFilledIn(t *testing.T) {
	t.Parallel()
	k, err := New(Config{Command: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	c := k.c
	if c.PreflightWithin != 20*time.Second || c.Within != 45*time.Second || c.Attempt != 800*time.Millisecond || c.Grace != 5*time.Second ||
		c.Path != "/healthz" || c.PortVar != "PORT" || c.Port != 0 {
		t.Errorf("%+v", c)
	}
	if Passed != "passed" || Failed != "failed" || Skipped != "skipped" || Enforced != "enforced" || Unproven != "unproven" ||
		inside.Var != "MULLIGAN_CANARY" {
		t.Error("the words of a result, and the variable, are what others look for")
	}
	for r, want := range map[Outcome]bool{Passed: true, Skipped: true, Failed: false, "": false} {
		if (Result{Outcome: r}).Proceed() != want {
			t.Errorf("%q proceeds: %v", r, !want)
		}
	}
}

// TestTeardownEscalates asks first, and kills the whole group when that does not help.
func TestTeardownEscalates(t *testing.T) {
	t.Parallel()
	t.Run("asked", func(t *testing.T) {
		t.Parallel()
		c, notes := recipe(t, "polite", func(c *Config) { c.Grace = time.Minute })
		want(t, try(t, c), CodeAlive)
		if b, err := os.ReadFile(filepath.Join(notes, "ended")); string(b) != "in order" {
			t.Errorf("it had no time to end: %q, %v", b, err)
		}
	})
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		c, notes := recipe(t, "family", func(c *Config) { c.Grace = 200 * time.Millisecond })
		want(t, try(t, c), CodeAlive)
		dead(t, notes)
	})
}

// TestOneAttemptIsBounded has a first question that is never answered.
func TestOneAttemptIsBounded(t *testing.T) {
	t.Parallel()
	c, _ := recipe(t, "stalls", func(c *Config) { c.Attempt = 2 * time.Second })
	want(t, try(t, c), CodeAlive)
}

// TestEachHasItsOwn boots two at once, with port 0: neither is in the other's way.
func TestEachHasItsOwn(t *testing.T) {
	t.Parallel()
	type seen struct{ id, dir, port string }
	got := make(chan seen, 2)
	for range 2 {
		go func() {
			c, notes := recipe(t, "environment", nil)
			if k, err := New(c); err != nil {
				t.Error(err)
			} else if r := k.Run(t.Context()); r.Outcome != Passed {
				t.Errorf("%+v", r)
			}
			var s seen
			b, err := os.ReadFile(filepath.Join(notes, "env"))
			if err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(string(b)) {
				switch k, v, _ := strings.Cut(strings.TrimSpace(line), "="); k {
				case inside.Var:
					s.id = v
				case inside.DirVar:
					s.dir = v
				case "PORT":
					s.port = v
				}
			}
			got <- s
		}()
	}
	a, b := <-got, <-got
	if a.id == "" || a.dir == "" || a.port == "" || a.id == b.id || a.dir == b.dir || a.port == b.port {
		t.Errorf("%+v, %+v", a, b)
	}
	if n, err := strconv.Atoi(a.port); err != nil || n == 0 {
		t.Errorf("port %q", a.port)
	}
	for _, dir := range []string{a.dir, b.dir} {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", dir, err)
		}
	}
}

// TestSkippedAndUnprovenAreLoud logs a warning for what was not tried, and for what was tried without proof.
func TestSkippedAndUnprovenAreLoud(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config Config
		words  []string
	}{
		"skipped":  {Config{}, []string{"level=WARN", "the restart goes on without", "no_command"}},
		"unproven": {Config{Command: []string{"/no/such/program"}}, []string{"level=WARN", "unproven"}},
	} {
		var log bytes.Buffer
		c.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		r := try(t, c.config)
		for _, w := range c.words {
			if !strings.Contains(log.String(), w) {
				t.Errorf("%s: no %q in %q, after %+v", name, w, log.String(), r)
			}
		}
	}
}
