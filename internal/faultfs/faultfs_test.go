package faultfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// tester is a test, or one try of a property.
type tester interface {
	Helper()
	Fatal(...any)
	Errorf(string, ...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t tester, f durable.FS) durable.Dir {
	t.Helper()
	d, err := f.Open("/home")
	must(t, err)
	return d
}

// tree is everything on a disk, a line each.
func tree(t tester, d durable.Dir, at string) string {
	t.Helper()
	names, err := d.Names(0)
	must(t, err)
	slices.Sort(names)
	out := ""
	for _, n := range names {
		in, err := d.Stat(n)
		must(t, err)
		if in.Folder {
			sub, err := d.Sub(n)
			must(t, err)
			out += at + n + "/\n" + tree(t, sub, at+n+"/")
			continue
		}
		b, _, err := durable.ReadFile(d, n, 1<<20)
		must(t, err)
		out += fmt.Sprintf("%s%s %q\n", at, n, b)
	}
	return out
}

// write makes a file and flushes nothing.
func write(t tester, d durable.Dir, name, content string) durable.File {
	t.Helper()
	f, err := d.Create(name)
	must(t, err)
	_, err = f.Write([]byte(content))
	must(t, err)
	return f
}

// TestWhatSurvives: content and names are durable each by its own flush, and nothing else is.
func TestWhatSurvives(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		do             func(d durable.Dir)
		nothing, every string
	}{
		{"nothing flushed", func(d durable.Dir) { write(t, d, "a", "x") }, "", "a \"x\"\n"},
		{"content alone", func(d durable.Dir) { must(t, write(t, d, "a", "x").Sync()) }, "", "a \"x\"\n"},
		{"name alone", func(d durable.Dir) { write(t, d, "a", "x"); must(t, d.Sync()) }, "a \"\"\n", "a \"x\"\n"},
		{"both", func(d durable.Dir) { must(t, write(t, d, "a", "x").Datasync()); must(t, d.Sync()) }, "a \"x\"\n", "a \"x\"\n"},
		{"more is written", func(d durable.Dir) {
			f := write(t, d, "a", "x")
			must(t, errors.Join(f.Sync(), d.Sync()))
			_, err := f.Write([]byte("y"))
			must(t, err)
		}, "a \"x\"\n", "a \"xy\"\n"},
		{"renamed", func(d durable.Dir) {
			must(t, write(t, d, "a", "x").Sync())
			must(t, errors.Join(d.Sync(), d.Rename("a", "b")))
		}, "a \"x\"\n", "b \"x\"\n"},
		{"exchanged", func(d durable.Dir) {
			must(t, errors.Join(write(t, d, "a", "x").Sync(), write(t, d, "b", "y").Sync(), d.Sync(), d.Exchange("a", "b")))
		}, "a \"x\"\nb \"y\"\n", "a \"y\"\nb \"x\"\n"},
		{"removed", func(d durable.Dir) {
			must(t, errors.Join(write(t, d, "a", "x").Sync(), d.Sync(), d.Remove("a")))
		}, "a \"x\"\n", ""},
		{"cut", func(d durable.Dir) {
			f := write(t, d, "a", "xy")
			must(t, errors.Join(f.Sync(), d.Sync(), f.Truncate(1)))
		}, "a \"xy\"\n", "a \"x\"\n"},
		{"an unnamed file that was published", func(d durable.Dir) {
			f, err := d.Unnamed()
			must(t, err)
			_, err = f.Write([]byte("x"))
			must(t, errors.Join(err, d.Publish(f, "a"), d.Sync()))
		}, "a \"\"\n", "a \"x\"\n"},
		{"a folder made durably", func(d durable.Dir) {
			sub, err := d.Sub("s")
			must(t, err)
			must(t, write(t, sub, "a", "x").Sync())
		}, "s/\n", "s/\ns/a \"x\"\n"},
		{"a folder that is filled and then named", func(d durable.Dir) {
			sub, err := d.Make("s")
			must(t, err)
			must(t, errors.Join(write(t, sub, "a", "x").Sync(), sub.Sync(), d.Rename("s", "u"), d.Sync()))
		}, "u/\nu/a \"x\"\n", "u/\nu/a \"x\"\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var disk faultfs.Disk
			c.do(open(t, &disk))
			for s, want := range map[faultfs.Survival]string{{}: c.nothing, {All: true}: c.every} {
				if got := tree(t, open(t, disk.Boot(s)), ""); got != want {
					t.Errorf("survival %+v leaves\n%s, want\n%s", s, got, want)
				}
			}
			if got := tree(t, open(t, disk.Kill()), ""); got != c.every {
				t.Errorf("a kill leaves\n%s", got)
			}
			if got := tree(t, open(t, disk.Kill().Boot(faultfs.Survival{})), ""); got != c.nothing {
				t.Errorf("a kill and then a cut leave\n%s", got)
			}
			if got := tree(t, open(t, &disk), ""); got != c.every {
				t.Errorf("looking at what a cut would leave changed the disk to\n%s", got)
			}
		})
	}
}

