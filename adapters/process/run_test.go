package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"golang.org/x/sys/unix"
)

func sh(script string) []string { return []string{"/bin/sh", "-c", script} }

func TestRunSaysHowItEnded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		script string
		exit   classify.Exit
		code   int
		tail   string
	}{
		{"exit 0", classify.Exit{}, 0, ""},
		{"echo torn >&2; exit 3", classify.Exit{Code: 3}, 3, "torn\n"},
		{"kill -KILL $$", classify.Exit{Code: -1, Signal: "SIGKILL"}, 137, ""},
		{"kill -SEGV $$", classify.Exit{Code: -1, Signal: "SIGSEGV"}, 139, ""},
		{"kill -40 $$", classify.Exit{Code: -1, Signal: "SIG40"}, 168, ""},
		{"no-such-command-here 2>/dev/null", classify.Exit{Code: 127}, 127, ""},
	}
	for _, tt := range tests {
		t.Run(tt.script, func(t *testing.T) {
			t.Parallel()
			var started int
			r, err := Run(t.Context(), RunSpec{Command: sh(tt.script), Env: []string{"PATH=/bin"}, NoSignals: true,
				Started: func(pid int) { started = pid }})
			if err != nil {
				t.Fatal(err)
			}
			if r.Exit != tt.exit || r.Code != tt.code || string(r.Tail) != tt.tail {
				t.Errorf("Run = %+v, tail %q; want %+v, code %d, tail %q", r, r.Tail, tt.exit, tt.code, tt.tail)
			}
			if started == 0 || started != r.PID {
				t.Errorf("Started was told %d, the pid is %d", started, r.PID)
			}
			if len(r.Survivors) > 0 {
				t.Errorf("survivors: %v", r.Survivors)
			}
		})
	}
}

func TestRunThatCannotStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"script": "#!/no/such\n", "garbage": "\x00\x01\x02"} {
		require.Executable(t, filepath.Join(dir, name), text)
	}
	tests := []struct {
		name string
		spec RunSpec
		code int
	}{
		{"nothing", RunSpec{}, CodeInternal},
		{"not found", RunSpec{Command: []string{"no-such-program"}}, CodeNotFound},
		{"no interpreter", RunSpec{Command: []string{filepath.Join(dir, "script")}}, CodeNotFound},
		{"not a program", RunSpec{Command: []string{filepath.Join(dir, "garbage")}}, CodeNotExecutable},
		{"a folder", RunSpec{Command: []string{dir}}, CodeNotExecutable},
		{"no folder to run in", RunSpec{Command: []string{"/bin/true"}, Dir: filepath.Join(dir, "gone")}, CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.spec.NoSignals = true
			tt.spec.Started = func(int) { t.Error("Started was called") }
			_, err := Run(t.Context(), tt.spec)
			var e *StartError
			if !errors.As(err, &e) || e.Code != tt.code {
				t.Errorf("Run = %v, want a StartError with code %d", err, tt.code)
			}
		})
	}
}

func TestRunHandsStdinAndStdoutOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := os.WriteFile(in, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(in)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := os.Create(out)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	r, err := Run(t.Context(), RunSpec{Command: sh(`cat; pwd; echo "$A:$HOME"`), Dir: dir, Env: []string{"A=1", "PATH=/bin"},
		Stdin: stdin, Stdout: stdout, NoSignals: true})
	if err != nil || r.Code != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if got, want := slurp(t, dir, "out"), "hello\n"+dir+"\n1:\n"; got != want {
		t.Errorf("stdout is %q, want %q", got, want)
	}
}

