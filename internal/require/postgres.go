package require

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const postgresHint = "apt-get install postgresql"

// Postgres is a server of a test's own: on loopback, on a port that was free, with its data in a temporary folder and the
// defaults that make a commit durable. It goes when the process of the test does, however that ends.
type Postgres struct {
	bin, dir, port, password string
	owner                    *syscall.Credential // who runs it; nil for ourselves

	life io.Closer // the server goes when this is closed
}

// NewPostgres starts a server that ends with the test, for tests that crash it or change its settings.
func NewPostgres(t testing.TB) *Postgres {
	t.Helper()
	p, err := newPostgres()
	if errors.Is(err, errNoPostgres) {
		missing(t, postgresHint, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.remove(); err != nil {
			t.Error(err)
		}
	})
	return p
}

var shared struct {
	once sync.Once
	p    *Postgres
	err  error
}

// SharedPostgres is the one server of a test binary, started for whoever asks first. Each test takes a schema or a database
// of its own in it. TestMain calls StopPostgres when the tests have run.
func SharedPostgres(t testing.TB) *Postgres {
	t.Helper()
	shared.once.Do(func() { shared.p, shared.err = newPostgres() })
	if errors.Is(shared.err, errNoPostgres) {
		missing(t, postgresHint, shared.err.Error())
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.p
}

// StopPostgres ends the shared server, if there is one.
func StopPostgres() error {
	if shared.p == nil {
		return nil
	}
	return shared.p.remove()
}

var errNoPostgres = errors.New("no Postgres server is installed")

// postgresBin finds the folder of the server's programs, which most systems keep off the path.
func postgresBin() (string, error) {
	var dirs []string
	if at, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(at))
	}
	if found, err := filepath.Glob("/usr/lib/postgresql/*/bin"); err == nil {
		slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
		dirs = append(dirs, found...)
	}
	if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			return dir, nil
		}
	}
	return "", errNoPostgres
}

// version is the 15 in /usr/lib/postgresql/15/bin.
func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func newPostgres() (_ *Postgres, err error) {
	p := &Postgres{password: rand.Text()}
	if p.bin, err = postgresBin(); err != nil {
		return nil, err
	}
	if p.dir, err = os.MkdirTemp("", "postgres"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start a Postgres server: %w", err), p.remove())
		}
	}()
	if os.Geteuid() == 0 { // the server refuses to run as root
		if p.owner, err = postgresOwner(); err != nil {
			return nil, err
		}
		if err := os.Chown(p.dir, int(p.owner.Uid), int(p.owner.Gid)); err != nil {
			return nil, err
		}
	}
	secret := filepath.Join(p.dir, "password") // the folder lets nobody else in
	if err := os.WriteFile(secret, []byte(p.password+"\n"), 0o644); err != nil {
		return nil, err
	}
	init := p.command("initdb", "-D", p.data(), "-U", "postgres", "--auth=scram-sha-256", "--pwfile="+secret, "--no-locale", "-E", "UTF8")
	if out, err := init.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	for range 5 { // somebody else may take a port between our look and the server's start
		if p.port, err = freePort(); err != nil {
			return nil, err
		}
		if err = p.start(); err == nil {
			return p, nil
		}
	}
	return nil, err
}

func postgresOwner() (*syscall.Credential, error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.ParseUint(u.Uid, 10, 32)
		gid, errGID := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(errUID, errGID); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("no user postgres or nobody, as whom the server could run")
}

// freePort is a port that nobody listens on, and that the kernel gives to nobody who asks for any: those tests that do, all
// at once, would now and then get the one of a server that is just being started again.
func freePort() (string, error) {
	first := 32768
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if _, err := fmt.Sscan(string(b), &first); err != nil {
			return "", fmt.Errorf("the range of ports that the kernel gives: %w", err)
		}
	}
	const lowest = 10000
	if first <= lowest {
		first = 0 // there is no room below
	}
	for range 100 {
		port := 0
		if first > 0 {
			port = lowest + mathrand.IntN(first-lowest)
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue // it is somebody's
		}
		_, free, err := net.SplitHostPort(l.Addr().String())
		return free, errors.Join(err, l.Close())
	}
	return "", errors.New("no port is free")
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir, "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.owner}
	return cmd
}

// guard runs the server until its own standard input ends, which it does with the test's process. In a session of its own it
// does not get the terminal's signals.
const guard = `exec 3<&0
"$@" </dev/null 3<&- & server=$!
{ read -r line <&3; kill -QUIT "$server"; } >/dev/null 2>&1 &
wait "$server"`

func (p *Postgres) start() error {
	cmd := p.command("postgres", "-D", p.data(), "-p", p.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=200", "-c", "shared_buffers=64MB")
	cmd.Args = append([]string{"sh", "-c", guard, "sh", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/sh"
	cmd.SysProcAttr.Setsid = true
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	life, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	p.life = closer(func() error {
		err := life.Close()
		var exit *exec.ExitError
		if e := <-ended; !errors.As(e, &exit) { // it was told to end, so its exit code says nothing
			err = errors.Join(err, e)
		}
		return err
	})
	deadline := time.After(time.Minute)
	for !p.ready() {
		select {
		case err := <-ended:
			p.life = nil
			return fmt.Errorf("the server ended: %w: %s", errors.Join(err, life.Close()), &log)
		case <-deadline:
			err := p.life.Close() // or it would keep the data from the next try
			p.life = nil
			return errors.Join(errors.New("the server was not ready within a minute"), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

type closer func() error

func (c closer) Close() error { return c() }

// ready reads what the server says of itself in its lock file: the eighth line.
func (p *Postgres) ready() bool {
	b, err := os.ReadFile(filepath.Join(p.data(), "postmaster.pid"))
	lines := strings.Split(string(b), "\n")
	return err == nil && len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"
}

// URL is the connection string of a database for the server's own superuser.
func (p *Postgres) URL(database string) string { return p.UserURL("postgres", p.password, database) }

// UserURL is the connection string of a database for another role.
func (p *Postgres) UserURL(user, password, database string) string {
	return (&url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: net.JoinHostPort("127.0.0.1", p.port),
		Path: "/" + database, RawQuery: "sslmode=disable"}).String()
}

// Crash ends the server as a power cut would end its processes: at once, with nothing written on the way.
func (p *Postgres) Crash(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- p.life.Close() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatal("the server did not end within a minute")
	}
	p.life = nil
}

// Start starts a server that was ended, on the same port and data.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
}

func (p *Postgres) remove() error {
	var err error
	if p.life != nil {
		err = p.life.Close()
		p.life = nil
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}
