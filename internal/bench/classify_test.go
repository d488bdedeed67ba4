package bench

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/agentcli"
	"github.com/mulligan-dev/mulligan/classify/beam"
	"github.com/mulligan-dev/mulligan/classify/datafmt"
	"github.com/mulligan-dev/mulligan/classify/dotnet"
	"github.com/mulligan-dev/mulligan/classify/golang"
	"github.com/mulligan-dev/mulligan/classify/jvm"
	"github.com/mulligan-dev/mulligan/classify/loader"
	"github.com/mulligan-dev/mulligan/classify/lua"
	"github.com/mulligan-dev/mulligan/classify/node"
	"github.com/mulligan-dev/mulligan/classify/perl"
	"github.com/mulligan-dev/mulligan/classify/php"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/classify/ruby"
	"github.com/mulligan-dev/mulligan/classify/rust"
	"github.com/mulligan-dev/mulligan/classify/service"
	"github.com/mulligan-dev/mulligan/classify/shell"
	"github.com/mulligan-dev/mulligan/classify/tcl"
)

// expressions are what somebody would write who had no classifier: sixty, one for each failure that came up.
var expressions = []string{
	`^ImportError: cannot import name '([\w.]+)' from (?:partially initialized module )?'([\w.]+)'`, `^ModuleNotFoundError: No module named '([\w.]+)'`,
	`^AttributeError: (?:partially initialized )?module '([\w.]+)' has no attribute '(\w+)'`, `^ImportError: /.*\.so(?:\.\d+)*: (?:undefined symbol|cannot open shared object)`,
	`(?:wire|schema) version (\d+) (?:is not supported|expected (\d+))`, `written by a newer (?:version of )?(\S+)`, `^(?:_pickle\.)?UnpicklingError: `, `^ImportError: bad magic number in '([\w.]+)'`,
	`^SyntaxError: The requested module '([^']+)' does not provide an export named '(\w+)'`, `^SyntaxError: `, `^TypeError: (\w+)\(\) (?:missing|takes|got an unexpected)`, `^NameError: name '(\w+)' is not defined`,
	`^MemoryError\b`, `^RecursionError: `, `^KeyboardInterrupt\b`, `^Fatal Python error: `, `Error: Cannot find module '([^']+)'`, `^Error \[ERR_MODULE_NOT_FOUND\]: Cannot find (?:module|package) '([^']+)'`,
	`^TypeError: (\S+) is not a function`, `^TypeError: Cannot read propert(?:y|ies) of (?:undefined|null)`, `was compiled against a different Node\.js version`, `FATAL ERROR: .*heap out of memory`,
	`^Error \[ERR_PACKAGE_PATH_NOT_EXPORTED\]`, `^panic: `, `^fatal error: (?:all goroutines are asleep|concurrent map|stack overflow|runtime)`, `plugin was built with a different version of package (\S+)`,
	`^\[signal SIGSEGV: segmentation violation`, `symbol lookup error: .*undefined symbol: (\S+)`, `error while loading shared libraries: ([^:]+): cannot open shared object file`, "version `(GLIBC(?:XX)?_[\\d.]+)' not found",
	`cannot execute(?: binary file)?: (?:Exec format error|required file not found)`, `: Text file busy`, `^thread '[^']*' panicked at `, `memory allocation of \d+ bytes failed`,
	`java\.lang\.(?:NoClassDefFoundError|ClassNotFoundException)`, `java\.lang\.(?:NoSuchMethodError|NoSuchFieldError|AbstractMethodError)`, `java\.lang\.UnsupportedClassVersionError: (\S+) has been compiled`,
	`java\.lang\.OutOfMemoryError`, `System\.(?:MissingMethodException|MissingFieldException|TypeLoadException)`, `System\.IO\.FileNotFoundException: Could not load file or assembly '([^']+)'`,
	"`require'?:? cannot load such file -- (\\S+) \\(LoadError\\)", "undefined (?:local variable or )?method [`'](\\w+)'", `uninitialized constant (\S+) \(NameError\)`, `PHP Fatal error: +Uncaught Error: (?:Class|Call to undefined)`,
	`\{undef,\s*\[\{(\w+),(\w+),`, `^Can't locate (\S+) in @INC`, `(?:relation|table|column) "?([\w.]+)"? does not exist`, `no such (?:table|column): (\S+)`, `unknown (?:field|enum value|message type) "?(\w+)"?`,
	`No space left on device`, `\boom-kill\b`, `^Killed$|signal: killed`, `^Terminated$|signal: terminated`, `: Permission denied$`, `[Tt]oo many open files`, `[Cc]onnection refused`,
	`\b429\b.*rate[ _-]?limit|rate_limit_error`, `\b40[13]\b.*[Uu]nauthorized|authentication_error`, `\b(?:529|503)\b.*[Oo]verloaded|overloaded_error`, `context deadline exceeded|DeadlineExceeded`,
}