func TestRunKeepsABoundedTailAndPassesEverythingOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	errFile, err := os.Create(filepath.Join(dir, "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer errFile.Close()
	r, err := Run(t.Context(), RunSpec{Command: sh(`i=0; while [ $i -lt 20000 ]; do echo "line $i of many" >&2; i=$((i+1)); done; exit 1`),
		Stderr: errFile, NoSignals: true, TailLimit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := slurp(t, dir, "err")
	if strings.Count(all, "\n") != 20000 {
		t.Errorf("%d lines were passed on, want 20000", strings.Count(all, "\n"))
	}
	if len(r.Tail) != 1000 || !strings.HasSuffix(all, string(r.Tail)) {
		t.Errorf("the tail has %d bytes and ends with %q", len(r.Tail), r.Tail[max(0, len(r.Tail)-50):])
	}
}

func TestRunGoesOnWhenNobodyReadsItsStderr(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	res, err := Run(t.Context(), RunSpec{Command: sh(`head -c 300000 /dev/zero | tr '\0' x >&2; echo end >&2; exit 5`), Env: []string{"PATH=/usr/bin:/bin"},
		Stderr: w, NoSignals: true})
	if err != nil || res.Code != 5 || !strings.HasSuffix(string(res.Tail), "end\n") {
		t.Errorf("Run = code %d, %v, tail of %d bytes; want 5 and the end", res.Code, err, len(res.Tail))
	}
}

// What the program wrote before its end is in the tail even if passing it on was stuck, and a survivor holds the pipe.
func TestRunLosesNothingThatWasWrittenBeforeTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.Write(make([]byte, 64<<10)); err != nil { // full: passing on is stuck
		t.Fatal(err)
	}
	res, err := Run(t.Context(), RunSpec{Command: sh(`head -c 60000 /dev/zero >&2; echo end >&2; sleep 60 & echo $! > pid; exit 2`), Dir: dir,
		Env: []string{"PATH=/usr/bin:/bin"}, Stderr: w, NoSignals: true, Started: func(pid int) {
			go func() {
				await(t, func() bool { st, err := readStat(pid); return err != nil || st.state == 'Z' })
				buf := make([]byte, 4096)
				for {
					if _, err := r.Read(buf); err != nil {
						return
					}
				}
			}()
		}})
	var pid int
	fmt.Sscan(slurp(t, dir, "pid"), &pid)
	_ = unix.Kill(pid, unix.SIGKILL)
	if err != nil || len(res.Tail) != 60004 || !strings.HasSuffix(string(res.Tail), "end\n") {
		t.Errorf("Run: %v, the tail has %d bytes, want 60004", err, len(res.Tail))
	}
}

func TestDrainIsBounded(t *testing.T) {
	t.Parallel()
	r, w, err := pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.Write(make([]byte, 60000)); err != nil {
		t.Fatal(err)
	}
	n := 0
	count := func(b []byte) { n += len(b) }
	if closed := drainFile(r, 100, count); closed || n > 100+32<<10 {
		t.Errorf("it took %d bytes of a limit of 100, closed %t", n, closed)
	}
	if closed := drainFile(r, 1<<20, count); closed || n != 60000 {
		t.Errorf("it took %d bytes in all, closed %t", n, closed)
	}
	w.Close()
	// A process that another test is just starting holds the write end until its exec.
	for deadline := time.Now().Add(time.Minute); !drainFile(r, 1<<20, count); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("the end was not seen")
		}
	}
}

func TestRunReportsSurvivorsAndIsNotHeldByThem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// The survivor keeps stderr open for ten minutes, and lives when Run has returned.
	r, err := Run(t.Context(), RunSpec{Command: sh(`sleep 600 & echo $! > pid; echo last words >&2; exit 9`), Dir: dir,
		Env: []string{"PATH=/usr/bin:/bin"}, NoSignals: true})
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	fmt.Sscan(slurp(t, dir, "pid"), &pid)
	defer unix.Kill(pid, unix.SIGKILL)
	if r.Code != 9 || string(r.Tail) != "last words\n" {
		t.Errorf("Run = %+v, tail %q", r, r.Tail)
	}
	if !slices.Equal(r.Survivors, []int{pid}) {
		t.Errorf("survivors %v, want %d", r.Survivors, pid)
	}
	if !living(pid) {
		t.Error("the survivor was ended")
	}
}

