package freshimport_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

func dialect(name string) freshimport.Dialect {
	for _, d := range freshimport.Dialects() {
		if d.Name == name {
			return d
		}
	}
	return freshimport.Dialect{}
}

func TestDialects(t *testing.T) {
	t.Parallel()
	tests := []struct {
		dialect, argv string
		args, path    string // of the runtime, separated by blanks
		entry         string
		no            bool
	}{
		{dialect: "node", argv: "node agent.js -r x", entry: "agent.js"},
		{dialect: "node", argv: "/usr/bin/nodejs --inspect=0 --enable-source-maps agent.js", entry: "agent.js"},
		{dialect: "node", argv: "node --inspect-port 9229 --title x agent.js", entry: "agent.js"},
		{dialect: "node", argv: "node -r ./hook.js -C dev --import=tsx agent.ts", args: "--require=/run/hook.js --conditions=dev --import=tsx", entry: "agent.ts"},
		{dialect: "node", argv: "node --loader ../l.mjs --experimental-vm-modules agent.mjs", args: "--loader=/l.mjs --experimental-vm-modules", entry: "agent.mjs"},
		{dialect: "node", argv: "node --max-old-space-size=4096 --unhandled-rejections strict agent.js", entry: "agent.js"},
		{dialect: "node", argv: "node -e 1 agent.js"},
		{dialect: "node", argv: "node -"},
		{dialect: "node", argv: "node -- -odd.js", entry: "-odd.js"},
		{dialect: "node", argv: "env NODE_PATH=/a:b node agent.js", path: "/a /run/b", entry: "agent.js"},
		{dialect: "node", argv: "node --test", no: true},
		{dialect: "node", argv: "node --run build", no: true},
		{dialect: "node", argv: "/usr/bin/node /usr/bin/npm start", no: true},
		{dialect: "node", argv: "node /usr/lib/node_modules/npm/bin/npm-cli.js run agent", no: true},
		{dialect: "node", argv: "node -- /srv/acme/node_modules/.bin/tsx agent.ts", no: true},
		{dialect: "node", argv: "node agent.js npm", entry: "agent.js"},
		{dialect: "ruby", argv: "ruby /usr/bin/bundle exec ruby agent.rb", no: true},
		{dialect: "php", argv: "php /usr/bin/composer.phar run agent", no: true},
		{dialect: "node", argv: "nodemon agent.js", no: true},
		{dialect: "node", argv: "node-gyp build", no: true},

		{dialect: "ruby", argv: "ruby -Ilib -I /x:y -w agent.rb -Iz", path: "/run/lib /x /run/y", entry: "agent.rb"},
		{dialect: "ruby", argv: "ruby3.1 -wIlib agent.rb", path: "/run/lib", entry: "agent.rb"},
		{dialect: "ruby", argv: "ruby -rbundler/setup -r ./boot -W2 --disable-gems agent.rb", args: "-rbundler/setup -r/run/boot --disable-gems", entry: "agent.rb"},
		{dialect: "ruby", argv: "env RUBYLIB=/l ruby -I a agent.rb", path: "/run/a /l", entry: "agent.rb"},
		{dialect: "ruby", argv: "ruby -e 1"},
		{dialect: "ruby", argv: "ruby -S rake", no: true},
		{dialect: "ruby", argv: "ruby -C /x agent.rb", no: true},
		{dialect: "ruby", argv: "rubygems", no: true},

		{dialect: "php", argv: "php -d memory_limit=1G -c /etc/php agent.php", args: "-dmemory_limit=1G -c/etc/php", entry: "agent.php"},
		{dialect: "php", argv: "php8.2 -n -f agent.php -- x", args: "-n", entry: "agent.php"},
		{dialect: "php", argv: "php -r 1;"},
		{dialect: "php", argv: "php -S localhost:80", no: true},

		{dialect: "jvm", argv: "java -Xmx1g -cp lib/*:/x.jar com.acme.Main -cp y", path: "/run/lib/* /x.jar"},
		{dialect: "jvm", argv: "java -javaagent:a.jar -Dx=y -agentlib:jdwp=server=y -jar app.jar -cp z", path: "/run/app.jar"},
		{dialect: "jvm", argv: "java com.acme.Main", path: "/run"},
		{dialect: "jvm", argv: "env CLASSPATH=/a:/b java com.acme.Main", path: "/a /b"},
		{dialect: "jvm", argv: "env CLASSPATH=/a java -cp /b com.acme.Main", path: "/b"},
		{dialect: "jvm", argv: "java --add-exports java.base/x=ALL-UNNAMED --enable-preview -p mods -m m/com.acme.Main",
			args: "--add-exports=java.base/x=ALL-UNNAMED --enable-preview", path: "/run/mods /run/mods/*"},
		{dialect: "jvm", argv: "java -cp x.jar --module-path=:a.jar:mods -m m/com.acme.Main", path: "/run/x.jar /run/a.jar /run/mods /run/mods/*"},
		{dialect: "jvm", argv: "java @args", no: true},
		{dialect: "jvm", argv: "javac Main.java", no: true},
	}
	for _, tt := range tests {
		t.Run(tt.argv, func(t *testing.T) {
			t.Parallel()
			d := dialect(tt.dialect)
			argv := strings.Fields(tt.argv)
			before := slices.Clone(argv)
			c, ok := d.Parse(argv)
			if ok == tt.no {
				t.Fatalf("Parse says %t: %+v", ok, c)
			}
			if !slices.Equal(argv, before) {
				t.Errorf("Parse changed its argument to %q", argv)
			}
			if !ok {
				return
			}
			rt := d.Runtime(c, "/bin/x", c.Over(nil), "/run")
			if got := strings.Join(rt.Args, " "); got != tt.args {
				t.Errorf("args are %q, want %q", got, tt.args)
			}
			if got := strings.Join(rt.Path, " "); got != tt.path {
				t.Errorf("path is %q, want %q", got, tt.path)
			}
			if c.Entry.Name != tt.entry {
				t.Errorf("the program is %q, want %q", c.Entry.Name, tt.entry)
			}
		})
	}
}

