package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"golang.org/x/sys/unix"
)

// environ is a program that shows its environment exactly as the kernel gave it.
var environ = []string{"/bin/cat", "/proc/self/environ"}

func TestHeldRunsNothingBeforeRelease(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, err := StartHeld(Spec{Command: []string{"/bin/sh", "-c", "echo $$ ran"}, Dir: dir, Log: filepath.Join(dir, "log")})
	if err != nil {
		t.Fatal(err)
	}
	// The child has nothing to do but to wait; that it does nothing else shows at the end, in the log's one line.
	select {
	case <-h.Done():
		t.Fatalf("the held child ended: %+v: %s", h.Wait(), slurp(t, dir, "log"))
	default:
	}
	st, err := readStat(h.PID())
	if err != nil || st.start != h.Start() || st.session != h.PID() || st.group != h.PID() {
		t.Errorf("pid %d start %d: its stat is %+v, %v: want that start and a session of its own", h.PID(), h.Start(), st, err)
	}
	if got := slurp(t, dir, "log"); got != "" {
		t.Errorf("before the release the log holds %q", got)
	}
	if err := h.Release(); err != nil {
		t.Fatal(err)
	}
	if got := h.Wait(); got != (classify.Exit{}) {
		t.Errorf("it ended with %+v", got)
	}
	if got, want := slurp(t, dir, "log"), fmt.Sprintf("%d ran\n", h.PID()); got != want {
		t.Errorf("the log holds %q, want %q: the program keeps the pid of the held child", got, want)
	}
	if err := h.Release(); err == nil {
		t.Error("a second release is no error")
	}
	if err := h.Abandon(); err == nil {
		t.Error("an abandon after the release is no error")
	}
}

func TestHeldEndsUnrunWithoutRelease(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		end  func(h *HeldChild)
	}{
		{"abandoned", func(h *HeldChild) {
			if err := h.Abandon(); err != nil {
				t.Error(err)
			}
		}},
		// The kernel closes the pipe of a host that dies; the child sees the same end of the file.
		{"host gone", func(h *HeldChild) { h.gate.Close() }},
		{"wrong word", func(h *HeldChild) { fmt.Fprintln(h.gate, "gone") }},
		{"half a word", func(h *HeldChild) { fmt.Fprint(h.gate, goWord); h.gate.Close() }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h, err := StartHeld(Spec{Command: []string{"/bin/sh", "-c", "echo ran"}, Dir: dir, Log: filepath.Join(dir, "log")})
			if err != nil {
				t.Fatal(err)
			}
			tt.end(h)
			if e := h.Wait(); e == (classify.Exit{}) {
				t.Errorf("it ended with %+v, as if it had run", e)
			}
			if got := slurp(t, dir, "log"); got != "" {
				t.Errorf("the program ran: %q", got)
			}
		})
	}
}

func TestReleaseOfADeadChild(t *testing.T) {
	t.Parallel()
	h, err := StartHeld(Spec{Command: []string{"/bin/true"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(h.PID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if e := h.Wait(); e.Signal != "SIGKILL" {
		t.Errorf("it ended with %+v", e)
	}
	if err := h.Release(); !errors.Is(err, ErrHeldGone) {
		t.Errorf("Release = %v, want ErrHeldGone", err)
	}
}

// environments are what a shell may spoil.
var environments = []struct {
	name string
	env  []string
}{
	{"none", nil},
	{"plain", []string{"A=1", "B=two words", "C=", "D=quo'te\"$HOME`id`\\", "E=line\nend", "F=a=b=c"}},
	{"no PWD", []string{"PATH=/usr/bin:/bin"}},
	{"a PWD that is wrong", []string{"PWD=/no/such/folder", "OLDPWD=/gone", "A=1"}},
	{"the shell's own", []string{"SHLVL=7", "_=/usr/bin/agent", "IFS=x", "OPTIND=9", "PPID=1", "PS1=$ ", "PS4=+", "LINENO=4", "UID=5",
		"RANDOM=6", "HOME=/h", "SHELLOPTS=xtrace", "BASHOPTS=x", "ENV=/x", "BASH_ENV=/x", "POSIXLY_CORRECT=1", "PATH=/bin", "TERM=x"}},
	{"names a shell cannot hold", []string{"BASH_FUNC_f%%=() { :\n}", "npm_config_//reg/:_x=secret", "a.b=1", "1X=2", "A=1", "PWD=/x"}},
	{"our own names", []string{"_mulligan_go=1", "_mulligan_0=2", "A=3"}},
	{"not UTF-8", []string{"A=\xff\xfe", "B=1"}},
}

func TestHeldEnvironmentIsExact(t *testing.T) {
	t.Parallel()
	for _, tt := range environments {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			h, err := StartHeld(Spec{Command: environ, Dir: dir, Env: tt.env, Log: filepath.Join(dir, "log")})
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Release(); err != nil {
				t.Fatal(err)
			}
			h.Wait()
			sameEnv(t, slurp(t, dir, "log"), tt.env)
		})
	}
}

// The trampoline must also hold where /bin/sh is another shell than here.
func TestTrampolineInOtherShells(t *testing.T) {
	t.Parallel()
	for _, sh := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}, {"zsh", "--emulate", "sh"}} {
		path, err := exec.LookPath(sh[0])
		if err != nil {
			continue // every machine has /bin/sh, which the other tests use
		}
		for _, tt := range environments {
			t.Run(sh[0]+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				argv, env, err := trampoline(environ, dedupe(tt.env))
				if err != nil {
					t.Fatal(err)
				}
				r, w, err := os.Pipe()
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				if env == nil {
					env = []string{}
				}
				fmt.Fprintln(w, goWord)
				w.Close()
				c := exec.Command(path, append(sh[1:len(sh):len(sh)], argv[1:]...)...)
				c.Env, c.Dir, c.ExtraFiles, c.Stderr = env, t.TempDir(), []*os.File{r}, os.Stderr
				out, err := c.Output()
				if err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				sameEnv(t, string(out), tt.env)
			})
		}
	}
}

