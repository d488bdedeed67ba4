package e2e

import (
	"strings"
	"testing"
)

// next is a tree's next version: in names and contents every FrameOne becomes a FrameTwo, every wire-one a wire-two.
func next(tree []string) (out []string) {
	for _, s := range tree {
		out = append(out, strings.NewReplacer("One", "Two", "_one", "_two", "-one", "-two").Replace(s))
	}
	return out
}

// TestNodeCommonJS: a chunk that is loaded late is gone, because the update renamed it.
func TestNodeCommonJS(t *testing.T) {
	before := []string{
		"agent.js", `const fs = require('fs');
const jobs = require('./lib/jobs');
const [, , name, mode] = process.argv;
const tell = (what) => fs.appendFileSync(process.env.ACME_STATE + '/' + name + what, '.');
tell('-starts');
tell('-waits');
const timer = setInterval(() => {
  if (!fs.existsSync(process.env.ACME_STATE + '/update')) return;
  clearInterval(timer);
  jobs[mode]();
  tell('-done');
}, 5);
`,
		"lib/jobs.js", `exports.lazy = () => require('./wire-one.js').send();
exports.bug = () => { throw new RangeError('the answer is not 42'); };
exports.provider = () => { throw Object.assign(new Error('429 rate limit exceeded'), { name: 'RateLimitError', status: 429 }); };
exports.workspace = () => require(process.env.ACME_WS + '/plugin.js');
`,
		"lib/wire-one.js", "exports.send = () => {};\n",
	}
	cast{
		needs: []string{"node", "nodejs"}, runtime: "node", modules: []string{"acme"}, command: []string{"node", "%LIVE%/agent.js"},
		before: before, after: next(before), plugin: []string{"plugin.js", "require('./wire-one.js');\n"},
		module: "%LIVE%/lib/wire-one.js", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "provider": "answer rate_limit", "workspace": "answer workspace_import"},
	}.play(t)
}

