package classify_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// scripted is a runtime for tests: it finds what it was given wherever the log says "boom".
type scripted struct {
	name    string
	failure *classify.Failure
}

func (s scripted) Name() string { return s.name }

func (s scripted) Parse(log *text.Log) *classify.Failure {
	for i, l := range log.Lines {
		if strings.Contains(l, "boom") && s.failure != nil {
			f := *s.failure
			f.First, f.Line, f.Last = i, i, i
			return &f
		}
	}
	return nil
}

func (s scripted) Module(path string) string {
	path, ok := strings.CutSuffix(path, ".ex")
	if !ok {
		return ""
	}
	return strings.ReplaceAll(path, "/", ".")
}

func judge(t *testing.T, f *classify.Failure, in classify.Input) classify.Verdict {
	t.Helper()
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{scripted{"ex", f}}})
	if err != nil {
		t.Fatal(err)
	}
	if in.Text == nil {
		in.Text = []byte("boom\n")
	}
	return c.Classify(in)
}

func TestNewReportsAllProblems(t *testing.T) {
	t.Parallel()
	if _, err := classify.New(classify.Config{}); err == nil || !strings.Contains(err.Error(), "no runtime") {
		t.Errorf("an empty config gives %v", err)
	}
	_, err := classify.New(classify.Config{Runtimes: []classify.Runtime{nil, scripted{}, scripted{name: "a"}, scripted{name: "a"}}})
	if err == nil {
		t.Fatal("a broken config was accepted")
	}
	for _, want := range []string{"runtime 0 is nil", "runtime 1 has no name", `2 and 3 are both named "a"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// TestOwnership is the table of who owns what. The failure misses a name of module a.wire, asked for by a.core.
func TestOwnership(t *testing.T) {
	t.Parallel()
	root := func(dirs, modules string) classify.Root {
		return classify.Root{Name: "r", Dirs: strings.Fields(dirs), Modules: strings.Fields(modules)}
	}
	for _, c := range []struct {
		name       string
		roots      []classify.Root
		workspaces string
		asker      string
		file       string // printed for a.wire, may be empty
		want       string // disposition/reason
	}{
		{"plain", []classify.Root{root("/p", "a")}, "", "/p/a/core.ex", "/p/a/wire.ex", "skew/"},
		{"no file printed", []classify.Root{root("/p", "a")}, "", "/p/a/core.ex", "", "skew/"},
		{"trailing slash", []classify.Root{root("/p/", "a")}, "", "/p/a/core.ex", "/p/a/wire.ex", "skew/"},
		{"unclean root", []classify.Root{root("/q/../p//.", "a")}, "", "/p/a/core.ex", "/p/a/wire.ex", "skew/"},
		{"root is the package", []classify.Root{root("/p/a", "a")}, "", "/p/a/core.ex", "/p/a/wire.ex", "skew/"},
		{"product folder is called like the package", []classify.Root{root("/a/lib", "a")}, "", "/a/lib/a/core.ex", "/a/lib/other.ex", "unknown/third_party_missing_in_managed_frame"},
		{"root above", []classify.Root{root("/", "a"), root("/p", "a")}, "", "/p/a/core.ex", "/p/a/wire.ex", "skew/"},
		{"deeper in the root", []classify.Root{root("/p", "a")}, "", "/p/v2/lib/a/core.ex", "/p/v2/lib/a/wire.ex", "skew/"},
		{"half a component of the root", []classify.Root{root("/p/x", "a")}, "", "/p/xy/a/core.ex", "/p/xy/a/wire.ex", "never/third_party_import"},
		{"half a component of the module", []classify.Root{root("/p", "a.wir")}, "", "/p/a/wir/core.ex", "/p/a/wire.ex", "unknown/third_party_missing_in_managed_frame"},
		{"file elsewhere", []classify.Root{root("/p", "a")}, "", "/p/a/core.ex", "/usr/lib/a/wire.ex", "unknown/third_party_missing_in_managed_frame"},
		{"file in the workspace", []classify.Root{root("/p", "a")}, "/w", "/p/a/core.ex", "/w/a/wire.ex", "never/workspace_import"},
		{"asked by the workspace", []classify.Root{root("/p", "a")}, "/w", "/w/job.ex", "/p/a/wire.ex", "never/workspace_import"},
		{"workspace in the root", []classify.Root{root("/p", "a")}, "/p/a", "/p/a/core.ex", "/p/a/wire.ex", "never/workspace_import"},
		{"root in the workspace", []classify.Root{root("/w/p", "a")}, "/w", "/w/p/a/core.ex", "/w/p/a/wire.ex", "skew/"},
		{"workspace ties with root", []classify.Root{root("/p", "a")}, "/p", "/p/a/core.ex", "/p/a/wire.ex", "never/workspace_import"},
		{"two roots, path decides", []classify.Root{root("/p", "a"), root("/q", "a")}, "", "/p/a/core.ex", "/q/a/wire.ex", "skew/"},
		{"two roots, no path", []classify.Root{root("/p", "a"), root("/q", "a")}, "", "/p/a/core.ex", "", "unknown/ambiguous_root"},
		{"backslashes", []classify.Root{root(`C:\P\lib`, "a")}, "", `c:\p\LIB\a\core.ex`, `C:\P\lib\a\wire.ex`, "skew/"},
		{"nothing is managed", nil, "", "/p/a/core.ex", "/p/a/wire.ex", "never/third_party_import"},
	} {
		f := &classify.Failure{Kind: classify.KindMissingName, Type: "E", Module: "a.wire", Symbol: "S", File: c.file,
			Frames: []classify.Frame{{File: c.asker, Function: "main"}}}
		v := judge(t, f, classify.Input{Roots: c.roots, Workspaces: strings.Fields(c.workspaces), Exit: classify.Exit{Code: 1}})
		if got := string(v.Disposition) + "/" + string(v.Reason); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if v.Disposition == classify.Skew && (v.Module != "a.wire" || v.Symbol != "S" || v.Root != "r") {
			t.Errorf("%s: names %s:%s in %q", c.name, v.Module, v.Symbol, v.Root)
		}
	}
}

func TestThirdPartyOptIn(t *testing.T) {
	t.Parallel()
	f := &classify.Failure{Kind: classify.KindMissingModule, Module: "other", Frames: []classify.Frame{{File: "/p/a/core.ex", Function: "main"}}}
	root := classify.Root{Name: "r", Dirs: []string{"/p"}, Modules: []string{"a"}}
	if v := judge(t, f, classify.Input{Roots: []classify.Root{root}}); v.Disposition != classify.Unknown {
		t.Errorf("without the opt-in: %+v", v)
	}
	root.ThirdParty = true
	if v := judge(t, f, classify.Input{Roots: []classify.Root{root}}); v.Disposition != classify.Skew || v.Module != "a.core" {
		t.Errorf("with the opt-in: %+v", v)
	}
}

// TestExit is the table of exit status and typed causes against a text that by itself is skew.
func TestExit(t *testing.T) {
	t.Parallel()
	f := &classify.Failure{Kind: classify.KindMissingModule, Module: "a.wire", Frames: []classify.Frame{{File: "/p/a/core.ex", Function: "main"}}}
	for _, c := range []struct {
		exit  classify.Exit
		cause classify.Reason
		text  string
		want  string
	}{
		{classify.Exit{Code: 1}, "", "boom\n", "skew/"},
		{classify.Exit{Code: -1, Signal: "SIGKILL"}, "", "boom\n", "never/killed"},
		{classify.Exit{Code: -1, Signal: "KILL"}, "", "boom\n", "never/killed"},
		{classify.Exit{Code: -1, Signal: "SIGKILL"}, "", "boom\nOut of memory: Killed process 7\n", "never/oom"},
		{classify.Exit{Code: 137}, "", "boom\n", "never/killed"},
		{classify.Exit{Code: 143}, "", "boom\nstart operation timed out. Terminating.\n", "never/timeout"},
		{classify.Exit{Code: 124}, "", "boom\n", "never/timeout"},
		{classify.Exit{Code: 130}, "", "boom\n", "never/killed"},
		{classify.Exit{Code: -1, Signal: "SIGXCPU"}, "", "boom\n", "never/timeout"},
		{classify.Exit{Code: -1, Signal: "SIGSEGV"}, "", "quiet\n", "unknown/crash_signal"},
		{classify.Exit{Code: 139}, "", "quiet\n", "unknown/crash_signal"},
		{classify.Exit{Code: 1}, "", "", "unknown/no_text"},
		{classify.Exit{Code: 1}, "", "quiet\n", "unknown/no_update_signature"},
		{classify.Exit{Code: 1}, "", "boom\nrun: cancelled by user\n", "never/killed"},
		{classify.Exit{Code: 1}, "", "boom\nINFO turn 4 started\n", "unknown/survived_failure"},
		{classify.Exit{Code: 1}, "", "boom\nworker exited with 1\nshutting down\n", "skew/"},
		{classify.Exit{Code: 1}, classify.RateLimit, "boom\n", "never/rate_limit"},
		{classify.Exit{Code: 1}, classify.NameError, "boom\n", "annotate/name_error"},
		{classify.Exit{Code: 1}, "solar_flare", "boom\n", "unknown/solar_flare"},
	} {
		in := classify.Input{Text: []byte(c.text), Exit: c.exit, Cause: c.cause, Roots: []classify.Root{{Name: "r", Dirs: []string{"/p"}, Modules: []string{"a"}}}}
		v := judge(t, f, in)
		if got := string(v.Disposition) + "/" + string(v.Reason); got != c.want {
			t.Errorf("%+v %q %q: %s, want %s", c.exit, c.cause, c.text, got, c.want)
		}
		if v.ManagedModules == nil {
			t.Errorf("%+v: managed modules are nil", c.exit)
		}
	}
}

// TestChain holds how failures of a chain and of a group are weighed against each other.
func TestChain(t *testing.T) {
	t.Parallel()
	frame := []classify.Frame{{File: "/p/a/core.ex", Function: "main"}}
	make := func(k classify.Kind, change func(*classify.Failure)) *classify.Failure {
		f := &classify.Failure{Kind: k, Type: "E", Module: "a.wire", Symbol: "S", Frames: frame}
		if k == classify.KindOther {
			f.Module, f.Symbol = "", ""
		}
		if change != nil {
			change(f)
		}
		return f
	}
	torn := func() *classify.Failure { return make(classify.KindMissingName, nil) }
	bug := func() *classify.Failure { return make(classify.KindSignature, nil) }
	plain := func() *classify.Failure { return make(classify.KindOther, nil) }
	limit := func() *classify.Failure {
		return make(classify.KindOther, func(f *classify.Failure) { f.Type = "RateLimitError" })
	}
	for _, c := range []struct {
		name string
		f    *classify.Failure
		want string
	}{
		{"cause decides", make(classify.KindOther, func(f *classify.Failure) { f.Cause = torn() }), "skew/"},
		{"cause is a bug", make(classify.KindOther, func(f *classify.Failure) { f.Cause = bug() }), "annotate/signature_mismatch"},
		{"cause says nothing", make(classify.KindSignature, func(f *classify.Failure) { f.Cause = plain() }), "annotate/signature_mismatch"},
		{"cause is on the list, the wrapper says nothing", make(classify.KindOther, func(f *classify.Failure) { f.Cause = limit() }), "never/rate_limit"},
		{"the later one decides", make(classify.KindMissingName, func(f *classify.Failure) { f.Context = bug() }), "skew/"},
		{"a bug hides a signature", make(classify.KindSignature, func(f *classify.Failure) { f.Context = torn() }), "unknown/bug_while_handling_skew"},
		{"a limit hides a signature", make(classify.KindOther, func(f *classify.Failure) { f.Type = "RateLimitError"; f.Context = torn() }), "unknown/bug_while_handling_skew"},
		{"all leaves agree", make(classify.KindOther, func(f *classify.Failure) { f.Group = []*classify.Failure{torn(), torn()} }), "skew/"},
		{"leaves differ", make(classify.KindOther, func(f *classify.Failure) { f.Group = []*classify.Failure{torn(), limit()} }), "unknown/mixed_exception_group"},
		{"leaves are cut off", make(classify.KindOther, func(f *classify.Failure) { f.Cut = true; f.Group = []*classify.Failure{torn()} }), "unknown/mixed_exception_group"},
		{"leaves on the list", make(classify.KindOther, func(f *classify.Failure) { f.Group = []*classify.Failure{limit(), limit()} }), "never/rate_limit"},
		{"an endless chain", func() *classify.Failure { f := plain(); f.Cause = f; return f }(), "unknown/managed_bug"},
	} {
		v := judge(t, c.f, classify.Input{Exit: classify.Exit{Code: 1}, Roots: []classify.Root{{Name: "r", Dirs: []string{"/p"}, Modules: []string{"a"}}}})
		if got := string(v.Disposition) + "/" + string(v.Reason); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestLastRuntimeDecides(t *testing.T) {
	t.Parallel()
	never := scripted{"b", &classify.Failure{Type: "RateLimitError"}}
	torn := scripted{"a", &classify.Failure{Kind: classify.KindMissingModule, Module: "a.wire", Startup: true}}
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{torn, never}})
	if err != nil {
		t.Fatal(err)
	}
	v := c.Classify(classify.Input{Text: []byte("boom\n"), Roots: []classify.Root{{Name: "r", Modules: []string{"a"}}}})
	if v.Runtime != "a" || v.Disposition != classify.Skew {
		t.Errorf("two runtimes find a failure in one place: %+v", v)
	}
}

func TestDecodeCase(t *testing.T) {
	t.Parallel()
	got, err := classify.DecodeCase([]byte(`{"id":"x-1","runtime":"python","managed":{"modules":["a"],"roots":["/p"],"bindings":["b"]},
		"workspace_roots":["/w"],"phase":"booting","exit":{"code":-1,"signal":"SIGBUS"},"text_base64":"/w==","expect":{"disposition":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := classify.Case{ID: "x-1", Phase: "booting", Input: classify.Input{Text: []byte{0xff}, Exit: classify.Exit{Code: -1, Signal: "SIGBUS"},
		Roots: []classify.Root{{Name: "managed", Dirs: []string{"/p"}, Modules: []string{"a"}, Bindings: []string{"b"}}}, Workspaces: []string{"/w"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("decoded (-want +got):\n%s", d)
	}
	line, err := json.Marshal(got.Answer(classify.Verdict{Disposition: classify.Unknown, Family: classify.NoFamily, Reason: "no_text"}))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"x-1","disposition":"unknown","family":"none","reason":"no_text","exception":"","module":"","symbol":"","managed_modules":[]}`; string(line) != want {
		t.Errorf("answer is %s", line)
	}
}

func TestDecodeCaseNamesTheField(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		``:                                      "not a JSON object",
		`[]`:                                    "not a JSON object",
		`{"id":"a","text":"x"} {}`:              "more than one",
		`{"text":"x"}`:                          "id: missing",
		`{"id":7,"text":"x"}`:                   "id: number where a string is wanted",
		`{"id":"a"}`:                            "text: missing",
		`{"id":"a","text":"","text_base64":""}`: "both",
		`{"id":"a","text_base64":"%"}`:          "text_base64: illegal base64",
		`{"id":"a","text":"","exit":{"code":"1"}}`:             "exit: code: string where a whole number is wanted",
		`{"id":"a","text":"","managed":{"modules":"a"}}`:       "managed: modules: string where a list is wanted",
		`{"id":"a","text":"","workspace_roots":{},"phase":[]}`: "phase: array where a string is wanted",
	} {
		_, err := classify.DecodeCase([]byte(data))
		var e *classify.CaseError
		if !errors.As(err, &e) || !errors.Is(err, classify.ErrCase) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", data, err, want)
		}
	}
}

func TestReadLoader(t *testing.T) {
	t.Parallel()
	for m, want := range map[string]classify.Native{
		"/p/x.so: undefined symbol: go_v2":                                               {Kind: classify.KindBinding, Object: "/p/x.so", Symbol: "go_v2"},
		"/p/l.so.2: version `C_2' not found (required by /p/x.so)":                       {Kind: classify.KindBinding, Object: "/p/x.so", Needs: "/p/l.so.2", Symbol: "C_2"},
		"/p/x.so: file too short":                                                        {Kind: classify.KindTorn, Object: "/p/x.so"},
		"l.so.2: cannot open shared object file: No such file or directory":              {Kind: classify.KindBinding, Needs: "l.so.2"},
		"dlopen(/p/x.so, 0x2): symbol not found in flat namespace '_go'":                 {Kind: classify.KindBinding, Object: "/p/x.so", Symbol: "_go"},
		"DLL load failed while importing x: The specified procedure could not be found.": {Kind: classify.KindBinding, Object: "x"},
	} {
		if got, ok := classify.ReadLoader(m); !ok || got != want {
			t.Errorf("%s: %+v, %v", m, got, ok)
		}
	}
	for _, m := range []string{"", "no such host", "x: y", "dlopen(", "version `"} {
		if got, ok := classify.ReadLoader(m); ok {
			t.Errorf("%q reads as %+v", m, got)
		}
	}
}