func TestRunIsNotHeldByASurvivorThatFloods(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := Run(t.Context(), RunSpec{Command: sh(`yes flood >&2 & echo $! > pid; exit 4`), Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, NoSignals: true})
	var pid int
	fmt.Sscan(slurp(t, dir, "pid"), &pid)
	unix.Kill(pid, unix.SIGKILL)
	if err != nil || r.Code != 4 || len(r.Tail) > DefaultTail {
		t.Errorf("Run = code %d, %d bytes, %v", r.Code, len(r.Tail), err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script, signal string
	}{
		{"politely", `trap 'echo asked >&2; exit 6' TERM; sleep 60 & echo ready > ready; wait`, ""},
		{"by force", `trap '' TERM; echo ready > ready; while :; do sleep 0.01; done`, "SIGKILL"},
		{"stopped", `echo ready > ready; kill -STOP $$; sleep 60`, "SIGTERM"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			why := errors.New("the host goes down")
			r, err := Run(ctx, RunSpec{Command: sh(tt.script), Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}, NoSignals: true,
				Grace: map[bool]time.Duration{true: 100 * time.Millisecond, false: time.Minute}[tt.signal == "SIGKILL"],
				Started: func(int) {
					go func() {
						await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
						cancel(why)
					}()
				}})
			if !errors.Is(err, why) {
				t.Errorf("Run = %v, want the context's cause", err)
			}
			if r.Exit.Signal != tt.signal || tt.signal == "" && (r.Code != 6 || !strings.HasSuffix(string(r.Tail), "asked\n")) {
				t.Errorf("Run = %+v, tail %q", r, r.Tail)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, RunSpec{Command: sh("exit 0"), Started: func(int) { t.Error("it was started") }}); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context Run = %v", err)
	}
}

func TestTerminate(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T, script string) (*Child, string) {
		dir := t.TempDir()
		c, err := StartDetached(Spec{Command: sh(script), Dir: dir, Env: []string{"PATH=/usr/bin:/bin"}})
		if err != nil {
			t.Fatal(err)
		}
		await(t, func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
		return c, dir
	}
	t.Run("a group that obeys", func(t *testing.T) {
		t.Parallel()
		c, _ := start(t, `sleep 60 & touch ready; wait`)
		if err := Terminate(t.Context(), c.PID(), c.Start(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if e := c.Wait(); e.Signal != "SIGTERM" {
			t.Errorf("it ended with %+v", e)
		}
		if left := groupMembers(c.PID()); len(left) > 0 {
			t.Errorf("processes %v of the group are left", left)
		}
	})
	t.Run("a member that does not", func(t *testing.T) {
		t.Parallel()
		c, _ := start(t, `(trap '' TERM; touch ready; while :; do sleep 0.01; done) & wait`)
		if err := Terminate(t.Context(), c.PID(), c.Start(), 100*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if left := groupMembers(c.PID()); len(left) > 0 {
			t.Errorf("processes %v of the group are left", left)
		}
	})
	t.Run("another process", func(t *testing.T) {
		t.Parallel()
		c, _ := start(t, `touch ready; exec sleep 60`)
		defer c.proc.Kill()
		if err := Terminate(t.Context(), c.PID(), c.Start()+1, time.Second); !errors.Is(err, ErrOtherProcess) {
			t.Errorf("Terminate = %v, want ErrOtherProcess", err)
		}
		if !living(c.PID()) {
			t.Error("it was ended")
		}
	})
	t.Run("a process that is gone", func(t *testing.T) {
		t.Parallel()
		c, _ := start(t, `touch ready`)
		c.Wait()
		if err := Terminate(t.Context(), c.PID(), c.Start(), time.Second); err != nil {
			t.Error(err)
		}
	})
}

func TestTail(t *testing.T) {
	t.Parallel()
	const limit = 16
	for _, size := range []int{1, 3, 15, 16, 17, 32, 33, 100} {
		tl := newTail(limit)
		var all []byte
		for i := range 200 {
			b := make([]byte, (size+i)%(size+1))
			for j := range b {
				b[j] = byte('a' + (i+j)%26)
			}
			tl.add(b)
			all = append(all, b...)
			if want := all[max(0, len(all)-limit):]; string(tl.Bytes()) != string(want) {
				t.Fatalf("size %d, step %d: tail %q, want %q", size, i, tl.Bytes(), want)
			}
			if len(tl.buf) > 2*limit {
				t.Fatalf("the buffer has %d bytes", len(tl.buf))
			}
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("1 (a) S 1 2 3 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 77 0")
	f.Add("1 (a) (b) Z 1 2 3")
	f.Fuzz(func(t *testing.T, s string) {
		if st, err := parseStat(s); err == nil && st.state == 0 {
			t.Errorf("parseStat(%q) = %+v", s, st)
		}
	})
}

// await looks again and again for what another process does.
func await(t testing.TB, what func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !what(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("waited for a minute in vain")
			return
		}
	}
}
