package text_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/classify/text"
)

var bare = []string{"start", "Trace:", "  at one", "    two = 3", "", "Boom: it broke"}

// TestDress puts every known dress on the same lines and holds that it comes off.
func TestDress(t *testing.T) {
	t.Parallel()
	each := func(f func(i int, l string) string) string {
		var b strings.Builder
		for i, l := range bare {
			b.WriteString(f(i, l) + "\n")
		}
		return b.String()
	}
	front := func(prefix string) string { return each(func(_ int, l string) string { return prefix + l }) }
	for name, dressed := range map[string]string{
		"none": front(""), "crlf": strings.ReplaceAll(front(""), "\n", "\r\n"), "colour": each(func(_ int, l string) string { return "\x1b[1;31m" + l + "\x1b[0m" }),
		"cri": front("2026-11-30T12:53:48.752599430Z stderr F "), "syslog": front("Nov 30 12:54:15 host prog[14529]: "), "priority": front("<11>Nov  3 12:54:15 host prog: "),
		"rfc5424": front("<11>1 2026-11-30T12:54:15.003Z host prog 7 - - "), "iso": front("2026-11-30T12:54:15+0100 host prog[7]: "), "uptime": front("[12345.678901] host prog[7]: "),
		"stamp": front("2026-11-30 12:54:15,123 "), "bracket": front("[2026-11-30 12:54:15] "), "clock": front("12:54:15 | "), "compose": front("web-1    | "),
		"compose stamped": front("web-1  | 2026-11-30T12:54:15Z "), "pod": front("[pod/web-7f9c/web] "), "actor": front("(Actor pid=7) "), "level": front("ERROR: "), "unknown": front("web-7f9c box9 "),
		"docker":          each(func(_ int, l string) string { return fmt.Sprintf(`{"log":%q,"stream":"stderr"}`, l+"\n") }),
		"docker in parts": `{"log":"start\nTra"}` + "\n" + `{"log":"ce:\n"}` + "\n" + `{"log":"  at one\n    two = 3\n\nBoom: it broke\n"}` + "\n",
		"record":          each(func(_ int, l string) string { return fmt.Sprintf(`{"severity":"ERROR","message":%q}`, l) }),
		"nested": each(func(_ int, l string) string {
			return fmt.Sprintf(`{"log":%q}`, "Nov 30 12:54:15 host prog[7]: "+l+"\n")
		}),
		"relay": "Nov 30 12:54:15 host prog[7]: " + strings.Join(bare, "#012") + "\n",
		"progress": each(func(_ int, l string) string {
			if l == "" {
				return l
			}
			return "10%\r20%\r" + l
		}),
	} {
		if d := cmp.Diff(bare, text.Read([]byte(dressed), 1<<16).Lines); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestWideText(t *testing.T) {
	t.Parallel()
	units := utf16.Encode([]rune("\ufeff" + strings.Join(bare, "\r\n") + "\r\n"))
	little, big := []byte{}, []byte{}
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, data := range map[string][]byte{"little": little, "big": big} {
		if d := cmp.Diff(bare, text.Read(data, 1<<16).Lines); d != "" {
			t.Errorf("%s endian (-want +got):\n%s", name, d)
		}
	}
}

// TestQuotedKeepsItsPrefix holds that a block which alone carries a prefix stays recognisable as somebody else's.
func TestQuotedKeepsItsPrefix(t *testing.T) {
	t.Parallel()
	lines := append(strings.Split(strings.Repeat("own line\n", 30), "\n")[:30], "Nov 30 12:54:15 host prog[7]: Boom: it broke", "own end")
	got := text.Read([]byte(strings.Join(lines, "\n")), 1<<16).Lines
	if d := cmp.Diff(lines, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestPlain: what is searched for words is what is read, line by line.
func TestPlain(t *testing.T) {
	t.Parallel()
	for _, l := range []string{"", "plain", "\x1b[1;31mred\x1b[0m", "\x1b]8;;u\x07link\x1b]8;;\x1b\\ end", "cut \x1b[3", "cut \x1b", "\x1b(Bx"} {
		want := ""
		if got := text.Read([]byte(l+"\n"), 1<<10).Lines; len(got) > 0 {
			want = got[0]
		}
		if got := string(text.Plain(nil, []byte(l))); got != want {
			t.Errorf("%q is searched as %q and read as %q", l, got, want)
		}
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	log := text.Read([]byte("a-1  | one\nb-1  | other\na-1  | two\nb-1  | more\na-1  | three\n"), 1<<16)
	if d := cmp.Diff([]string{"other", "more", "one", "two", "three"}, log.Lines); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if log.Source(0) != "b-1" || log.Source(4) != "a-1" || log.Source(9) != "" {
		t.Errorf("sources are %q, %q", log.Source(0), log.Source(4))
	}
}

func TestReadBounds(t *testing.T) {
	t.Parallel()
	log := text.Read([]byte("first line\nsecond\n"), 10)
	if !log.Cut || cmp.Diff([]string{"ne", "second"}, log.Lines) != "" {
		t.Errorf("cut log is %+v", log.Lines)
	}
	if log := text.Read([]byte("x"), 0); len(log.Lines) != 0 || log.Ignored(0) {
		t.Errorf("a limit of 0 reads %q", log.Lines)
	}
	log.Ignore(-3, 99)
	if !log.Ignored(0) || log.Ignored(2) {
		t.Error("Ignore does not keep to the lines")
	}
}

func TestReadAnything(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "data")
		limit := rapid.IntRange(-1, 400).Draw(t, "limit")
		log := text.Read(data, limit)
		for i := range log.Lines {
			if strings.Contains(log.Lines[i], "\n") {
				t.Fatalf("line %d of %q holds a line feed", i, data)
			}
			log.Source(i)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{"a-1 | x\n", "{\"log\":\"x\\n\"}\n", "\x1b]8;;x\x07y\x1b[", "<11>1 a b c d e [x] y", "[ 1.2] h p[1]: x", "level=error exc=\"Traceback (most\\n  File \\\"x\\\"\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, data []byte) { text.Read(data, 1<<16) })
}

func ExampleRead() {
	log := text.Read([]byte("web-1  | \x1b[31mboom\x1b[0m\nweb-1  |   at start\n"), 1<<16)
	fmt.Printf("%q from %s\n", log.Lines, log.Source(0))
	// Output: ["boom" "  at start"] from web-1
}

// TestFrom: the end of a log has the lines, sources and marks of the whole, and what is marked in it is marked in the whole.
func TestFrom(t *testing.T) {
	t.Parallel()
	log := text.Read([]byte("a-1  | one\nb-1  | two\na-1  | three\nb-1  | four\n"), 1<<10)
	if got := log.From(0); got != log {
		t.Error("all of a log is another log")
	}
	end := log.From(2)
	if len(end.Lines) != 2 || end.Lines[0] != log.Lines[2] || end.Source(0) != log.Source(2) || end.Source(0) == "" || !end.Cut || end.Dress() != log.Dress() {
		t.Errorf("from line 2 of %q: %q of %q, cut: %t", log.Lines, end.Lines, end.Source(0), end.Cut)
	}
	end.Ignore(1, 2)
	if !log.Ignored(3) || log.Ignored(1) {
		t.Error("a mark is on another line")
	}
	if n := len(log.From(9).Lines); n != 0 {
		t.Errorf("%d lines behind the last", n)
	}
}