func TestDialectsCheckFlags(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string][]string{
		"node": {"-e", "--eval=1", "--inspect", "--require", "agent.js", "-p", "--test", "-"},
		"ruby": {"-e1", "-S", "-I/x", "agent.rb", "-r", "-n"},
		"php":  {"-r1;", "-d", "agent.php", "-S0:80", "-a"},
		"jvm":  {"-jar", "-cp", "-javaagent:x", "Main", "@x", "-agentlib:jdwp"},
	} {
		for _, a := range bad {
			if err := dialect(name).CheckFlags([]string{a}); err == nil {
				t.Errorf("%s: %q is let through: it would run something else, or listen", name, a)
			}
		}
	}
}

// What a dialect keeps must be what a plan may carry, or no run with those flags could ever be probed.
func FuzzDialect(f *testing.F) {
	for _, s := range []string{"node\x00-r\x00./x\x00a.js", "ruby\x00-wIlib\x00-rx\x00a.rb", "php\x00-dx=y\x00-f\x00a.php", "java\x00-cp\x00x\x00Main"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, d := range freshimport.Dialects() {
			c, ok := d.Parse(strings.Split(line, "\x00"))
			if !ok {
				continue
			}
			if err := d.CheckFlags(c.Args); err != nil {
				t.Errorf("Parse keeps what CheckFlags refuses: %v", err)
			}
			rt := d.Runtime(c, "/bin/x", nil, "/run")
			if err := d.CheckFlags(rt.Args); err != nil {
				t.Errorf("Runtime makes what CheckFlags refuses: %v", err)
			}
			for _, p := range rt.Path {
				if !strings.HasPrefix(p, "/") {
					t.Errorf("the path has %q", p)
				}
			}
		}
	})
}

