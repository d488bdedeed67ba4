package canary

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Candidates are processes: this binary, run again in a role.
const roleVar = "CANARY_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVar)
	if role == "" {
		os.Exit(m.Run())
	}
	f, ok := roles[role]
	if !ok {
		fmt.Fprintln(os.Stderr, "no such role:", role)
		os.Exit(2)
	}
	if err := f(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve answers every request with a status, on PORT, until it is ended.
func serve(status int) error {
	l, err := net.Listen("tcp4", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		return err
	}
	return answer(l, status)
}

func answer(l net.Listener, status int) error {
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/healthz" {
			status = http.StatusNotFound
		}
		w.WriteHeader(status)
	}))
}

// note puts a word where the test finds it: NOTES is an absolute override.
func note(name, text string) error {
	path := filepath.Join(os.Getenv("NOTES"), name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

var roles = map[string]func() error{
	"healthy":  func() error { return serve(200) },
	"login":    func() error { return serve(401) },
	"teapot":   func() error { return serve(418) },
	"redirect": func() error { return serve(302) },
	"exits": func() error {
		fmt.Println("no module named acme.wire")
		os.Exit(3)
		return nil
	},
	"hangs": func() error {
		signal.Ignore(syscall.SIGTERM)
		if err := note("pid", strconv.Itoa(os.Getpid())); err != nil {
			return err
		}
		select {}
	},
	// absent tells the port, so that somebody else can answer on it.
	"absent": func() error {
		if err := note("port", os.Getenv("PORT")); err != nil {
			return err
		}
		select {}
	},
	// environment shows what it was given.
	"environment": func() error {
		wd, err := os.Getwd()
		if err != nil {
			return err
		}
		if err := note("env", strings.Join(append(os.Environ(), "WD="+wd), "\n")); err != nil {
			return err
		}
		return serve(200)
	},
	// inherits serves on the socket that it was handed.
	"inherits": func() error {
		if os.Getenv("LISTEN_FDS") != "1" || os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
			return fmt.Errorf("LISTEN_FDS=%s LISTEN_PID=%s, and this is %d", os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID"), os.Getpid())
		}
		l, err := net.FileListener(os.NewFile(3, "listener"))
		if err != nil {
			return err
		}
		return answer(l, 401)
	},
	// relative opens the live state by the folder that it is started in, and keeps it open.
	"relative": func() error {
		f, err := os.Open("state/db")
		if err != nil {
			return err
		}
		defer f.Close()
		return serve(200)
	},
	// peeks reads the live state and closes it before anybody looks.
	"peeks": func() error {
		b, err := os.ReadFile("state/db")
		if err := note("peeked", fmt.Sprintf("%s %v", b, err)); err != nil {
			return err
		}
		return serve(200)
	},
	// writes tries to change the live state in every way.
	"writes": func() error {
		var got []string
		for what, err := range map[string]error{
			"write":  os.WriteFile("state/db", []byte("canary"), 0o600),
			"make":   os.WriteFile("state/new", nil, 0o600),
			"remove": os.Remove("state/db"),
			"rename": os.Rename("state/db", os.Getenv("TMPDIR")+"/db"),
			"mkdir":  os.Mkdir("state/dir", 0o700),
			"link":   os.Link("state/db", os.Getenv("TMPDIR")+"/linked"),
		} {
			if err == nil {
				got = append(got, what)
			}
		}
		if err := note("wrote", strings.Join(got, " ")); err != nil {
			return err
		}
		return serve(200)
	},
	// leaks leaves its port to a process in a session of its own.
	"leaks": func() error {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), roleVar+"=healthy")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := child.Start(); err != nil {
			return err
		}
		if err := note("port", os.Getenv("PORT")); err != nil {
			return err
		}
		if err := note("pid", strconv.Itoa(child.Process.Pid)); err != nil {
			return err
		}
		select {}
	},
}

// recipe is a candidate in a role, with a folder for its notes.
func recipe(t *testing.T, role string, change func(*Config)) (c Config, notes string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	notes = t.TempDir()
	c = Config{
		Command: []string{self}, Env: append(os.Environ(), roleVar+"="+role), Overrides: []Override{{"NOTES", notes}},
		Attempt: 10 * time.Second, Grace: 10 * time.Second,
	}
	if change != nil {
		change(&c)
	}
	return c, notes
}

