package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
)

const unit = "mulligan-selfrestart.service"

// patience bounds every wait of the story.
const patience = time.Minute

// teller installs the service and talks to it.
type teller struct {
	ctx     context.Context
	manager systemd.Manager
	dir     string // releases, state and what the service prints
	port    string
	read    int // how much of what it printed has been shown
}

// story is told inside a systemd; elsewhere it says how to get one.
func story(ctx context.Context) (err error) {
	self, err := systemd.Self()
	manager := systemd.System
	if err == nil && (self.Manager == systemd.User || os.Geteuid() != 0) {
		manager = systemd.User
	}
	conn, cannot := systemd.Connect(ctx, manager)
	if err != nil || cannot != nil {
		return errors.New("this needs a systemd: .ci/with-systemd -- go run ./examples/selfrestart")
	}
	if err := conn.Close(); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "selfrestart")
	if err != nil {
		return err
	}
	t := &teller{ctx: ctx, manager: manager, dir: dir}
	defer func() {
		if err != nil {
			_, _ = t.show("") // whatever it printed last
		}
		err = errors.Join(err, t.uninstall(), os.RemoveAll(dir))
	}()
	if err := t.install(); err != nil {
		return fmt.Errorf("install the service: %w", err)
	}
	if err := t.good(); err != nil {
		return fmt.Errorf("the story of the good release: %w", err)
	}
	if err := t.broken(); err != nil {
		return fmt.Errorf("the story of the broken release: %w", err)
	}
	return nil
}

// install puts three releases into their folders, and starts the first. Each is this program; what tells them apart, and
// breaks the last one, is the file beside it.
func (t *teller) install() error {
	say("== Version v1 runs as %s", unit)
	for version, content := range map[string]string{"v1": `{"version":"v1"}`, "v2": `{"version":"v2"}`, "v3": `{"version":`} {
		folder := filepath.Join(t.dir, "releases", version)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, "release.json"), []byte(content), 0o600); err != nil {
			return err
		}
		if err := copySelf(filepath.Join(folder, "selfrestart")); err != nil {
			return err
		}
	}
	if err := t.deploy("v1"); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, t.port, _ = net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return err
	}
	// Started when it says so, watched, and stopped by a signal to the main process alone, with more time than its drain has.
	text := strings.Join([]string{"[Service]", "Type=notify", "WatchdogSec=20", "KillMode=mixed", "TimeoutStopSec=90", "Restart=on-failure",
		"Environment=" + systemd.QuoteEnv("PORT", t.port), "Environment=" + systemd.QuoteEnv("SELFRESTART_STATE", filepath.Join(t.dir, "state")),
		"StandardOutput=append:" + filepath.Join(t.dir, "out"), "StandardError=append:" + filepath.Join(t.dir, "out"),
		"ExecStart=" + systemd.QuoteCommand([]string{filepath.Join(t.dir, "current", "selfrestart"), "serve"}), ""}, "\n")
	path, err := t.unitPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if err := errors.Join(t.systemctl("daemon-reload"), t.systemctl("start", unit)); err != nil {
		return errors.Join(err, t.until("up, pid"))
	}
	return t.until("v1: up, pid")
}

// good is an update that works: the agent asks, the canary passes, systemd restarts, and the session that asked goes on.
func (t *teller) good() error {
	say("== v2 is put in place, and the agent is told")
	before, err := t.pid()
	if err != nil {
		return err
	}
	if err := errors.Join(t.deploy("v2"), t.tell("v2 is in place: update yourself")); err != nil {
		return err
	}
	for _, line := range []string{`"canary":"passed"`, "v1: stopped in order", "v2: up, pid", "v2: ops says: I run as v2 now"} {
		if err := t.until(line); err != nil {
			return err
		}
	}
	after, err := t.pid()
	if err == nil && after == before {
		err = errors.New("the process is the same")
	}
	return err
}

// broken is an update that cannot start: the canary finds out, and nothing is restarted.
func (t *teller) broken() error {
	say("== v3 is put in place, and cannot start")
	before, err := t.pid()
	if err != nil {
		return err
	}
	if err := errors.Join(t.deploy("v3"), t.tell("v3 is in place: update yourself")); err != nil {
		return err
	}
	for _, line := range []string{`"canary":"failed"`, "v2: ops says: I stay v2"} {
		if err := t.until(line); err != nil {
			return err
		}
	}
	after, err := t.pid()
	if err != nil {
		return err
	}
	resp, err := http.Get("http://127.0.0.1:" + t.port + "/healthz")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	version, err := io.ReadAll(resp.Body)
	if err == nil && (after != before || strings.TrimSpace(string(version)) != "v2") {
		err = fmt.Errorf("the service did not stay up: pid %s was %s, version %s", after, before, version)
	}
	if err == nil {
		say("== The service is up: version v2, the same process as before")
	}
	return errors.Join(err, t.deploy("v2"))
}

// deploy makes a release the current one, in one step.
func (t *teller) deploy(version string) error {
	current := filepath.Join(t.dir, "current")
	if err := os.Symlink(filepath.Join("releases", version), current+".new"); err != nil {
		return err
	}
	return os.Rename(current+".new", current)
}

func copySelf(to string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	b, err := os.ReadFile(exe)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}

// tell sends a person's message to the session "ops".
func (t *teller) tell(text string) error {
	resp, err := http.Post("http://127.0.0.1:"+t.port+"/say/ops", "text/plain", strings.NewReader(text))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		return fmt.Errorf("tell it %q: %s: %s", text, resp.Status, b)
	}
	return nil
}

// until shows what the service prints, up to the line with a text in it.
func (t *teller) until(text string) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if found, err := t.show(text); found || err != nil {
			return err
		}
		if time.Now().After(deadline) || t.ctx.Err() != nil {
			return fmt.Errorf("the service never said %q", text)
		}
	}
}

// show shows what the service has printed since, no further than the line with a text in it; an empty text is nowhere.
func (t *teller) show(text string) (found bool, err error) {
	b, err := os.ReadFile(filepath.Join(t.dir, "out"))
	if err != nil && !os.IsNotExist(err) {
		return false, err
	}
	for !found {
		line, _, whole := bytes.Cut(b[t.read:], []byte("\n"))
		if !whole {
			break
		}
		t.read += len(line) + 1
		say("%s", line)
		found = text != "" && bytes.Contains(line, []byte(text))
	}
	return found, nil
}

func (t *teller) pid() (string, error) {
	out, err := t.command("show", "-P", "MainPID", unit).Output()
	return strings.TrimSpace(string(out)), err
}

func (t *teller) systemctl(args ...string) error {
	if out, err := t.command(args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func (t *teller) command(args ...string) *exec.Cmd {
	if t.manager == systemd.User {
		args = append([]string{"--user"}, args...)
	}
	return exec.Command("systemctl", args...)
}

// unitPath is where a unit lasts until the next boot.
func (t *teller) unitPath() (string, error) {
	if t.manager == systemd.System {
		return filepath.Join("/run/systemd/system", unit), nil
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return "", errors.New("XDG_RUNTIME_DIR is not set")
	}
	return filepath.Join(dir, "systemd", "user", unit), nil
}

func (t *teller) uninstall() error {
	path, err := t.unitPath()
	if err != nil {
		return err
	}
	if _, err := os.Stat(path); os.IsNotExist(err) {
		return nil
	}
	return errors.Join(t.systemctl("stop", unit), os.Remove(path), t.systemctl("daemon-reload"))
}