func everyRuntime(b testing.TB) *classify.Classifier {
	b.Helper()
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{
		python.New(), node.New(), jvm.New(), dotnet.New(), beam.New(), ruby.New(), perl.New(), php.New(), lua.New(), tcl.New(), golang.New(), rust.New(),
		loader.New(), shell.New(), service.New(), datafmt.New(), agentcli.New(),
	}})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

var (
	healthy = []string{
		"2026-01-01T%02d:%02d:%02d.%03dZ INFO  acme.agent.step id=%d took=%dms queue=0 retries=0\n",
		"2026-01-01T%02d:%02d:%02d.%03dZ DEBUG http.client GET /v1/sessions/%d/events?after=%d 200 in 12ms\n",
		"%02d:%02d:%02d.%03d [main] loaded module core.plan rev %d in %d us\n",
		"%02d:%02d:%02d.%03d | agent-%d | tool call read_file ok, %d bytes\n",
		"{\"ts\":\"2026-01-01T%02d:%02d:%02d.%03dZ\",\"level\":\"info\",\"msg\":\"turn finished\",\"turn\":%d,\"tokens\":%d}\n",
		"[%02d:%02d:%02d.%03d] INFO checkpoint %d written, %d events\n",
	}
	// decoys look like trouble and are none.
	decoys = []string{
		"%02d:%02d:%02d.%03d INFO  build finished: %d targets, %d errors\n",
		"%02d:%02d:%02d.%03d WARN  retry %d after error code %d, backing off\n",
		"%02d:%02d:%02d.%03d INFO  test_import_error passed (%d/%d), no exception raised\n",
		"%02d:%02d:%02d.%03d DEBUG user asked: \"why does module %d fail to import?\" (%d chars)\n",
	}
)

// inMemory is how many tails are 64 MiB.
const inMemory = 1024

// tails are n log tails of full length, one line of 25 a decoy. death stands at their end, behind up to 3 KiB of log where
// behind is set; where there is none, the last line is an ordinary one, since a log that ends in a decoy may well have died of it.
// All lie in memory one behind the other; inMemory of them are more than a cache holds.
func tails(n int, death string, behind bool) [][]byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	line := func(b *bytes.Buffer) {
		set := healthy
		if r.IntN(25) == 0 && (death != "" || b.Len() < classify.TailLimit-200) {
			set = decoys
		}
		fmt.Fprintf(b, set[r.IntN(len(set))], r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), r.IntN(90000), r.IntN(900))
	}
	all := make([]byte, 0, n*classify.TailLimit)
	out := make([][]byte, n)
	for i := range out {
		var b bytes.Buffer
		room := len(death)
		if behind {
			room += r.IntN(3 << 10)
		}
		for b.Len() < classify.TailLimit-room {
			line(&b)
		}
		b.WriteString(death)
		for b.Len() < classify.TailLimit {
			line(&b)
		}
		t := b.Bytes()
		t = t[len(t)-classify.TailLimit:]
		all = append(all, t...)
		out[i] = all[len(all)-classify.TailLimit:]
	}
	return out
}

// contender is one way to do the work, on tail number i.
type contender struct {
	name string
	// slow ones do one tail a round, the others many.
	slow bool
	do   func(i int)
}

const quickOps = 24

// race lets contenders alternate, rounds times, and returns the nanoseconds per tail of each round and contender.
func race(b *testing.B, cs []contender) map[string][]float64 {
	b.Helper()
	times := map[string][]float64{}
	at := map[string]int{}
	order := slices.Clone(cs)
	for b.Loop() {
		rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, c := range order {
			n := quickOps
			if c.slow {
				n = 1
			}
			began := time.Now()
			for range n {
				c.do(at[c.name])
				at[c.name]++
			}
			times[c.name] = append(times[c.name], float64(time.Since(began).Nanoseconds())/float64(n))
		}
	}
	return times
}

