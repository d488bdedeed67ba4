package freshimport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

func TestParse(t *testing.T) {
	t.Parallel()
	type C = freshimport.Command
	script := func(s string) freshimport.Entry { return freshimport.Entry{Kind: freshimport.Script, Name: s} }
	module := func(s string) freshimport.Entry { return freshimport.Entry{Kind: freshimport.Module, Name: s} }
	code := freshimport.Entry{Kind: freshimport.Code}
	tests := []struct {
		argv string // blanks separate; a quoted blank is written as ·
		want *C     // nil: not Python
	}{
		{"python3 agent.py", &C{Interpreter: "python3", Entry: script("agent.py")}},
		{"/venv/bin/python -m acme --fast -m other", &C{Interpreter: "/venv/bin/python", Entry: module("acme")}},
		{"python3 -macme", &C{Interpreter: "python3", Entry: module("acme")}},
		{"python3 -Bum acme", &C{Interpreter: "python3", Args: []string{"-B"}, Entry: module("acme")}},
		{"python3 -c import·acme -I", &C{Interpreter: "python3", Entry: code}},
		{"python3 -cimport·acme", &C{Interpreter: "python3", Entry: code}},
		{"python3", &C{Interpreter: "python3", Entry: code}},
		{"python3 -", &C{Interpreter: "python3", Entry: code}},
		{"python3 -u - x", &C{Interpreter: "python3", Entry: code}},
		{"python3 -IEsSB x.py", &C{Interpreter: "python3", Args: []string{"-I", "-E", "-s", "-S", "-B"}, Entry: script("x.py")}},
		{"python3 -OO -P x.py -O", &C{Interpreter: "python3", Args: []string{"-O", "-O", "-P"}, Entry: script("x.py")}},
		{"python3 -i -v -q -d -u x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"python3 -X utf8 -Xdev -X importtime x.py", &C{Interpreter: "python3", Args: []string{"-X", "utf8", "-X", "dev"}, Entry: script("x.py")}},
		{"python3 -W error -Wignore::X -BWonce x.py", &C{Interpreter: "python3",
			Args: []string{"-W", "error", "-W", "ignore::X", "-B", "-W", "once"}, Entry: script("x.py")}},
		{"python3 --check-hash-based-pycs never x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"python3 -- -odd.py", &C{Interpreter: "python3", Entry: script("-odd.py")}},
		{"python3 -m", &C{Interpreter: "python3", Entry: code}},
		{"python2.7 -Qnew -3 x.py", &C{Interpreter: "python2.7", Args: []string{"-Qnew", "-3"}, Entry: script("x.py")}},
		{"/opt/poetry/bin/python /root/.local/bin/poetry -C srv run python -m acme", nil},
		{"python3 -m pipenv run acme", nil},
		{"/opt/conda/bin/python /opt/conda/bin/conda run -n acme python agent.py", nil},
		{"python3 /opt/bin/poetry install", &C{Interpreter: "python3", Entry: script("/opt/bin/poetry")}},
		{"python3 run.py poetry run", &C{Interpreter: "python3", Entry: script("run.py")}},
		{"pypy3 x.py", &C{Interpreter: "pypy3", Entry: script("x.py")}},
		{"python3.13t x.py", &C{Interpreter: "python3.13t", Entry: script("x.py")}},

		{"/usr/bin/env python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"env A=1 PYTHONPATH=/x python3 x.py", &C{Interpreter: "python3", Env: []string{"A=1", "PYTHONPATH=/x"}, Entry: script("x.py")}},
		{"env -i A=1 python3 x.py", &C{Interpreter: "python3", Clear: true, Env: []string{"A=1"}, Entry: script("x.py")}},
		{"env - python3 x.py", &C{Interpreter: "python3", Clear: true, Entry: script("x.py")}},
		{"env -u A -uB --unset=C --unset D python3 x.py", &C{Interpreter: "python3", Unset: []string{"A", "B", "C", "D"}, Entry: script("x.py")}},
		{"env -S python3·-B·-E x.py", &C{Interpreter: "python3", Args: []string{"-B", "-E"}, Entry: script("x.py")}},
		{"env -Spython3·-B x.py", &C{Interpreter: "python3", Args: []string{"-B"}, Entry: script("x.py")}},
		{"env -- python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"env env A=1 python3 x.py", &C{Interpreter: "python3", Env: []string{"A=1"}, Entry: script("x.py")}},
		{"env A=1 env -u A python3 x.py", &C{Interpreter: "python3", Unset: []string{"A"}, Entry: script("x.py")}},
		{"env A=1 env -i python3 x.py", &C{Interpreter: "python3", Clear: true, Entry: script("x.py")}},
		{"env -C /tmp python3 x.py", nil},
		{"nice python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"nice -n 5 python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"/usr/bin/nice -n5 --adjustment=3 --adjustment 2 -7 python3 -m acme", &C{Interpreter: "python3", Entry: module("acme")}},
		{"nohup python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"setsid -wc python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"stdbuf -oL -e 0 --input=0 python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"timeout 2h python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"timeout --foreground -k 1m -sINT --kill-after 3 2h python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"timeout -- 2h python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"ionice -c 3 -t python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"taskset -c 0-1 python3 x.py", &C{Interpreter: "python3", Entry: script("x.py")}},
		{"nice env A=1 nohup env -u B timeout 5 python3 x.py", &C{Interpreter: "python3", Env: []string{"A=1"}, Unset: []string{"B"}, Entry: script("x.py")}},
		{"nice", nil},
		{"nice -n", nil},
		{"timeout 2h", nil},
		{"timeout --signal KILL python3 x.py", nil},
		{"taskset -cp 0 python3", nil},
		{"ionice --pid=7 python3 x.py", nil},
		{"nice --help python3 x.py", nil},
		{"sudo -u acme python3 x.py", nil},
		{"env", nil},
		{"env A=1", nil},
		{"env -u", nil},
		{"env -S", nil},

		{"node x.js", nil},
		{"python3-config --libs", nil},
		{"pythonw.exe", nil},
		{"python.x x.py", nil},
		{"ipython x.py", nil},
		{"/srv/python/agent", nil},
		{"", nil},
	}
	for _, tt := range tests {
		t.Run(tt.argv, func(t *testing.T) {
			t.Parallel()
			argv := strings.Fields(tt.argv)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], "·", " ")
			}
			before := slices.Clone(argv)
			got, ok := freshimport.Parse(argv)
			if ok != (tt.want != nil) {
				t.Fatalf("Parse says %t: %+v", ok, got)
			}
			if !slices.Equal(argv, before) {
				t.Errorf("Parse changed its argument to %q", argv)
			}
			if ok {
				if d := cmp.Diff(*tt.want, got, cmpopts.IgnoreUnexported(C{}), cmpopts.EquateEmpty()); d != "" {
					t.Errorf("(-want +got)\n%s", d)
				}
			}
		})
	}
}

func TestOver(t *testing.T) {
	t.Parallel()
	env := []string{"A=1", "B=2", "PATH=/bin"}
	tests := []struct{ argv, want string }{
		{"python3 x.py", "A=1 B=2 PATH=/bin"},
		{"env C=3 python3 x.py", "A=1 B=2 PATH=/bin C=3"},
		{"env -u A C=3 python3 x.py", "B=2 PATH=/bin C=3"},
		{"env -i C=3 python3 x.py", "C=3"},
	}
	for _, tt := range tests {
		c, ok := freshimport.Parse(strings.Fields(tt.argv))
		if !ok {
			t.Fatalf("%q is not Python", tt.argv)
		}
		if got := strings.Join(c.Over(env), " "); got != tt.want {
			t.Errorf("%q over %q = %q, want %q", tt.argv, env, got, tt.want)
		}
	}
}

func TestShebang(t *testing.T) {
	t.Parallel()
	tests := []struct {
		head string
		want string // joined by |; empty: none
	}{
		{"#!/usr/bin/python3\nimport x", "/usr/bin/python3|/bin/agent|a b|c"},
		{"#!/usr/bin/env python3\n", "/usr/bin/env|python3|/bin/agent|a b|c"},
		{"#! /usr/bin/env -S python3 -B \r\n", "/usr/bin/env|-S python3 -B|/bin/agent|a b|c"},
		{"#!/venv with no newline", "/venv|with no newline|/bin/agent|a b|c"},
		{"#!\n", ""},
		{"#!   ", ""},
		{"\x7fELF", ""},
		{"", ""},
		{"import os", ""},
	}
	for _, tt := range tests {
		got, ok := freshimport.Shebang([]byte(tt.head), "/bin/agent", []string{"agent", "a b", "c"})
		if ok != (tt.want != "") || strings.Join(got, "|") != tt.want {
			t.Errorf("Shebang(%q) = %q, %t, want %q", tt.head, got, ok, tt.want)
		}
	}
}

// What Parse keeps must be what a plan may carry, or no run with those flags could ever be probed.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"python3\x00-Bu\x00x.py", "env\x00-S\x00python3 -X a\x00-m\x00b", "python3\x00-W\x00error\x00-c\x00x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		c, ok := freshimport.Parse(strings.Split(line, "\x00"))
		if !ok {
			return
		}
		if !freshimport.IsPython(c.Interpreter) {
			t.Errorf("the interpreter is %q", c.Interpreter)
		}
		if err := freshimport.CheckFlags(c.Args); err != nil {
			t.Errorf("Parse keeps what CheckFlags refuses: %v", err)
		}
	})
}

func FuzzShebang(f *testing.F) {
	f.Add([]byte("#!/usr/bin/env python3\n"))
	f.Fuzz(func(t *testing.T, head []byte) {
		got, ok := freshimport.Shebang(head, "/s", []string{"s", "a"})
		if ok && (len(got) < 3 || got[0] == "" || got[len(got)-1] != "a" || got[len(got)-2] != "/s") {
			t.Errorf("Shebang(%q) = %q", head, got)
		}
	})
}

func TestCheckFlags(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"", "-I", "-B -E -s", "-X utf8", "-Xutf8 -Wignore", "-OO", "-Qnew"} {
		if err := freshimport.CheckFlags(strings.Fields(good)); err != nil {
			t.Errorf("%q is refused: %v", good, err)
		}
	}
	for _, bad := range []string{"-c", "-m", "-i", "x.py", "-", "--", "-Bi", "-X", "-B -W", "-Bc", "--help", "-h", "-V"} {
		if err := freshimport.CheckFlags(strings.Fields(bad)); err == nil {
			t.Errorf("%q is let through: it would run something else, or wait at a prompt", bad)
		}
	}
}