func sameEnv(t *testing.T, got string, want []string) {
	t.Helper()
	have := strings.Split(strings.TrimSuffix(got, "\x00"), "\x00")
	if got == "" {
		have = nil
	}
	want = slices.Clone(want)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("the program's environment is %q\nwant %q", have, want)
	}
}

func TestHeldArgumentsAreExact(t *testing.T) {
	t.Parallel()
	args := []string{"two words", "", "$HOME", "`id`", "'", "\"", "\\", "a\nb", "*", "-n", "--", "x=y", "\xff"}
	for _, env := range [][]string{nil, {"a.b=1"}} {
		dir := t.TempDir()
		show := append([]string{"/bin/sh", "-c", `for a; do printf '<%s>' "$a"; done`, "sh"}, args...)
		h, err := StartHeld(Spec{Command: show, Env: env, Log: filepath.Join(dir, "log")})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Fatal(err)
		}
		h.Wait()
		if got, want := slurp(t, dir, "log"), "<"+strings.Join(args, "><")+">"; got != want {
			t.Errorf("with %q the arguments are %q, want %q", env, got, want)
		}
	}
}

func TestHeldOddProgramNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"-dash", "a=b", "with blank"} {
		require.Executable(t, filepath.Join(dir, name), "#!/bin/sh\necho ran\n")
		log := strings.ReplaceAll(name, " ", "") + ".log"
		h, err := StartHeld(Spec{Command: []string{name}, Env: []string{"PATH=" + dir + ":/bin"}, Log: filepath.Join(dir, log)})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(); err != nil {
			t.Error(err)
		}
		if h.Wait(); slurp(t, dir, log) != "ran\n" {
			t.Errorf("%q: %q", name, slurp(t, dir, log))
		}
	}
	// The one pair that cannot be carried is refused before anything is started.
	var refused *StartError
	if _, err := StartHeld(Spec{Command: []string{"a=b"}, Env: []string{"PATH=" + dir, "a.b=1"}}); !errors.As(err, &refused) {
		t.Errorf("StartHeld = %v, want a StartError", err)
	}
}

func TestNothingOfTheHostReachesTheChild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// A descriptor that the host itself inherited: open across exec.
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	list := []string{"/bin/sh", "-c", "ls -l /proc/$$/fd; pwd"}
	starts := map[string]func(s Spec) (*Child, error){
		"held": func(s Spec) (*Child, error) {
			h, err := StartHeld(s)
			if err != nil {
				return nil, err
			}
			return h.Child, h.Release()
		},
		"detached": StartDetached,
	}
	for name, start := range starts {
		t.Run(name, func(t *testing.T) {
			log := filepath.Join(dir, name)
			c, err := start(Spec{Command: list, Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, Log: log})
			if err != nil {
				t.Fatal(err)
			}
			if e := c.Wait(); e != (classify.Exit{}) {
				t.Fatalf("it ended with %+v: %s", e, slurp(t, dir, name))
			}
			said := slurp(t, dir, name)
			for line := range strings.Lines(said) {
				fields := strings.Fields(line)
				if len(fields) < 3 || fields[len(fields)-2] != "->" {
					continue
				}
				n, to := fields[len(fields)-3], fields[len(fields)-1]
				want := map[string]string{"0": os.DevNull, "1": log, "2": log}[n]
				if want == "" || to != want {
					t.Errorf("descriptor %s leads to %s, want %q", n, to, want)
				}
			}
			if !strings.Contains(said, "\n"+dir+"\n") {
				t.Errorf("it did not run in %s: %s", dir, said)
			}
		})
	}
	sealing.Lock() // another test may be starting something
	defer sealing.Unlock()
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		t.Errorf("the host's own descriptor was changed: flags %d, %v", flags, err)
	}
}