// ratio is the median over rounds of a / b.
func ratio(times map[string][]float64, a, b string) float64 {
	out := make([]float64, 0, len(times[a]))
	for i := range times[a] {
		out = append(out, times[a][i]/times[b][i])
	}
	return median(out)
}

func median(v []float64) float64 {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

// bases are the naive list, the one expression of all and the search for a byte that is not there.
func bases(ts [][]byte) []contender {
	list := make([]*regexp.Regexp, len(expressions))
	for i, e := range expressions {
		list[i] = regexp.MustCompile(e)
	}
	one := regexp.MustCompile("(?:" + strings.Join(expressions, ")|(?:") + ")")
	hits := 0
	return []contender{
		{name: "naive", slow: true, do: func(i int) {
			for line := range bytes.Lines(ts[i%len(ts)]) {
				for _, e := range list {
					if e.Match(line) {
						hits++
						break
					}
				}
			}
		}},
		{name: "combined", slow: true, do: func(i int) {
			for line := range bytes.Lines(ts[i%len(ts)]) {
				if one.Match(line) {
					hits++
				}
			}
		}},
		{name: "memchr", do: func(i int) { hits += bytes.IndexByte(ts[i%len(ts)], 0xff) }},
	}
}

// product is the host of the tails.
var product = []classify.Root{{Name: "acme", Dirs: []string{"/srv/acme"}, Modules: []string{"acme", "acme.dev/agent"}}}

// BenchmarkClassify measures P12 and P14: verdicts on full tails of 64 KiB, over all runtimes at once, against a naive list
// of sixty expressions, one expression of all of them, and a plain search for a byte. "x-naive" and "x-combined" say how many
// times faster the classifier is, "of-memchr" its speed as a part of the plain search's (the goals are 500 and 0.12 for
// clean tails), "x-memchr" the time as a multiple of the plain search's (1.0 where the failure stands in the last 4 KiB).
func BenchmarkClassify(b *testing.B) {
	judge := everyRuntime(b)
	python := "Traceback (most recent call last):\n  File \"/srv/acme/acme/main.py\", line 12, in <module>\n    from acme import boot\n  File \"/srv/acme/acme/boot.py\", line 3, in <module>\n    from acme.wire import SCHEMA\nImportError: cannot import name 'SCHEMA' from 'acme.wire' (/srv/acme/acme/wire.py)\n"
	gone := "panic: plugin: symbol InkV2 not found in plugin acme.dev/agent/pens\n\ngoroutine 1 [running]:\nacme.dev/agent/desk.Open(...)\n\tacme.dev/agent/desk/desk.go:12\nmain.main()\n\tacme.dev/agent/main.go:5 +0x51\nexit status 2\n"
	node := "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module './dist/wire.js'\nRequire stack:\n- /srv/acme/main.js\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1225:15)\n    at Object.<anonymous> (/srv/acme/main.js:3:14) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/srv/acme/main.js' ]\n}\n"
	for _, k := range []struct {
		name, death string
		behind      bool
		roots       []classify.Root
	}{
		{name: "clean"}, {name: "clean-managed", roots: product}, {name: "coloured", death: "", roots: product},
		{name: "end-python", death: python, roots: product}, {name: "end-go", death: gone, roots: product}, {name: "end-node", death: node, roots: product},
		{name: "near-end-python", death: python, behind: true, roots: product},
	} {
		b.Run(k.name, func(b *testing.B) {
			ts := tails(inMemory, k.death, k.behind)
			if k.name == "coloured" {
				for i, t := range ts {
					ts[i] = bytes.ReplaceAll(t, []byte(" INFO "), []byte(" \x1b[32mINFO\x1b[0m "))
				}
			}
			in := func(i int) classify.Input {
				return classify.Input{Text: ts[i%len(ts)], Exit: classify.Exit{Code: 1}, Roots: k.roots}
			}
			cs := append(bases(ts), contender{name: "ours", do: func(i int) { judge.Classify(in(i)) }})
			if v := judge.Classify(in(0)); (v.Disposition == classify.Skew) != (k.death != "" && !k.behind) {
				b.Fatalf("verdict %+v", v)
			}
			times := race(b, cs)
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(ratio(times, "naive", "ours"), "x-naive")
			b.ReportMetric(ratio(times, "combined", "ours"), "x-combined")
			b.ReportMetric(ratio(times, "memchr", "ours"), "of-memchr")
			b.ReportMetric(ratio(times, "ours", "memchr"), "x-memchr")
			b.ReportMetric(median(times["ours"])/1000, "us/tail")
			i := 0
			b.ReportMetric(testing.AllocsPerRun(200, func() { judge.Classify(in(i)); i++ }), "allocs/tail")
		})
	}
}

// TestCleanTailsAllocateNothing: a tail without a failure is judged without a byte of memory.
func TestCleanTailsAllocateNothing(t *testing.T) {
	judge := everyRuntime(t)
	ts := tails(64, "", false)
	for _, roots := range [][]classify.Root{nil, product} {
		i := 0
		if n := testing.AllocsPerRun(len(ts), func() {
			if v := judge.Classify(classify.Input{Text: ts[i%len(ts)], Exit: classify.Exit{Code: 1}, Roots: roots}); v.Reason != "no_update_signature" {
				t.Errorf("verdict %+v", v)
			}
			i++
		}); n > 0 {
			t.Errorf("%v allocations a tail with %d roots, want none", n, len(roots))
		}
	}
}

// crashes are about size bytes of log with a Go crash of four goroutines every few KiB.
func crashes(size int) []byte {
	r := rand.New(rand.NewPCG(7, 7))
	var b bytes.Buffer
	for b.Len() < size {
		for range 10 + r.IntN(20) {
			fmt.Fprintf(&b, healthy[r.IntN(len(healthy))], r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), r.IntN(90000), r.IntN(900))
		}
		b.WriteString("panic: runtime error: invalid memory address or nil pointer dereference\n[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x47f0a3]\n\n")
		for g := range 4 {
			fmt.Fprintf(&b, "goroutine %d [running]:\n", g+1)
			for f := range 6 {
				fmt.Fprintf(&b, "acme.dev/agent/core.(*Ledger).Step%d(0xc%09x, 0x%x)\n\t/srv/acme/core/ledger.go:%d +0x%x\n", f, r.IntN(1<<30), r.IntN(99), r.IntN(900), r.IntN(4000))
			}
			b.WriteString("created by main.main\n\t/srv/acme/main.go:12 +0x2a\n\n")
		}
		b.WriteString("exit status 2\n")
	}
	return b.Bytes()
}