func TestDialectEnv(t *testing.T) {
	t.Parallel()
	env := strings.Fields("PATH=/bin NODE_OPTIONS=--inspect RUBYOPT=-rx JAVA_TOOL_OPTIONS=-javaagent:x NODE_ENV=production GEM_HOME=/g " +
		"PHPRC=/p JAVA_HOME=/j PYTHONHOME=/y ACME_TOKEN=secret NODE_PATH=/n MULLIGAN_HOME=/m")
	for name, want := range map[string]string{
		"node": "PATH=/bin NODE_ENV=production", "ruby": "PATH=/bin GEM_HOME=/g", "php": "PATH=/bin PHPRC=/p", "jvm": "PATH=/bin JAVA_HOME=/j",
	} {
		if got := strings.Join(dialect(name).Env(env), " "); got != want {
			t.Errorf("%s keeps %q, want %q", name, got, want)
		}
	}
	if got := strings.Join(freshimport.EnvWith(env, []string{"GEM_HOME"}), " "); got != "PATH=/bin GEM_HOME=/g" {
		t.Errorf("EnvWith keeps %q", got)
	}
}

// What the run preloaded is left out of a plan where it is user code, and so are its folders.
func TestDialectPlanLeavesWorkspacesOut(t *testing.T) {
	t.Parallel()
	s := freshimport.Setting{
		Runtime: freshimport.Runtime{Interpreter: "/bin/node", Args: []string{"--require=/ws/hook.js", "--import=/srv/acme/hook.mjs", "--import=tsx"},
			Path: []string{"/ws/lib", "/srv/acme/lib"}},
		Roots: []classify.Root{{Name: "acme", Dirs: []string{"/srv/acme"}}}, Workspaces: []string{"/ws"},
	}
	p, ok := freshimport.Node.Plan(s, []string{"x"})
	if !ok || strings.Join(p.Args, " ") != "--import=/srv/acme/hook.mjs --import=tsx" || strings.Join(p.Path, " ") != "/srv/acme/lib" {
		t.Errorf("the plan is %+v, %t", p, ok)
	}
	if _, ok := freshimport.Node.Plan(s, nil); ok {
		t.Error("there is a plan without modules")
	}
	if !s.Managed("/srv/acme/x") || s.Managed("/ws/x") || s.Managed("/srv/acme2") {
		t.Error("Managed does not go by whole folders of roots")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for module, want := range map[string]string{
		"/srv/acme/lib/x.js": "srv/acme/lib/x.js", "acme/wire": "acme/wire.rb", "Acme::Wire": "Acme/Wire.pm", "Acme::FrameReader": "acme/frame_reader.rb",
		`Acme\Wire\Frame`: "Wire/Frame.php", "acme.wire": "acme/wire.lua", "acme::wire": "acme/wire.tcl", "com.acme.Wire": "com/acme/Wire.class",
		"@acme/wire": "node_modules/@acme/wire/package.json", "acme/wire.js": "acme/wire.js", "libacme.so": "libacme.so",
	} {
		if got := (freshimport.Names{}).Files(module); !slices.Contains(got, want) {
			t.Errorf("Files(%q) = %q, want %q among them", module, got, want)
		}
	}
	for _, none := range []string{"", "../x"} {
		if got := (freshimport.Names{}).Files(none); got != nil {
			t.Errorf("Files(%q) = %q", none, got)
		}
	}
	tests := []struct {
		src, name string
		want      bool
	}{
		{"export const Frame = 1;\n", "Frame", true},
		{"module.exports = { Frame };", "Frame", true},
		{"export const FrameReader = 1;\n", "Frame", false},
		{"// Frame is gone\n# Frame\n", "Frame", false},
		{"x.Frames\n$Frame\nFrame", "Frame", true},
		{"Frame", "", false},
	}
	for _, tt := range tests {
		if got := (freshimport.Names{}).Binds([]byte(tt.src), tt.name); got != tt.want {
			t.Errorf("Binds(%q, %q) = %t", tt.src, tt.name, got)
		}
	}
}