// TestChance: a seed always tells the same, all of them together tell of every fate that a write and a name can have,
// and what was flushed is never in it.
func TestChance(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	d := open(t, &disk)
	must(t, errors.Join(write(t, d, "safe", "safe").Sync(), d.Sync()))
	write(t, d, "a", "0123")
	write(t, d, "b", "")
	must(t, d.Rename("b", "c"))
	seen := map[string]bool{}
	for seed := uint64(1); seed < 500; seed++ {
		got := tree(t, open(t, disk.Boot(faultfs.Survival{Seed: seed})), "")
		if again := tree(t, open(t, disk.Boot(faultfs.Survival{Seed: seed})), ""); again != got {
			t.Fatalf("seed %d leaves\n%sand then\n%s", seed, got, again)
		}
		if !strings.Contains(got, `safe "safe"`) {
			t.Fatalf("seed %d loses what was flushed:\n%s", seed, got)
		}
		if strings.Contains(got, "c ") && (strings.Contains(got, "b ") || !strings.Contains(got, "a ")) {
			t.Fatalf("seed %d keeps a later name without those before:\n%s", seed, got)
		}
		seen[got] = true
	}
	for _, want := range []string{`a "0123"`, `a "0"`, `a ""`, `a "\x00\x00\x00\x00"`, "b ", "c "} {
		found := false
		for got := range seen {
			found = found || strings.Contains(got, want)
		}
		if !found {
			t.Errorf("no seed leaves %s", want)
		}
	}
}

func TestLocksOfADisk(t *testing.T) {
	t.Parallel()
	var disk faultfs.Disk
	a, err1 := open(t, &disk).Lock("l")
	b, err2 := open(t, &disk).Lock("l")
	must(t, errors.Join(err1, err2))
	try := func(l durable.Lock, shared, want bool) {
		t.Helper()
		if got, err := l.Try(shared); err != nil || got != want {
			t.Errorf("got the lock: %t, %v; want %t", got, err, want)
		}
	}
	try(a, true, true)
	try(b, true, true)
	try(a, false, false)
	must(t, b.Unlock())
	try(a, false, true)
	try(b, true, false)
	c, err := open(t, disk.Kill()).Lock("l")
	must(t, err)
	try(c, false, true)
	must(t, a.Close())
	try(b, false, true)
}

// TestCutAfter: after the cut nothing works, and Boot finds what the n operations before it left.
func TestCutAfter(t *testing.T) {
	t.Parallel()
	var left []string
	for n := 0; n <= 5; n++ {
		var disk faultfs.Disk
		d := open(t, faultfs.Tap(&disk, faultfs.CutAfter(n)))
		err := durable.Replace(d, "t", "a", []byte("x"), nil)
		if cut := errors.Is(err, faultfs.ErrPowerCut); cut != (n < 5) {
			t.Errorf("after %d operations: %v", n, err)
		}
		if _, err := d.Stat("a"); errors.Is(err, faultfs.ErrPowerCut) != (n < 5) {
			t.Errorf("a look after the cut: %v", err)
		}
		left = append(left, tree(t, open(t, disk.Boot(faultfs.Survival{All: true})), ""))
	}
	want := []string{"", "t \"\"\n", "t \"x\"\n", "t \"x\"\n", "a \"x\"\n", "a \"x\"\n"}
	if fmt.Sprint(left) != fmt.Sprint(want) {
		t.Errorf("cuts left %q, want %q", left, want)
	}
}

// TestRefusals: a refused operation is not done, but for the half of a short write, and its error has the path.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{1: "", 2: "t \"\"\n", 3: "t \"12\"\n", 4: "t \"12\"\n", 5: "a \"12\"\n"} {
		var disk faultfs.Disk
		d := open(t, faultfs.Tap(&disk, faultfs.FailAt(n, faultfs.Short(syscall.ENOSPC))))
		f, err := d.Create("t")
		if err == nil {
			_, err = f.Write([]byte("12"))
			err = errors.Join(err, f.Sync())
		}
		if err == nil {
			err = errors.Join(d.Rename("t", "a"), d.Sync())
		}
		if n == 2 {
			want = "t \"1\"\n"
		}
		var bad *fs.PathError
		if !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &bad) || !strings.HasPrefix(bad.Path, "/home") {
			t.Errorf("operation %d: %v", n, err)
		}
		if got := tree(t, open(t, &disk), ""); got != want {
			t.Errorf("operation %d leaves %q, want %q", n, got, want)
		}
	}
	var disk faultfs.Disk
	must(t, write(t, open(t, &disk), "a", "x").Sync())
	for n := 2; n <= 4; n++ { // the first look opens the folder
		d := open(t, faultfs.Tap(&disk, faultfs.FailLook(n, syscall.EIO)))
		if _, _, err := durable.ReadFile(d, "a", 10); !errors.Is(err, syscall.EIO) {
			t.Errorf("look %d: %v", n, err)
		}
	}
}

const killVar = "MULLIGAN_FAULTFS_TEST_KILL"

// TestKillAt runs itself again and is killed before the third operation on real files.
func TestKillAt(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(killVar); dir != "" {
		d, err := faultfs.Tap(durable.System{}, faultfs.KillAt(3)).Open(dir)
		must(t, err)
		write(t, d, "a", "x")
		_ = d.Rename("a", "b")
		os.Exit(0)
	}
	self, err := os.Executable()
	must(t, err)
	dir := filepath.Join(t.TempDir(), "home")
	cmd := exec.Command(self, "-test.run=^TestKillAt$")
	cmd.Env = append(os.Environ(), killVar+"="+dir)
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("it ended with %v", err)
	}
	d, err := durable.System{}.Open(dir)
	must(t, err)
	if got := tree(t, d, ""); got != "a \"x\"\n" {
		t.Errorf("it left %q", got)
	}
}
