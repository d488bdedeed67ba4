package process_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/probe/probetest"
)

func newInterpreter(t testing.TB, d freshimport.Dialect) *process.Interpreter {
	t.Helper()
	p, err := process.NewInterpreter(process.InterpreterConfig{Dialect: d})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// plainEnv is the machine's environment without what turns a prober's promises on by itself.
func plainEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "NODE_") || strings.HasPrefix(kv, "RUBY") || strings.HasPrefix(kv, "JAVA_TOOL") || strings.HasPrefix(kv, "LD_")
	})
}

func nodeSubject(t testing.TB) probetest.Subject {
	return probetest.Subject{Prober: newInterpreter(t, freshimport.Node), Language: probetest.Node, Env: plainEnv(),
		Interpreter: require.Program(t, "node", "apt-get install nodejs")}
}

func rubySubject(t testing.TB) probetest.Subject {
	return probetest.Subject{Prober: newInterpreter(t, freshimport.Ruby), Language: probetest.Ruby, Env: plainEnv(),
		Interpreter: require.Program(t, "ruby", "apt-get install ruby")}
}

func phpSubject(t testing.TB) probetest.Subject {
	return probetest.Subject{Prober: newInterpreter(t, freshimport.PHP), Language: probetest.PHP, Env: plainEnv(),
		Interpreter: require.Program(t, "php", "apt-get install php-cli")}
}

func jvmSubject(t testing.TB) probetest.Subject {
	return probetest.Subject{Prober: newInterpreter(t, freshimport.JVM), Language: probetest.JVM, Env: plainEnv(),
		Interpreter: require.Program(t, "java", "apt-get install default-jdk-headless")}
}

func elfSubject(t testing.TB) probetest.Subject {
	return probetest.Subject{Prober: process.NewELF(), Env: plainEnv(),
		Language:    probetest.C(require.Program(t, "gcc", "apt-get install gcc libc6-dev")),
		Interpreter: require.Program(t, "env", "apt-get install coreutils")}
}

func shellSubject(t testing.TB) probetest.Subject {
	p, err := process.NewCommand(process.CommandConfig{PathVariable: "PROBE_PATH"})
	if err != nil {
		t.Fatal(err)
	}
	return probetest.Subject{Prober: p, Language: probetest.Shell, Env: plainEnv(),
		Interpreter: require.Program(t, "sh", "apt-get install dash"), Args: []string{"-c", probetest.ShellLoader, "probe"}}
}

func TestProbersKeepTheirPromises(t *testing.T) {
	t.Parallel()
	for name, subject := range map[string]func(testing.TB) probetest.Subject{
		"node": nodeSubject, "ruby": rubySubject, "php": phpSubject, "jvm": jvmSubject, "elf": elfSubject, "command": shellSubject,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probetest.Run(t, subject(t))
		})
	}
}
