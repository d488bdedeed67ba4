package probetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Node writes CommonJS modules for Node.js. A program in it cannot fork.
var Node = Language{Write: write(node, ".js", strconv.QuoteToASCII), PathVariable: "NODE_PATH"}

var node = map[Behaviour]string{
	Note:     "require('fs').appendFileSync(ARG, require('path').basename(__filename, '.js') + '\\n');\n",
	Raise:    "throw new Error(ARG);\n",
	Load:     "require(ARG);\n",
	Exit:     "process.exit(0);\n",
	ExitHard: "process.reallyExit(0);\n",
	Crash:    "process.kill(process.pid, 'SIGSEGV');\nfor (;;);\n",
	Loop:     nodeTell + "tell(process.pid);\nfor (;;);\n",
	Child:    nodeTell + nodeChild,
	// The child is started before the loop, which would keep it from starting.
	ChildLoop: nodeTell + nodeChild + "for (;;);\n",
	Thread:    "setInterval(() => {}, 1000);\nnew (require('worker_threads').Worker)('setInterval(() => {}, 1000)', { eval: true });\n",
	Flood:     nodeFlood,
	FloodFail: nodeFlood + "throw new Error(ARG);\n",
	Complain:  "console.error('Uncaught Error: Cannot find module');\n",
	Input:     "if (require('fs').readFileSync(0).length) throw new Error('stdin is not empty');\n",
	Place:     "const fs = require('fs');\nfs.writeFileSync(ARG, [process.cwd(), ...fs.readdirSync('.')].join('\\n'));\n",
	Environ:   "require('fs').writeFileSync(ARG, Object.entries(process.env).map(([k, v]) => k + '=' + v + '\\0').join(''));\n",
	Chatter: "for (let fd = 1; fd < 64; fd++) for (const s of ['done\\n', 'ok\\n', '0\\n', 'healthy\\n']) {\n" +
		"  if (fd > 4) continue; // what lies above is the interpreter's own and aborts it\n" +
		"  try { require('fs').writeSync(fd, s); } catch {}\n}\nprocess.reallyExit(0);\n",
}

const (
	nodeTell = "const fs = require('fs');\nconst tell = (n) => { fs.writeFileSync(ARG + '.part', String(n)); fs.renameSync(ARG + '.part', ARG); };\n"
	// Descriptors that a child is to have must be named.
	nodeChild = "tell(require('child_process').spawn('/bin/sleep', ['300'], { stdio: [0, 1, 2, 'inherit', 4] }).pid);\n"
	nodeFlood = "for (let i = 0; i < 64; i++) for (const fd of [1, 2]) require('fs').writeSync(fd, 'x'.repeat(32767) + '\\n');\n"
)

// Ruby writes features for Ruby.
var Ruby = Language{Write: write(ruby, ".rb", rubyQuote), PathVariable: "RUBYLIB"}

var ruby = map[Behaviour]string{
	Note:      "File.open(ARG, 'a') { |f| f.puts File.basename(__FILE__, '.rb') }\n",
	Raise:     "raise ARG\n",
	Load:      "require ARG\n",
	Exit:      "exit 0\n",
	ExitHard:  "exit! 0\n",
	Crash:     "trap('SEGV', 'SYSTEM_DEFAULT') rescue nil\nProcess.kill('ABRT', Process.pid)\nloop {}\n",
	Loop:      rubyTell + "tell(Process.pid)\nloop { sleep 0.01 }\n",
	Child:     rubyTell + rubyChild,
	ChildLoop: rubyTell + rubyChild + "loop { sleep 0.01 }\n",
	Fork:      "if pid = fork\n  Process.wait pid\n  exit! 0\nend\n",
	Thread:    "Thread.new { loop { sleep 1 } }\n",
	Flood:     rubyFlood,
	FloodFail: rubyFlood + "raise ARG\n",
	Complain:  "warn \"x.rb:1:in `require': cannot load such file (LoadError)\"\n",
	Input:     "raise 'stdin is not empty' unless STDIN.read.empty?\n",
	Place:     "File.write(ARG, ([Dir.pwd] + Dir.children('.')).join(\"\\n\"))\n",
	Environ:   "File.write(ARG, ENV.map { |k, v| k + '=' + v + \"\\0\" }.join)\n",
	Chatter: "(1..4).each { |fd| ['done', 'ok', '0', 'healthy'].each { |s| begin; IO.for_fd(fd, autoclose: false).syswrite(s + \"\\n\"); rescue StandardError; end } }\n" +
		"exit! 0\n",
}

const (
	rubyTell  = "def tell(n)\n  File.write(ARG + '.part', n.to_s)\n  File.rename(ARG + '.part', ARG)\nend\n"
	rubyChild = "tell(fork { loop { sleep 0.01 } })\n"
	rubyFlood = "64.times { [STDOUT, STDERR].each { |o| o.syswrite('x' * 32767 + \"\\n\") } }\n"
)

// rubyQuote is a literal in which nothing is filled in.
func rubyQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}