func try(t *testing.T, c Config) Result {
	t.Helper()
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return k.Run(t.Context())
}

func want(t *testing.T, r Result, code Code) {
	t.Helper()
	outcome := Failed
	if code == CodeAlive {
		outcome = Passed
	}
	if r.Outcome != outcome || r.Code != code || r.Text == "" {
		t.Errorf("%+v, want %s", r, code)
	}
}

// tryUntil tries a candidate that never becomes alive, so that it is waited for to the end: for longer and longer, until it has
// come as far as the test is about, since a busy machine takes a while to start it.
func tryUntil(t *testing.T, role string, change func(*Config), far func(r Result, notes string) bool) (r Result, notes string) {
	t.Helper()
	for within := 2 * time.Second; ; within *= 2 {
		var c Config
		c, notes = recipe(t, role, change)
		c.Within = within
		if r = try(t, c); far(r, notes) || within > time.Minute {
			return r, notes
		}
	}
}

// answered is that somebody spoke HTTP.
func answered(r Result, _ string) bool { return r.Status != 0 }

// noted is that the candidate has left a note.
func noted(name string) func(Result, string) bool {
	return func(_ Result, notes string) bool {
		_, err := os.Stat(filepath.Join(notes, name))
		return err == nil
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	for role, code := range map[string]Code{
		"healthy": CodeAlive, "login": CodeAlive, "teapot": CodeBadAnswer, "redirect": CodeBadAnswer, "exits": CodeExited, "no-such": CodeExited,
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			var r Result
			if code == CodeBadAnswer {
				r, _ = tryUntil(t, role, nil, answered)
			} else {
				c, _ := recipe(t, role, nil)
				r = try(t, c)
			}
			want(t, r, code)
			if role == "exits" && (!strings.Contains(r.Text, "exit status 3") || !strings.Contains(r.Tail, "acme.wire")) {
				t.Errorf("what it said is lost: %+v", r)
			}
			if r.Isolation != Unproven || r.IsolationText == "" {
				t.Errorf("without a live path isolation is %s (%s)", r.Isolation, r.IsolationText)
			}
		})
	}
	t.Run("another path", func(t *testing.T) {
		t.Parallel()
		r, _ := tryUntil(t, "healthy", func(c *Config) { c.Path = "/other" }, answered)
		want(t, r, CodeBadAnswer)
	})
}

func waitFile(t *testing.T, path string) string {
	t.Helper()
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if b, err := os.ReadFile(path); err == nil {
			return string(b)
		}
	}
	t.Fatalf("%s did not come", path)
	return ""
}

func dead(t *testing.T, notes string) {
	t.Helper()
	pid, err := strconv.Atoi(waitFile(t, filepath.Join(notes, "pid")))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil && !strings.Contains(string(b), ") Z ") {
		t.Errorf("process %d lives on: %s", pid, b)
	}
}

// TestHangs is a candidate that never answers and ignores SIGTERM.
func TestHangs(t *testing.T) {
	t.Parallel()
	r, notes := tryUntil(t, "hangs", func(c *Config) { c.Grace = 100 * time.Millisecond }, noted("pid"))
	want(t, r, CodeNoAnswer)
	dead(t, notes)
}

func TestPreflight(t *testing.T) {
	t.Parallel()
	c, _ := recipe(t, "healthy", func(c *Config) { c.Preflight = []string{"/bin/sh", "-c", "echo bad config; exit 4"} })
	r := try(t, c)
	want(t, r, CodePreflight)
	if !strings.Contains(r.Text, "exit status 4") || !strings.Contains(r.Tail, "bad config") {
		t.Errorf("%+v", r)
	}
	c.Preflight, c.PreflightWithin = []string{"/bin/sleep", "600"}, time.Second
	want(t, try(t, c), CodePreflight)
	c.Preflight = []string{"/no/such/program"}
	want(t, try(t, c), CodePreflight)
}

func TestPortTaken(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, _ := recipe(t, "healthy", func(c *Config) { c.Port = l.Addr().(*net.TCPAddr).Port })
	want(t, try(t, c), CodePortTaken)
}