// BenchmarkGoFrames measures P15: the frames of Go crash reports, against a parser of three expressions that keeps what it
// finds. "x-expressions" is how many times faster it is.
func BenchmarkGoFrames(b *testing.B) {
	log := crashes(2 << 20)
	head, call, place := regexp.MustCompile(`^goroutine (\d+)`), regexp.MustCompile(`^(\S+)\((.*)\)$`), regexp.MustCompile(`^\t(\S+):(\d+) \+0x`)
	type frame struct{ function, file, line string }
	naive, ours := 0, 0
	buf := make([]golang.Call, 256)
	times := race(b, []contender{
		{name: "naive", slow: true, do: func(int) {
			var frames []frame
			function := ""
			for line := range bytes.Lines(log) {
				line = bytes.TrimSuffix(line, []byte("\n"))
				if head.Match(line) {
					continue
				}
				if m := place.FindSubmatch(line); m != nil {
					if function != "" {
						frames = append(frames, frame{function, string(m[1]), string(m[2])})
					}
					function = ""
				} else if m := call.FindSubmatch(line); m != nil {
					function = string(m[1])
				}
			}
			naive = len(frames)
		}},
		{name: "memchr", do: func(int) { bytes.IndexByte(log, 0xff) }},
		{name: "ours", do: func(int) {
			ours = 0
			r := golang.NewReport(log)
			for calls := r.Read(buf); len(calls) > 0; calls = r.Read(buf) {
				ours += len(calls)
			}
		}},
	})
	if naive != ours || ours == 0 {
		b.Fatalf("%d frames, the expressions find %d", ours, naive)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ratio(times, "naive", "ours"), "x-expressions")
	b.ReportMetric(ratio(times, "ours", "memchr"), "x-memchr")
	b.ReportMetric(testing.AllocsPerRun(5, func() { r := golang.NewReport(log); r.Read(buf) }), "allocs/log")
}
