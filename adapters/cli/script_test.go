package cli_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/cli"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain makes the test binary stand for several programs: the command line itself, a host that mounts it under its
// own root, and hosts that run sessions.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"mulligan": func() { os.Exit(cli.ExitCode(cli.New(cli.Env{}).Execute())) },
		"acme": func() {
			root := &cobra.Command{Use: "acme"}
			heal := cli.New(cli.Env{})
			heal.Use = "heal"
			root.AddCommand(heal)
			os.Exit(cli.ExitCode(root.Execute()))
		},
		"agent":     agent,
		"keeper":    keeper,
		"selfhost":  selfHost,
		"agenthost": agentHost,
	})
}

// TestScripts runs the scripts that specify the command line.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			home := filepath.Join(env.WorkDir, "home")
			if err := os.Mkdir(home, 0o700); err != nil {
				return err
			}
			env.Setenv("HOME", home)
			env.Setenv("MULLIGAN_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("COLUMNS", "100")
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			for _, who := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+who+"_NAME", "acme")
				env.Setenv("GIT_"+who+"_EMAIL", "acme@example.com")
			}
			return nil
		},
		Condition: missing,
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"code":       code,
			"json":       checkJSON,
			"nojson":     noJSON,
			"eventually": eventually,
			"await":      await,
			"golden":     golden,
			"secret":     secret,
			"unit":       unit,
		},
	})
}

// missing is the condition [missing:PROGRAM], by which a script skips itself. Where everything has to run it is a failure
// instead.
func missing(cond string) (bool, error) {
	program, ok := strings.CutPrefix(cond, "missing:")
	if !ok {
		return false, fmt.Errorf("unknown condition %q", cond)
	}
	if _, err := exec.LookPath(program); err == nil {
		return false, nil
	}
	if os.Getenv("MULLIGAN_REQUIRE") == "all" {
		return false, fmt.Errorf("%s is not installed and MULLIGAN_REQUIRE=all; get it with: apt-get install %s", program, program)
	}
	return true, nil
}

// code runs a command that must end with an exit code: code N CMD [ARG...].
func code(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N CMD [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// checkJSON looks a value up in the JSON on standard output: json PATH REGEXP, with a path like outcomes.0.code. The
// whole of standard output must be one JSON document.
func checkJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] json PATH REGEXP")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &doc); err != nil {
		ts.Fatalf("standard output is not one JSON document: %v", err)
	}
	got, ok := lookUp(doc, args[0])
	text := fmt.Sprint(got)
	if !ok {
		text = "(absent)"
	}
	if match := regexp.MustCompile("^(?:" + args[1] + ")$").MatchString(text); match == neg {
		ts.Fatalf("%s is %s, want it to match %q: %v", args[0], text, args[1], !neg)
	}
}

func lookUp(v any, path string) (any, bool) {
	for part := range strings.SplitSeq(path, ".") {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[part]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			if part == "len" {
				return len(at), true
			}
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(at) {
				return nil, false
			}
			v = at[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// noJSON fails when a secret or the like stands in the last output: nojson TEXT.
func noJSON(ts *testscript.TestScript, _ bool, args []string) {
	for _, a := range args {
		if strings.Contains(ts.ReadFile("stdout")+ts.ReadFile("stderr"), a) {
			ts.Fatalf("the output holds %q", a)
		}
	}
}

// patience bounds every wait for another process.
const patience = time.Minute

// eventually runs a command again and again until its standard output matches: eventually REGEXP CMD [ARG...].
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually REGEXP CMD [ARG...]")
	}
	want := regexp.MustCompile(args[0])
	until(ts, args[0], func() bool {
		ts.Check(ts.Exec(args[1], args[2:]...))
		return want.MatchString(ts.ReadFile("stdout"))
	})
}

// await waits until a file exists: await FILE.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: await FILE")
	}
	until(ts, args[0], func() bool {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil
	})
}

func until(ts *testscript.TestScript, what string, done func() bool) {
	over := time.NewTimer(patience)
	defer over.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-over.C:
			ts.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}