// TestNoPortIsKept: a canary that came to nothing before its candidate was started leaves no listener of ours behind.
func TestNoPortIsKept(t *testing.T) {
	t.Parallel()
	c, _ := recipe(t, "healthy", func(c *Config) {
		c.Inherit = true
		c.Overrides = append(c.Overrides, Override{"STATE", "no\x00name"})
	})
	k, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	one := &trial{c: k.c, known: map[int]uint64{}, sockets: map[string]bool{}}
	r := one.prepare()
	if r == nil {
		t.Fatal("a folder was made under an impossible name")
	}
	want(t, *r, CodeSetup)
	if one.socket != nil {
		t.Errorf("%s is still listened on", one.socket.Name())
	}
}

// TestEnvironment is what a candidate is told, and what of the living one it is not.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	wd := t.TempDir()
	c, notes := recipe(t, "environment", func(c *Config) {
		c.Dir, c.PortVar = wd, "PORT"
		c.Env = append(c.Env, "NOTIFY_SOCKET=/run/systemd/notify", "WATCHDOG_USEC=1", "LISTEN_FDS=2", "URL=http://{addr}/", "MULLIGAN_HOME=/live")
		c.Overrides = append(c.Overrides, Override{"STATE", ""}, Override{"CACHE", "var/cache"})
	})
	want(t, try(t, c), CodeAlive)
	env := map[string]string{}
	for line := range strings.Lines(waitFile(t, filepath.Join(notes, "env"))) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		env[k] = v
	}
	dir := env["MULLIGAN_CANARY_DIR"]
	if env["MULLIGAN_CANARY"] == "" || dir == "" || env["WD"] != wd || env["URL"] != "http://127.0.0.1:"+env["PORT"]+"/" {
		t.Errorf("the environment is %v", env)
	}
	for name, path := range map[string]string{"STATE": dir + "/state/STATE", "CACHE": dir + "/var/cache", "MULLIGAN_HOME": dir + "/home", "NOTES": notes} {
		if env[name] != path {
			t.Errorf("%s is %q, want %q", name, env[name], path)
		}
	}
	for _, name := range []string{"NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS"} {
		if v, ok := env[name]; ok {
			t.Errorf("%s=%s was passed on", name, v)
		}
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the canary's folder is still there: %v", err)
	}
}

// service is a living service's folder, with state in it.
func service(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state", "db"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	// A neighbour that leads to it must not open the way.
	if err := os.Symlink("state", filepath.Join(dir, "alias")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func needLandlock(t *testing.T) {
	t.Helper()
	c, _ := recipe(t, "healthy", func(c *Config) { c.Live = []string{filepath.Join(service(t), "state")} })
	r := try(t, c)
	if r.Isolation != Enforced {
		t.Skipf("this kernel enforces nothing (%s): boot one with Landlock", r.IsolationText)
	}
	want(t, r, CodeAlive)
}

// TestWeAreNotRestricted boots a canary, and then does what it could not.
func TestWeAreNotRestricted(t *testing.T) {
	t.Parallel()
	dir := service(t)
	c, _ := recipe(t, "healthy", func(c *Config) { c.Live = []string{filepath.Join(dir, "state")} })
	for range 3 {
		want(t, try(t, c), CodeAlive)
	}
	for range 200 {
		done := make(chan error, 1)
		go func() {
			_, err := os.ReadFile(filepath.Join(dir, "state", "db"))
			done <- err
		}()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParseListeners(f *testing.F) {
	f.Add([]byte("  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"+
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n"), 8080)
	f.Add([]byte(":"), 0)
	f.Fuzz(func(t *testing.T, b []byte, port int) {
		for _, inode := range parseListeners(b, port) {
			if inode == "" || inode == "0" || !strings.Contains(string(b), inode) {
				t.Fatalf("inode %q", inode)
			}
		}
	})
}

func TestParseListeners(t *testing.T) {
	t.Parallel()
	const text = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0\n" +
		"   1: 0100007F:1F90 0100007F:ABCD 01 00000000:00000000 00:00000000 00000000  1000        0 4712 1 0 100 0 0 10 0\n" +
		"   2: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4713 1 0 100 0 0 10 0\n" +
		"   3: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4714 1 0 100 0 0 10 0\n"
	if got := strings.Join(parseListeners([]byte(text), 8080), " "); got != "4711 4713" {
		t.Errorf("listeners %q", got)
	}
}
