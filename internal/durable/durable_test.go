package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

func TestEscapeIsInjectiveAndAFileName(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,199}$`)
	alphabet := []rune("ab_.-~/\\%A5F\x00\n é🙂")
	texts := rapid.SliceOfN(rapid.StringOfN(rapid.SampledFrom(alphabet), 0, 6, -1), 1, 3)
	seen := map[string]string{}
	var mu sync.Mutex
	rapid.Check(t, func(t *rapid.T) {
		in := texts.Draw(t, "texts")
		if rapid.Bool().Draw(t, "long") {
			in = append(in, strings.Repeat("x", rapid.IntRange(180, 210).Draw(t, "length")))
		}
		out := durable.Escape(in...)
		if !name.MatchString(out) {
			t.Fatalf("%q becomes %q", in, out)
		}
		if back, ok := unescape(out); ok && fmt.Sprintf("%q", back) != fmt.Sprintf("%q", in) {
			t.Fatalf("%q becomes %q, which reads %q", in, out, back)
		}
		mu.Lock()
		defer mu.Unlock()
		id := fmt.Sprintf("%q", in)
		if other, ok := seen[out]; ok && other != id {
			t.Fatalf("%s and %s both become %q", other, id, out)
		}
		seen[out] = id
	})
}

// unescape reads a name that was not cut; that it can is why no two lists of texts share one.
func unescape(name string) (texts []string, ok bool) {
	if strings.Contains(name, "~") {
		return nil, false
	}
	text := ""
	for i := 0; i < len(name); i++ {
		switch {
		case name[i] != '_':
			text += name[i : i+1]
		case name[i+1] == '_':
			texts, text = append(texts, text), ""
			i++
		case name[i+1] == '-':
			i++
		default:
			var c byte
			if _, err := fmt.Sscanf(name[i+1:i+3], "%X", &c); err != nil {
				return nil, false
			}
			text += string([]byte{c})
			i += 2
		}
	}
	return append(texts, text), true
}

func TestEscapeOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   []string
		want string
	}{
		{[]string{"shop", "0198c1d2-7c00"}, "shop__0198c1d2-7c00"},
		{[]string{"a_b/c", ".d.e"}, "a_5Fb_2Fc__.d.e"},
		{[]string{".hidden"}, "_2Ehidden"},
		{[]string{".."}, "_2E."},
		{[]string{"", ""}, "_-___-"},
		{[]string{"~"}, "_7E"},
	} {
		if got := durable.Escape(c.in...); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.in, got, c.want)
		}
	}
	long := durable.Escape(strings.Repeat("a", 300))
	if len(long) != 200 || !strings.Contains(long, "~") || long == durable.Escape(strings.Repeat("a", 301)) {
		t.Errorf("a long name becomes %q", long)
	}
}

// TestOneCreatorWins races for names, with unnamed files and where the file system has none.
func TestOneCreatorWins(t *testing.T) {
	t.Parallel()
	for _, unnamed := range []bool{true, false} {
		t.Run(fmt.Sprint("unnamed files ", unnamed), func(t *testing.T) {
			t.Parallel()
			d := folder(t)
			c := &counter{}
			hook := func(op string) error {
				if op == "unnamed" && !unnamed {
					return errors.ErrUnsupported
				}
				return c.hook(op)
			}
			const racers, rounds = 8, 20
			var wins atomic.Int32
			var all sync.WaitGroup
			for r := range racers {
				creator := durable.NewCreator(hookDir{d, hook}, fmt.Sprint(r))
				all.Go(func() {
					for i := range rounds {
						switch err := creator.Create(fmt.Sprint("n", i), []byte(fmt.Sprint(i)), nil); {
						case err == nil:
							wins.Add(1)
						case !errors.Is(err, fs.ErrExist):
							t.Error(err)
						}
					}
					if err := creator.Close(); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			if wins.Load() != rounds {
				t.Errorf("%d names were won %d times", rounds, wins.Load())
			}
			if got := len(names(t, d)); got != rounds {
				t.Errorf("%d files are there for %d names: %v", got, rounds, names(t, d))
			}
			if s, f := c.count("sync"), c.count("sync folder"); s != rounds || f != rounds {
				t.Errorf("%d flushes of files and %d of the folder for %d winners", s, f, rounds)
			}
			for i := range rounds {
				if got := content(t, d, fmt.Sprint("n", i)); got != fmt.Sprint(i) {
					t.Errorf("n%d holds %q", i, got)
				}
			}
		})
	}
}

func TestCreateTellsBeforeItIsVisible(t *testing.T) {
	t.Parallel()
	d := folder(t)
	c := durable.NewCreator(d, "x")
	var told durable.Info
	err := c.Create("n", []byte("four"), func(in durable.Info) {
		told = in
		if _, err := d.Stat("n"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it is visible: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	is, err := d.Stat("n")
	if err != nil || is.Ino != told.Ino || is.Size != told.Size || is.MTime != told.MTime || is.Size != 4 {
		t.Errorf("it is %+v and was told as %+v, %v", is, told, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestEveryFaultSurfaces breaks each operation of each way of writing in turn. The call must fail, what is visible must
// be the old content or the new one, and the next attempt must succeed.
func TestEveryFaultSurfaces(t *testing.T) {
	t.Parallel()
	trim := func(s string) string { return strings.TrimRight(s, " \n") }
	for name, write := range map[string]func(d durable.Dir, text string) error{
		"create": func(d durable.Dir, text string) error {
			c := durable.NewCreator(d, "x")
			defer c.Close()
			return c.Create(text, []byte(text), nil)
		},
		"create with a name": func(d durable.Dir, text string) error {
			h := d.(hookDir)
			inner := h.hook
			h.hook = func(op string) error {
				if op == "unnamed" {
					return errors.ErrUnsupported
				}
				return inner(op)
			}
			c := durable.NewCreator(h, "x")
			defer c.Close()
			return c.Create(text, []byte(text), nil)
		},
		"replace": func(d durable.Dir, text string) error { return durable.Replace(d, ".temp", "file", []byte(text), nil) },
		"rewrite": func(d durable.Dir, text string) error {
			return durable.Rewrite(d, ".spare", "file", []byte(text), nil)
		},
		"append": func(d durable.Dir, text string) error {
			f, err := d.Append("log")
			if err != nil {
				return err
			}
			defer f.Close()
			return durable.AppendLine(f, []byte(text))
		},
		"remove": func(d durable.Dir, text string) error {
			f, err := d.Create(text)
			if err == nil {
				err = errors.Join(f.Close(), durable.Remove(d, text))
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for warm := range 3 { // a rewrite differs once it has its spare
				for n := 1; ; n++ {
					d := folder(t)
					c := &counter{}
					h := hookDir{d, c.hook}
					for i := range warm {
						if err := write(h, fmt.Sprint("old", i)); err != nil {
							t.Fatal(err)
						}
					}
					old := trim(content(t, d, "file"))
					c.ops, c.fail = nil, n
					err := write(h, "new")
					if len(c.ops) < n {
						if err != nil {
							t.Errorf("without a fault: %v", err)
						}
						break
					}
					op := c.ops[n-1]
					if err == nil && op != "unnamed" { // the spare is made in advance, and then again
						t.Errorf("the fault in %s (operation %d) did not surface", op, n)
					}
					if err != nil && !errors.Is(err, errFault) {
						t.Errorf("the fault in %s (operation %d) became: %v", op, n, err)
					}
					if got := trim(content(t, d, "file")); got != old && got != "new" {
						t.Errorf("after a fault in %s the file holds %q", op, got)
					}
					if got := content(t, d, "new"); got != "" && got != "new" {
						t.Errorf("after a fault in %s the new file holds %q", op, got)
					}
					for _, line := range strings.Split(content(t, d, "log"), "\n") {
						if line != "" && line != "new" && !strings.HasPrefix(line, "old") {
							t.Errorf("after a fault in %s the log holds the line %q", op, line)
						}
					}
					c.fail = 0
					if err := write(h, "again"); err != nil {
						t.Errorf("after a fault in %s: %v", op, err)
					}
				}
			}
		})
	}
}

func TestRewriteReusesItsSpare(t *testing.T) {
	t.Parallel()
	d := folder(t)
	write := func(text string) uint64 {
		t.Helper()
		if err := durable.Rewrite(d, ".spare", "file", []byte(text), nil); err != nil {
			t.Fatal(err)
		}
		b, in, err := durable.ReadPublished(d, "file", 1<<20, func([]byte) bool { return true })
		if err != nil || strings.TrimRight(string(b), " \n") != text {
			t.Fatalf("read back %q, %v", b, err)
		}
		return in.Ino
	}
	write("1")
	a, b, c := write("2"), write("3"), write("4")
	if a == b || a != c {
		t.Errorf("the inodes are %d, %d, %d", a, b, c)
	}
	write(strings.Repeat("long", 5000)) // for which the spare is too small
	// Somebody keeps the spare under a name of his own: it must not change under him.
	if err := d.Link(".spare", "kept"); err != nil {
		t.Fatal(err)
	}
	kept := content(t, d, "kept")
	write("5")
	write("6")
	if got := content(t, d, "kept"); got != kept {
		t.Errorf("somebody's copy was written over with %.10q", got)
	}
}

func TestReadersSeeWholeFilesThatOnlyGrowNewer(t *testing.T) {
	t.Parallel()
	d := folder(t)
	text := func(i int) string { return strings.Repeat(fmt.Sprintf("%06d", i), 1500) }
	whole := func(b []byte) bool {
		s := strings.TrimRight(string(b), " \n")
		return len(s) == 9000 && s == strings.Repeat(s[:6], 1500)
	}
	if err := durable.Rewrite(d, ".spare", "file", []byte(text(0)), nil); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			last := ""
			for {
				select {
				case <-done:
					return
				default:
				}
				b, _, err := durable.ReadPublished(d, "file", 1<<20, whole)
				if err != nil || !whole(b) {
					t.Errorf("read %d bytes, %v", len(b), err)
					return
				}
				if now := string(b[:6]); now < last {
					t.Errorf("%s was read after %s", now, last)
				} else {
					last = now
				}
			}
		})
	}
	for i := range 300 {
		if err := durable.Rewrite(d, ".spare", "file", []byte(text(i)), nil); err != nil {
			t.Error(err)
		}
	}
	close(done)
	all.Wait()
}

// reading lets something happen when a file has been opened, and when it has been read.
type reading struct {
	durable.Dir
	opened, read func()
}

func (d reading) Open(name string) (durable.File, error) {
	f, err := d.Dir.Open(name)
	d.opened()
	return readingFile{f, d.read}, err
}

type readingFile struct {
	durable.File
	read func()
}

func (f readingFile) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	f.read()
	return n, err
}

// TestReaderInTheMiddleOfAWrite: a file becomes the spare after a reader has opened it, is read while the next rewrite is half
// done in it, and is published again before the reader looks at the name. A write sets its time before its content, so
// nothing but the content tells.
func TestReaderInTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	d := folder(t)
	text := func(letter string) []byte { return []byte(strings.Repeat(letter, 5000)) }
	whole := func(b []byte) bool {
		s := strings.TrimRight(string(b), " \n")
		return len(s) == 5000 && s == strings.Repeat(s[:1], 5000)
	}
	rewrite := func(letter string) {
		t.Helper()
		if err := durable.Rewrite(d, ".spare", "file", text(letter), nil); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("a")
	rewrite("b")
	spare := filepath.Join(d.Path(), ".spare")
	put := func(b []byte) {
		t.Helper()
		f, err := d.Overwrite(".spare")
		if err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	reads := 0
	b, _, err := durable.ReadPublished(reading{d, func() {
		if reads == 0 {
			rewrite("c") // what was opened is the spare now
			put(text("d")[:2500])
		}
	}, func() {
		if reads++; reads > 1 {
			return
		}
		half, err := os.Stat(spare)
		if err != nil {
			t.Fatal(err)
		}
		put(text("d"))
		if err := errors.Join(os.Chtimes(spare, half.ModTime(), half.ModTime()), d.Exchange(".spare", "file")); err != nil {
			t.Fatal(err)
		}
	}}, "file", 1<<20, whole)
	if err != nil || !whole(b) || b[0] != 'd' {
		t.Errorf("read %.3q to %.3q, %v, in %d reads", b, b[4000:], err, reads)
	}

	// What is damaged stays so, and is returned for the caller to say so.
	if err := os.WriteFile(filepath.Join(d.Path(), "file"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if b, _, err := durable.ReadPublished(d, "file", 1<<20, whole); err != nil || string(b) != "half" {
		t.Errorf("a damaged file reads %.9q, %v", b, err)
	}
}

func TestAppendLineCutsOffWhatIsTorn(t *testing.T) {
	t.Parallel()
	for tail, want := range map[string]string{
		"": "", "whole\n": "whole\n", "torn": "", "whole\ntorn": "whole\n", "whole\n\x00\x00": "whole\n",
		"whole\n" + strings.Repeat("x", 200<<10): "whole\n", strings.Repeat("x", 200<<10): "",
	} {
		d := folder(t)
		if err := os.WriteFile(filepath.Join(d.Path(), "log"), []byte(tail), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := d.Append("log")
		if err == nil {
			err = errors.Join(durable.AppendLine(f, []byte("line")), f.Close())
		}
		if got := content(t, d, "log"); err != nil || got != want+"line\n" {
			t.Errorf("after %.20q: %.40q, %v", tail, got, err)
		}
	}
	d := folder(t)
	f, err := d.Append("log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := durable.AppendLine(f, []byte("a\nb")); err == nil {
		t.Error("two lines were taken for one")
	}
}

func TestWhatIsNotOpened(t *testing.T) {
	t.Parallel()
	d := folder(t)
	path := func(n string) string { return filepath.Join(d.Path(), n) }
	err := errors.Join(os.Symlink("/etc/passwd", path("link")), os.Mkdir(path("folder"), 0o700), unix.Mkfifo(path("pipe"), 0o600),
		os.WriteFile(path("large"), make([]byte, 101), 0o600), os.Symlink(d.Path(), path("loop")))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"link": "symlink", "folder": "regular", "pipe": "regular", "large": "101 bytes", "missing": "no such file",
		"../b/large": "invalid", "": "invalid", ".": "invalid", "..": "invalid", "a\x00b": "invalid",
	} {
		if _, _, err := durable.ReadFile(d, name, 100); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("read %q: %v, want %q", name, err, want)
		}
	}
	if _, err := d.Append("link"); !durable.IsSymlink(err) {
		t.Errorf("append to a symlink: %v", err)
	}
	if _, err := d.Sub("loop"); err == nil || !strings.Contains(err.Error(), "symlink") {
		t.Errorf("open a symlink to a folder: %v", err)
	}
	if _, err := (durable.System{}).Open("relative"); err == nil {
		t.Error("a relative path was opened")
	}
}

func TestRemoveAll(t *testing.T) {
	t.Parallel()
	d := folder(t)
	err := errors.Join(os.Mkdir(filepath.Join(d.Path(), "f"), 0o700), os.WriteFile(filepath.Join(d.Path(), "f", "x"), nil, 0o600),
		os.WriteFile(filepath.Join(d.Path(), "g"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []string{"f", "g", "missing"} {
		if err := durable.RemoveAll(d, n); err != nil {
			t.Error(err)
		}
	}
	if ns := names(t, d); len(ns) > 0 {
		t.Errorf("left: %v", ns)
	}
}
