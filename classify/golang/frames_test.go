package golang_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify/golang"
)

const report = "INFO goroutine 5 is at work\npanic: boom\n\ngoroutine 7 [running]:\nacme.dev/x/core.(*Ledger).Step(0xc000012345, {0x1, 0x2})\n\t/srv/x/core/ledger.go:41 +0x1d\nmain.main()\n\t/srv/x/main.go:12 +0x2a\n\n" +
	"goroutine 9 [select]:\nacme.dev/x/core.wait(...)\n\t/srv/x/core/wait.go:7\ncreated by main.main in goroutine 7\n\t/srv/x/main.go:9 +0x3\nexit status 2\n"

func ExampleReport() {
	var buf [16]golang.Call
	r := golang.NewReport([]byte(report))
	for _, c := range r.Read(buf[:]) {
		fmt.Printf("%d %s %s:%d\n", c.Goroutine, c.Function, c.File, c.Line)
	}
	// Output:
	// 7 acme.dev/x/core.(*Ledger).Step /srv/x/core/ledger.go:41
	// 7 main.main /srv/x/main.go:12
	// 9 acme.dev/x/core.wait /srv/x/core/wait.go:7
}

// read is everything that a report gives in portions of a size.
func read(text []byte, size int) (all []string) {
	r := golang.NewReport(text)
	buf := make([]golang.Call, size)
	for {
		calls := r.Read(buf)
		if len(calls) == 0 {
			return all
		}
		for _, c := range calls {
			all = append(all, fmt.Sprintf("%d %s %s:%d", c.Goroutine, c.Function, c.File, c.Line))
		}
	}
}

// TestReportInPortions: a buffer that is too short gives all frames in turn.
func TestReportInPortions(t *testing.T) {
	text := []byte(strings.Repeat(report, 3))
	all := read(text, 64)
	if len(all) != 9 {
		t.Fatalf("%d frames, want 9", len(all))
	}
	for size := 1; size < 9; size++ {
		if parts := read(text, size); strings.Join(all, "\n") != strings.Join(parts, "\n") {
			t.Errorf("in portions of %d:\n%s\nat once:\n%s", size, strings.Join(parts, "\n"), strings.Join(all, "\n"))
		}
	}
	var buf [64]golang.Call
	if n := testing.AllocsPerRun(10, func() {
		r := golang.NewReport(text)
		r.Read(buf[:])
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestBracket: the last bracket is found wherever it stands in a call of any length.
func TestBracket(t *testing.T) {
	t.Parallel()
	for n := 1; n < 40; n++ {
		for at := range n {
			call := strings.Repeat("\xa8", at) + "(" + strings.Repeat(")", n-at)
			got := read([]byte("goroutine 1 [running]:\n"+call+"\n\tx.go:1\n"), 1)
			if want := "1 " + call[:at] + " x.go:1"; len(got) != 1 || got[0] != want {
				t.Fatalf("%q: %q, want %q", call, got, want)
			}
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte(report), 3)
	f.Add([]byte("goroutine \n\t\n(\n\t:\n)\n\t:"), 1)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = 1 + size&7
		if a, b := read(text, size), read(text, 1000); strings.Join(a, "\n") != strings.Join(b, "\n") {
			t.Fatalf("%q\nin portions of %d: %q", b, size, a)
		}
	})
}