// PHP writes files for PHP.
var PHP = Language{Write: write(php, ".php", rubyQuote)}

var php = map[Behaviour]string{
	Note:      "<?php file_put_contents(ARG, basename(__FILE__, '.php') . \"\\n\", FILE_APPEND);\n",
	Raise:     "<?php throw new Exception(ARG);\n",
	Load:      "<?php require ARG . '.php';\n",
	Exit:      "<?php exit(0);\n",
	ExitHard:  "<?php register_shutdown_function(function () { exit(0); });\nexit(0);\n",
	Crash:     "<?php posix_kill(getmypid(), 6);\nfor (;;);\n",
	Loop:      phpTell + "tell(getmypid());\nfor (;;) { usleep(10000); }\n",
	Child:     phpTell + phpChild,
	ChildLoop: phpTell + phpChild + "for (;;) { usleep(10000); }\n",
	Fork:      "<?php $pid = pcntl_fork();\nif ($pid) { pcntl_waitpid($pid, $status); posix_kill(getmypid(), 6); exit(0); }\n",
	Flood:     phpFlood,
	FloodFail: phpFlood + "throw new Exception(ARG);\n",
	Complain:  "<?php fwrite(STDERR, \"PHP Fatal error:  Uncaught Error: Class not found\\n\");\n",
	Input:     "<?php if (stream_get_contents(STDIN) !== '') { throw new Exception('stdin is not empty'); }\n",
	Place:     "<?php file_put_contents(ARG, implode(\"\\n\", array_merge([getcwd()], array_values(array_diff(scandir('.'), ['.', '..'])))));\n",
	Environ:   "<?php $all = ''; foreach (getenv() as $k => $v) { $all .= \"$k=$v\\0\"; }\nfile_put_contents(ARG, $all);\n",
	Chatter: "<?php for ($fd = 1; $fd < 64; $fd++) { foreach (['done', 'ok', '0', 'healthy'] as $s) {\n" +
		"    if ($f = @fopen(\"php://fd/$fd\", 'wb')) { @fwrite($f, \"$s\\n\"); }\n} }\nexit(0);\n",
}

const (
	phpTell  = "<?php function tell($n) { file_put_contents(ARG . '.part', $n); rename(ARG . '.part', ARG); }\n"
	phpChild = "$pid = pcntl_fork();\nif (!$pid) { for (;;) { usleep(10000); } }\ntell($pid);\n"
	phpFlood = "<?php for ($i = 0; $i < 64; $i++) { foreach ([STDOUT, STDERR] as $f) { fwrite($f, str_repeat('x', 32767) . \"\\n\"); } }\n"
)

// Shell writes sources for a POSIX shell, for probers of declared commands. The exit status is all that such a command
// says, so what ends it with success cannot be told from a module that loads.
var Shell = Language{Write: write(shell, ".sh", shellQuote)}

// ShellLoader is the command that loads modules of [Shell] from the folders in $PROBE_PATH: sh -c ShellLoader probe MODULE.
const ShellLoader = `load() { for d in $(echo "$PROBE_PATH" | tr : ' '); do if [ -f "$d/$1.sh" ]; then module=$1; . "$d/$1.sh"; return; fi; done; ` +
	`echo "no module $1" >&2; exit 1; }; load "$1"`

var shell = map[Behaviour]string{
	Note:      "echo $module >>ARG\n",
	Raise:     "echo ARG >&2; exit 1\n",
	Load:      "load ARG\n",
	Crash:     "kill -SEGV $$\nwhile :; do :; done\n",
	Loop:      "echo $$ >ARG.part; mv ARG.part ARG\nwhile :; do sleep 1; done\n",
	Child:     shellChild,
	ChildLoop: shellChild + "while :; do sleep 1; done\n",
	Flood:     shellFlood,
	FloodFail: shellFlood + "echo ARG >&2; exit 1\n",
	Complain:  "echo 'sh: 1: nothing: not found' >&2\n",
	Input:     "if read -r line; then echo stdin is not empty >&2; exit 1; fi\n",
	Place:     "{ pwd; ls -A; } >ARG\n",
	Environ:   "tr -d '\\n' </proc/self/environ >ARG\n",
}

const (
	shellChild = "sleep 300 &\necho $! >ARG.part; mv ARG.part ARG\n"
	shellFlood = "head -c 2097152 /dev/zero | tr '\\0' x\nhead -c 2097152 /dev/zero | tr '\\0' x >&2\necho >&2\n"
)

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// write makes a Write of sources in which ARG stands for the argument as a literal.
func write(sources map[Behaviour]string, ext string, quote func(string) string) func(dir, module string, does Behaviour, arg string) error {
	return func(dir, module string, does Behaviour, arg string) error {
		source, ok := sources[does]
		if !ok {
			return fmt.Errorf("%s: %w", does, ErrCannot)
		}
		return os.WriteFile(filepath.Join(dir, module+ext), []byte(strings.ReplaceAll(source, "ARG", quote(arg))), 0o600)
	}
}
