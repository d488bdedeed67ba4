package pack_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/pack"
)

const acme = `name: acme
signatures:
  - id: frames
    family: wire_schema
    literal: "unknown frame of "
    pattern: 'unknown frame of (?P<module>[\w.]+)'
    exception: FrameError
  - id: gone
    family: torn_import
    literal: "ACME-404 "
    pattern: '^ACME-404 (?P<module>[\w.]+)(?:#(?P<symbol>\w+))?'
  - id: half
    family: torn_file
    literal: "half a page in "
    pattern: 'half a page in (?P<file>/\S+)'
  - id: store
    family: data_format
    literal: "cannot read page "
    pattern: 'cannot read page \d+ for (?P<module>[\w.]+)'
  - id: native
    family: stale_binding
    literal: "ABI slot "
    pattern: 'ABI slot \d+ of (?P<module>[\w.]+)'
  - id: busy
    never: rate_limit
    literal: "come back tomorrow"
    pattern: 'come back tomorrow'
`

func judge(t testing.TB, text string) classify.Verdict {
	t.Helper()
	p, err := pack.Read("acme.yaml", []byte(acme))
	if err != nil {
		t.Fatal(err)
	}
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{p}})
	if err != nil {
		t.Fatal(err)
	}
	return c.Classify(classify.Input{Text: []byte(text), Exit: classify.Exit{Code: 1},
		Roots: []classify.Root{{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme"}}}, Workspaces: []string{"/home/ada/w"}})
}

func ExampleRead() {
	p, err := pack.Read("acme.yaml", []byte(acme))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{p}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := c.Classify(classify.Input{Text: []byte("INFO start\nACME-404 acme.plan#Ledger\n"), Exit: classify.Exit{Code: 1}, Roots: []classify.Root{{Name: "acme", Modules: []string{"acme"}}}})
	fmt.Println(v.Disposition, v.Family, v.Module, v.Symbol)
	// Output: skew torn_import acme.plan Ledger
}

// TestFamilies: each family by the shared rules of ownership, and nothing of somebody else's.
func TestFamilies(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"unknown frame of acme.wire\n":                    "skew wire_schema acme.wire",
		"unknown frame of other.wire\n":                   "unknown wire_schema ",
		"ACME-404 acme.plan\n":                            "skew torn_import acme.plan",
		"ACME-404 acmeless.plan\n":                        "unknown none ",
		"half a page in /srv/acme/data/a.page\n":          "skew torn_file /srv/acme/data/a.page",
		"half a page in /home/ada/w/a.page\n":             "never none ",
		"cannot read page 7 for acme.store\n":             "skew data_format acme.store",
		"ABI slot 3 of acme.native\n":                     "skew stale_binding acme.native",
		"the mill says come back tomorrow\n":              "never none ",
		"WARN ACME-404 acme.plan, going on without\n":     "unknown none ",
		"ACME-404 acme.plan\nINFO a\nINFO b\nturn 3 ok\n": "unknown none ",
	} {
		v := judge(t, text)
		if got := fmt.Sprintf("%s %s %s", v.Disposition, v.Family, v.Module); got != want {
			t.Errorf("%q: %s (%s), want %s", text, got, v.Reason, want)
		}
	}
}

// TestProblems: all mistakes of a file at once, each with its line, field and what is allowed.
func TestProblems(t *testing.T) {
	t.Parallel()
	_, err := pack.Read("p.yaml", []byte(`name: ""
colour: red
signatures:
  - id: a
    family: torn
    literal: abc
    pattern: '(?P<unit>x)'
  - id: a
    never: rate_limit
    family: torn_import
    literal: "wxyz"
    pattern: '(wxyz'
  - id: b
    never: tired
    literal: "wxyz"
    pattern: 'wxyz|abcd'
  - 7
`))
	var bad *pack.Error
	if !errors.As(err, &bad) {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, p := range bad.Problems {
		got = append(got, fmt.Sprintf("%d %s", p.Line, p.Field))
	}
	want := []string{"2 colour", "1 name", "5 signatures[0].family", "6 signatures[0].literal", "7 signatures[0].pattern", "7 signatures[0].pattern", "7 signatures[0].pattern",
		"8 signatures[1].family", "12 signatures[1].pattern", "14 signatures[2].never", "16 signatures[2].pattern", "17 signatures[3]"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\n%v", d, err)
	}
	if !strings.Contains(err.Error(), `p.yaml:5: signatures[0].family: "torn", want one of torn_import, stale_binding`) {
		t.Errorf("error %v", err)
	}
	for _, text := range []string{"", "[", "name: a\n", "- a\n", "name: a\nsignatures: 3\n"} {
		if _, err := pack.Read("p.yaml", []byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(acme), "ACME-404 acme.plan#x\n")
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		p, err := pack.Read("f", data)
		if err != nil {
			return
		}
		c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{p}})
		if err != nil {
			t.Fatalf("a pack that was read is refused: %v", err)
		}
		if v := c.Classify(classify.Input{Text: []byte(text)}); v.Disposition == classify.Skew {
			t.Errorf("skew although nothing is managed: %+v", v)
		}
	})
}
