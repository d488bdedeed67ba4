package gitcli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

var (
	revA = strings.Repeat("a", 40)
	revB = strings.Repeat("b", 40)
	revC = strings.Repeat("c", 40)
	zero = strings.Repeat("0", 40)
)

func second(s int64) stamp.Time { return stamp.Wall(time.Unix(s, 0), time.Second) }
func exact(s float64) stamp.Time {
	return stamp.Wall(time.Unix(0, int64(s*1e9)), 0)
}

func TestReflogLines(t *testing.T) {
	t.Parallel()
	text := zero + " " + revA + " Ada <ada@example.org> 100 +0000\tclone: from x\n" +
		revA + " " + revB + " A > B <odd> mail> 200 -0330\tpull: Fast-forward\twith a tab\n" +
		"garbage\n" +
		revB + " " + revC + " Nobody <> 300 +0000"
	want := []moveOfHead{{zero, revA, second(100)}, {revA, revB, second(200)}, {revB, revC, second(300)}}
	if diff := cmp.Diff(want, parseReflog([]byte(text)), cmp.AllowUnexported(moveOfHead{})); diff != "" {
		t.Error(diff)
	}
}

func TestInForce(t *testing.T) {
	t.Parallel()
	moves := []moveOfHead{{revC, revA, second(100)}, {revA, revB, second(200)}, {revB, revC, second(200)}, {revC, revA, second(300)}}
	tests := []struct {
		name  string
		moves []moveOfHead
		at    stamp.Time
		rev   string
		from  int64 // 0 for an open end
		to    int64
		ok    bool
	}{
		{"between two moves", moves, exact(150), revA, 100, 200, true},
		{"in the second of a move: the one before is certain", moves, exact(200.5), revA, 100, 200, true},
		{"after two moves of one second: the last", moves, exact(202), revC, 200, 300, true},
		{"after the last", moves, exact(1000), revA, 300, 0, true},
		{"before the first", moves, exact(50), "", 0, 0, false},
		{"in the second of the first", moves, exact(100.5), revC, 0, 100, true},
		{"in the second of a clone", []moveOfHead{{zero, revA, second(100)}}, exact(100.5), "", 0, 0, false},
		{"an empty log", nil, exact(100), "", 0, 0, false},
		{"a clock that ran backwards", []moveOfHead{{zero, revA, second(500)}, {revA, revB, second(200)}}, exact(300), "", 0, 0, false},
	}
	for _, tt := range tests {
		rev, in, ok := inForce(tt.moves, tt.at)
		var want stamp.Window
		if tt.from != 0 {
			want.From = second(tt.from)
		}
		if tt.to != 0 {
			want.To = second(tt.to)
		}
		if rev != tt.rev || ok != tt.ok || in != want {
			t.Errorf("%s: %q in %v, %v; want %q in %v, %v", tt.name, rev, in, ok, tt.rev, want, tt.ok)
		}
	}
}

func TestTailCutsAtALine(t *testing.T) {
	t.Parallel()
	name := t.TempDir() + "/log"
	writeFile(t, name, "first line\nsecond line\nthird\n")
	got, err := tail(name, 17)
	if err != nil || string(got) != "third\n" {
		t.Errorf("tail is %q, %v", got, err)
	}
	got, err = tail(name, 100)
	if err != nil || string(got) != "first line\nsecond line\nthird\n" {
		t.Errorf("tail is %q, %v", got, err)
	}
}

func TestPrintableIsInjective(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, name := range []string{"a", "a\xff", "a\xfe", `a\xff` + "\xff", "a\xff\xff", "ü\xff", `\` + "\xff", `\\` + "\xff"} {
		got := printable(name)
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q both print as %q", name, other, got)
		}
		seen[got] = name
	}
}

// What git prints is parsed without a panic, whatever it is, and what is understood is whole.
func FuzzParsers(f *testing.F) {
	f.Add([]byte("# branch.oid " + revA + "\x001 .M N... 100644 100644 100644 " + revA + " " + revB + " a b.py\x00? c.py\x00u UU N... 1 2 3 4 " + revA + " " + revB + " " + revC + " d\x00"))
	f.Add([]byte("\x01" + revA + "\x00" + revB + "\x00100\x00subject\x00\nR100\x00old\x00new\x00M\x00x\x00"))
	f.Add([]byte(revA + " blob 3\nabc\n" + revB + ":x missing\n"))
	f.Add([]byte(zero + " " + revA + " A <a> 1 +0000\tx\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		if st, err := parseStatus(in); err == nil && st.head == "" {
			t.Error("a status without a commit was accepted")
		}
		commits, _, err := parseLog(in)
		for _, c := range commits {
			if err == nil && !isRevision(c.Revision) {
				t.Errorf("commit %q was accepted", c.Revision)
			}
		}
		for rest := in; len(rest) > 0; {
			_, next, err := nextObject(rest)
			if err != nil {
				break
			}
			if len(next) >= len(rest) {
				t.Fatal("an answer of no length was accepted")
			}
			rest = next
		}
		for _, m := range parseReflog(in) {
			if !isRevision(m.old) || !isRevision(m.new) {
				t.Errorf("move %+v was accepted", m)
			}
		}
	})
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