func TestLaunchRefusals(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.Executable(t, filepath.Join(dir, "broken"), "#!/no/such/interpreter\n")
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("#!/no/such/interpreter\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name string
		spec Spec
		code int
	}{
		{"nothing", Spec{}, CodeInternal},
		{"empty name", Spec{Command: []string{""}}, CodeNotFound},
		{"not in PATH", Spec{Command: []string{"no-such-program"}, Env: []string{"PATH=/bin"}}, CodeNotFound},
		{"no such file", Spec{Command: []string{"/no/such"}}, CodeNotFound},
		{"not executable", Spec{Command: []string{filepath.Join(dir, "plain")}}, CodeNotExecutable},
		{"not executable in PATH", Spec{Command: []string{"plain"}, Env: []string{"PATH=" + dir}}, CodeNotExecutable},
		{"a folder", Spec{Command: []string{dir}}, CodeNotExecutable},
		{"no such folder", Spec{Command: []string{"/bin/true"}, Dir: filepath.Join(dir, "gone")}, CodeInternal},
		{"a log that is a symlink", Spec{Command: []string{"/bin/true"}, Log: filepath.Join(dir, "link")}, CodeInternal},
		{"a log without a folder", Spec{Command: []string{"/bin/true"}, Log: filepath.Join(dir, "no", "log")}, CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, held := StartHeld(tt.spec)
			_, detached := StartDetached(tt.spec)
			for _, err := range []error{held, detached} {
				var e *StartError
				if !errors.As(err, &e) || e.Code != tt.code || !strings.HasPrefix(err.Error(), "start ") {
					t.Errorf("error %v (%+v), want a StartError with code %d", err, e, tt.code)
				}
			}
		})
	}
	// Only the kernel sees that the interpreter of a script is missing; a held child tells it by its exit code.
	var e *StartError
	if _, err := StartDetached(Spec{Command: []string{filepath.Join(dir, "broken")}}); !errors.As(err, &e) || e.Code != CodeNotFound {
		t.Errorf("a script without its interpreter: %v", err)
	}
}

func TestWithoutPATHTheUsualFoldersAreSearched(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(Spec) (*Child, error){
		"detached": StartDetached,
		"held": func(s Spec) (*Child, error) {
			h, err := StartHeld(s)
			if err != nil {
				return nil, err
			}
			return h.Child, h.Release()
		},
	} {
		c, err := start(Spec{Command: []string{"true"}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if e := c.Wait(); e != (classify.Exit{}) {
			t.Errorf("%s: it ended with %+v", name, e)
		}
	}
}

func TestDetachedIsReapedAndKeepsItsLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for i, code := range []int{0, 7} {
		c, err := StartDetached(Spec{Command: []string{"sh", "-c", fmt.Sprintf("read x; echo line %d \"$x\"; exit %d", i, code)}, Log: log})
		if err != nil {
			t.Fatal(err)
		}
		if e := c.Wait(); e.Code != code || e.Signal != "" {
			t.Errorf("it ended with %+v, want code %d", e, code)
		}
		if _, err := readStat(c.PID()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("process %d is still there after Wait: %v", c.PID(), err)
		}
	}
	if got := slurp(t, dir, "log"); got != "line 0 \nline 1 \n" {
		t.Errorf("the log holds %q", got)
	}
	if st, err := os.Stat(log); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the log's mode is %v, %v", st.Mode(), err)
	}
}

func slurp(t testing.TB, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The death of one gate must not wait for the others: no child holds another's.
func TestHeldChildrenDoNotHoldEachOther(t *testing.T) {
	t.Parallel()
	var held [8]*HeldChild
	var wg sync.WaitGroup
	for i := range held {
		wg.Go(func() {
			h, err := StartHeld(Spec{Command: []string{"/bin/true"}})
			if err != nil {
				t.Error(err)
				return
			}
			held[i] = h
		})
	}
	wg.Wait()
	for _, h := range held {
		if h == nil {
			return
		}
		h.gate.Close() // what the kernel does when the host dies
		if e := h.Wait(); e.Code != CodeInternal {
			t.Errorf("it ended with %+v", e)
		}
	}
}