// TestNodeModules: an ES module that is loaded late asks the old module in memory for a name that only the new one has.
func TestNodeModules(t *testing.T) {
	before := []string{
		"package.json", `{"type": "module"}`,
		"agent.js", `import fs from 'node:fs';
import * as jobs from './lib/jobs.js';
const [, , name, mode] = process.argv;
const tell = (what) => fs.appendFileSync(process.env.ACME_STATE + '/' + name + what, '.');
tell('-starts');
tell('-waits');
while (!fs.existsSync(process.env.ACME_STATE + '/update')) await new Promise((ok) => setTimeout(ok, 5));
await jobs[mode]();
tell('-done');
`,
		"lib/jobs.js", `import { FrameOne } from './wire.js';
export const lazy = async () => { await import('./late.js'); return FrameOne; };
export const bug = async () => { throw new RangeError('the answer is not 42'); };
export const workspace = async () => { await import(process.env.ACME_WS + '/plugin.mjs'); };
`,
		"lib/wire.js", "export class FrameOne {}\n",
		"lib/late.js", "import { FrameOne } from './wire.js';\nexport default FrameOne;\n",
	}
	cast{
		needs: []string{"node", "nodejs"}, runtime: "node", modules: []string{"acme"}, command: []string{"node", "%LIVE%/agent.js"},
		before: before, after: next(before), plugin: []string{"plugin.mjs", "import { FrameTwo } from './wire.js';\n", "wire.js", "export {};\n"},
		module: "%LIVE%/lib/wire.js", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestRuby(t *testing.T) {
	before := []string{
		"agent.rb", `require "acme/jobs"
$name, mode = ARGV
def tell(what)
  File.open(ENV["ACME_STATE"] + "/" + $name + what, "a") { |f| f.write "." }
end
tell "-starts"
tell "-waits"
sleep 0.005 until File.exist?(ENV["ACME_STATE"] + "/update")
Acme::Jobs.send(mode)
tell "-done"
`,
		"lib/acme/jobs.rb", `module Acme
  module Jobs
    def self.lazy
      require "acme/wire_one"
    end

    def self.bug
      raise ArgumentError, "the answer is not 42"
    end

    def self.workspace
      load ENV["ACME_WS"] + "/plugin.rb"
    end
  end
end
`,
		"lib/acme/wire_one.rb", "module Acme\n  WireOne = 1\nend\n",
	}
	cast{
		needs: []string{"ruby", "ruby"}, runtime: "ruby", modules: []string{"acme", "Acme"}, command: []string{"ruby", "-I", "%LIVE%/lib", "%LIVE%/agent.rb"},
		before: before, after: next(before), plugin: []string{"plugin.rb", "require 'acme/wire_one'\n"},
		module: "acme/wire_one", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestPHP(t *testing.T) {
	before := []string{
		"agent.php", `<?php
spl_autoload_register(function ($class) {
    $file = __DIR__ . '/src/' . strtr(substr($class, 5), '\\', '/') . '.php';
    if (is_file($file)) {
        require $file;
    }
});
[, $name, $mode] = $argv;
$state = getenv('ACME_STATE');
file_put_contents("$state/$name-starts", '.', FILE_APPEND);
$jobs = new Acme\Jobs();
touch("$state/$name-waits");
while (!file_exists("$state/update")) {
    usleep(5000);
    clearstatcache();
}
$jobs->$mode();
touch("$state/$name-done");
`,
		"src/Jobs.php", `<?php
namespace Acme;

class Jobs
{
    public function lazy() { return new WireOne(); }
    public function bug() { throw new \LogicException('the answer is not 42'); }
    public function workspace() { require getenv('ACME_WS') . '/plugin.php'; }
}
`,
		"src/WireOne.php", "<?php\nnamespace Acme;\n\nclass WireOne\n{\n}\n",
	}
	cast{
		needs: []string{"php", "php-cli"}, runtime: "php", modules: []string{"Acme"}, command: []string{"php", "%LIVE%/agent.php"},
		before: before, after: next(before), plugin: []string{"plugin.php", "<?php\nnew Acme\\WireOne();\n"},
		module: `Acme\WireOne`, witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestPerl(t *testing.T) {
	before := []string{
		"agent.pl", `use strict;
use lib $ENV{ACME_LIVE} . '/lib';
use Acme::Jobs;
my ($name, $mode) = @ARGV;
sub tell_of { open my $f, '>>', "$ENV{ACME_STATE}/$name$_[0]" or die; print $f '.'; close $f }
tell_of('-starts');
tell_of('-waits');
select undef, undef, undef, 0.005 until -e "$ENV{ACME_STATE}/update";
Acme::Jobs->can($mode)->();
tell_of('-done');
`,
		"lib/Acme/Jobs.pm", `package Acme::Jobs;
use strict;
sub lazy { require Acme::WireOne }
sub bug { die "the answer is not 42" }
sub workspace { require "$ENV{ACME_WS}/plugin.pl" }
1;
`,
		"lib/Acme/WireOne.pm", "package Acme::WireOne;\n1;\n",
	}
	cast{
		needs: []string{"perl", "perl"}, runtime: "command", check: []string{"perl", "-c"}, modules: []string{"Acme"}, command: []string{"perl", "%LIVE%/agent.pl"},
		before: before, after: next(before), plugin: []string{"plugin.pl", "require Acme::WireOne;\n1;\n"},
		module: "Acme::WireOne", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestTcl(t *testing.T) {
	before := []string{
		"agent.tcl", `lappend auto_path $env(ACME_LIVE)
lassign $argv name mode
proc tell what { global env name; set f [open $env(ACME_STATE)/$name$what a]; puts -nonewline $f .; close $f }
proc lazy {} { package require acme::wire_one }
proc bug {} { error "the answer is not 42" }
proc workspace {} { global env; source $env(ACME_WS)/plugin.tcl }
tell -starts
tell -waits
while {![file exists $env(ACME_STATE)/update]} { after 5 }
$mode
tell -done
`,
		"lib/pkgIndex.tcl", "package ifneeded acme::wire_one 1.0 [list source [file join $dir acme wire_one.tcl]]\n",
		"lib/acme/wire_one.tcl", "package provide acme::wire_one 1.0\n",
	}
	cast{
		needs: []string{"tclsh", "tcl"}, runtime: "command", modules: []string{"acme"}, command: []string{"tclsh", "%LIVE%/agent.tcl"},
		check:  []string{"sh", "-c", `printf 'set f [open [lindex $argv 0]]; exit [expr {![info complete [read $f]]}]' >check.tcl; exec tclsh check.tcl "$1"`, "check"},
		before: before, after: next(before), plugin: []string{"plugin.tcl", "package require acme::wire_one\n"},
		module: "acme::wire_one", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestLua(t *testing.T) {
	before := []string{
		"agent.lua", `local live, state = os.getenv("ACME_LIVE"), os.getenv("ACME_STATE")
package.path = live .. "/lib/?.lua"
local jobs = require("acme.jobs")
local name, mode = arg[1], arg[2]
local function tell(what)
  local f = assert(io.open(state .. "/" .. name .. what, "a"))
  f:write(".")
  f:close()
end
tell("-starts")
tell("-waits")
while true do
  local f = io.open(state .. "/update")
  if f then break end
  os.execute("sleep 0.02")
end
jobs[mode]()
tell("-done")
`,
		"lib/acme/jobs.lua", `local jobs = {}
function jobs.lazy() local wire = require("acme.wire_one") return wire end
function jobs.bug() local x = nil; error("the answer is not 42") end
function jobs.workspace() local r = dofile(os.getenv("ACME_WS") .. "/plugin.lua") return r end
return jobs
`,
		"lib/acme/wire_one.lua", "return {}\n",
	}
	cast{
		needs: []string{"lua5.4", "lua5.4"}, runtime: "command", modules: []string{"acme"}, command: []string{"lua5.4", "%LIVE%/agent.lua"},
		check:  []string{"sh", "-c", `FILE=$1 exec lua5.4 -e 'assert(loadfile(os.getenv("FILE")))'`, "check"},
		before: before, after: next(before), plugin: []string{"plugin.lua", "local w = require('acme.wire_one')\nreturn w\n"},
		module: "acme.wire_one", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}

func TestBash(t *testing.T) {
	before := []string{
		"agent.sh", `set -eu
name=$1 mode=$2
printf . >>"$ACME_STATE/$name-starts"
lazy() { source "$ACME_LIVE/lib/wire-one.sh"; }
bug() { false; }
workspace() { source "$ACME_WS/plugin.sh"; }
main() {
  touch "$ACME_STATE/$name-waits"
  until [ -e "$ACME_STATE/update" ]; do sleep 0.02; done
  "$mode"
  touch "$ACME_STATE/$name-done"
}
main; exit
`,
		"lib/wire-one.sh", "wire=one\n",
	}
	cast{
		needs: []string{"bash", "bash"}, lasting: true, runtime: "command", check: []string{"bash", "-n"}, modules: []string{"acme"}, command: []string{"bash", "%LIVE%/agent.sh"},
		before: before, after: next(before), plugin: []string{"plugin.sh", "source \"$ACME_WS/wire-one.sh\"\n"},
		module: "%LIVE%/lib/wire-one.sh", witnesses: allWitnesses,
		lookalikes: map[string]string{"bug": "answer no_update_signature", "workspace": "answer workspace_import"},
	}.play(t)
}
