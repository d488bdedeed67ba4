package freshimport

// The runtimes besides Python whose command lines are read. They are values that nothing changes.
var (
	// Node is Node.js. Preloaded modules and loaders (--require, --import, --loader) are kept, because without them code
	// of another language is not loadable at all; what they load runs in the probe as it ran in the run. NODE_PATH is kept
	// as the search path.
	Node = Dialect{
		Name: "node", Ask: []string{"-p", "process.execPath"}, programs: []string{"node", "nodejs"}, pathVariable: "NODE_PATH",
		managers: []string{"npm", "npm-cli", "npx", "npx-cli", "yarn", "yarnpkg", "pnpm", "pnpx", "corepack", "nodemon", "pm2", "pm2-runtime", "forever", "tsx", "ts-node"},
		env:      []string{"NODE_ENV", "NODE_EXTRA_CA_CERTS", "NODE_ICU_DATA", "NODE_PRESERVE_SYMLINKS", "NODE_PRESERVE_SYMLINKS_MAIN", "NODE_NO_WARNINGS"},
		flags: []rule{
			{name: "--require", value: next, use: preload}, {name: "-r", value: next, use: preload, as: "--require"},
			{name: "--import", value: next, use: preload}, {name: "--loader", value: next, use: preload},
			{name: "--experimental-loader", value: next, use: preload},
			{name: "--conditions", value: next, use: keep}, {name: "-C", value: next, use: keep, as: "--conditions"},
			{name: "--experimental-default-type", value: next, use: keep}, {name: "--experimental-specifier-resolution", value: next, use: keep},
			{name: "--icu-data-dir", value: next, use: keep},
			{name: "--preserve-symlinks", use: keep}, {name: "--preserve-symlinks-main", use: keep}, {name: "--no-addons", use: keep},
			{name: "--no-global-search-paths", use: keep}, {name: "--expose-gc", use: keep}, {name: "--enable-source-maps"},
			{name: "--eval", value: next, use: code}, {name: "-e", value: next, use: code}, {name: "--print", value: next, use: code},
			{name: "-p", value: next, use: code}, {name: "-pe", value: next, use: code}, {name: "--interactive", use: code}, {name: "-i", use: code},
			{name: "--run", value: next, use: refuse}, {name: "--test", use: refuse}, {name: "--watch"}, {name: "--check", use: refuse}, {name: "-c", use: refuse},
			// What takes a value and is dropped, so that the value is not taken for the program.
			{name: "--input-type", value: next}, {name: "--env-file", value: next}, {name: "--env-file-if-exists", value: next}, {name: "--title", value: next},
			{name: "--max-http-header-size", value: next}, {name: "--openssl-config", value: next}, {name: "--redirect-warnings", value: next},
			{name: "--trace-event-categories", value: next}, {name: "--trace-event-file-pattern", value: next}, {name: "--diagnostic-dir", value: next},
			{name: "--report-directory", value: next}, {name: "--report-dir", value: next}, {name: "--report-filename", value: next}, {name: "--report-signal", value: next},
			{name: "--secure-heap", value: next}, {name: "--secure-heap-min", value: next}, {name: "--unhandled-rejections", value: next},
			{name: "--disable-warning", value: next}, {name: "--watch-path", value: next}, {name: "--dns-result-order", value: next},
			{name: "--cpu-prof-dir", value: next}, {name: "--cpu-prof-name", value: next}, {name: "--heap-prof-dir", value: next}, {name: "--heap-prof-name", value: next},
			{name: "--tls-cipher-list", value: next}, {name: "--tls-keylog", value: next}, {name: "--trace-require-module", value: none},
			{name: "--inspect-port", value: next}, {name: "--debug-port", value: next}, {name: "--disable-proto", value: next, use: keep},
			{name: "--localstorage-file", value: next}, {name: "--stack-trace-limit", value: begin},
			// Features of the language and its loaders.
			{name: "--experimental-test", value: begin}, {name: "--experimental-repl-await"}, {name: "--experimental-network-inspection"},
			{name: "--experimental-", value: begin, use: keep}, {name: "--no-experimental-", value: begin, use: keep},
			{name: "--harmony", value: begin, use: keep}, {name: "--disable-code-generation-from-strings", use: keep},
		},
	}

	// Ruby is MRI and what takes its flags. RUBYLIB is kept as part of the search path, RUBYOPT is not: a run that needs
	// bundler's set-up says so with -r.
	Ruby = Dialect{
		Name: "ruby", Ask: []string{"--disable-all", "-e", "print RbConfig.ruby"}, programs: []string{"ruby"}, pathVariable: "RUBYLIB", managers: []string{"bundle", "bundler", "foreman"},
		env: []string{"GEM_HOME", "GEM_PATH", "BUNDLE_GEMFILE", "BUNDLE_PATH", "BUNDLE_WITHOUT", "BUNDLE_APP_CONFIG", "RUBYGEMS_GEMDEPS"},
		flags: []rule{
			{name: "--encoding", value: next, use: keep}, {name: "--external-encoding", value: next, use: keep}, {name: "--internal-encoding", value: next, use: keep},
			{name: "--disable", value: next, use: keep}, {name: "--enable", value: next, use: keep}, {name: "--disable-", value: begin, use: keep}, {name: "--enable-", value: begin, use: keep},
			{name: "--parser", value: next, use: keep}, {name: "--backtrace-limit", value: next}, {name: "--dump", value: next, use: refuse},
			{name: "-I", value: join, use: search}, {name: "-r", value: join, use: preload}, {name: "-E", value: join, use: keep}, {name: "-K", value: glued, use: keep},
			{name: "-e", value: join, use: code}, {name: "-C", value: join, use: refuse}, {name: "-S", use: refuse}, {name: "-x", value: glued, use: refuse},
			{name: "-c", use: refuse}, {name: "-h", use: refuse}, {name: "-y", use: refuse}, {name: "-i", value: glued, use: refuse}, {name: "-F", value: glued},
			{name: "-W", value: glued}, {name: "-T", value: glued}, {name: "-0", value: glued}, {name: "-U", use: keep},
			{name: "-w"}, {name: "-v"}, {name: "-d"}, {name: "-s"}, {name: "-n"}, {name: "-p"}, {name: "-a"}, {name: "-l"},
		},
	}

	// PHP is the command line interpreter of PHP. Its ini files, folders of ini files and settings are kept; the prober
	// turns off what prepends files and what writes compiled code.
	PHP = Dialect{
		Name: "php", Ask: []string{"-n", "-r", "echo PHP_BINARY;"}, programs: []string{"php", "php-cli"}, managers: []string{"composer"},
		env: []string{"PHPRC", "PHP_INI_SCAN_DIR", "APP_ENV"},
		flags: []rule{
			{name: "--define", value: next, use: keep, as: "-d"}, {name: "--php-ini", value: next, use: preload, as: "-c"}, {name: "--no-php-ini", use: keep, as: "-n"},
			{name: "--file", value: next, use: script}, {name: "--run", value: next, use: code}, {name: "--zend-extension", value: next, use: preload, as: "-z"},
			{name: "-d", value: join, use: keep}, {name: "-c", value: join, use: preload}, {name: "-z", value: join, use: preload}, {name: "-n", use: keep},
			{name: "-f", value: join, use: script}, {name: "-r", value: join, use: code}, {name: "-R", value: join, use: code}, {name: "-B", value: join, use: code},
			{name: "-F", value: join, use: code}, {name: "-E", value: join, use: code}, {name: "-S", value: join, use: refuse}, {name: "-t", value: join},
			{name: "-a", use: code}, {name: "-l", use: refuse}, {name: "-i", use: refuse}, {name: "-m", use: refuse}, {name: "-s", use: refuse}, {name: "-w", use: refuse},
			{name: "-q"}, {name: "-H"}, {name: "-e"}, {name: "-C"},
		},
	}

	// JVM is the java launcher. The class path and the module path become the search path; the program is a class like any
	// other, because a probe of classes runs none of their code. Agents (-javaagent, -agentlib) and system properties are
	// dropped: what no code reads decides nothing. A file of arguments (@file) is not read.
	JVM = Dialect{
		Name: "jvm", programs: []string{"java"}, pathVariable: "CLASSPATH", said: true, classes: true,
		env: []string{"JAVA_HOME"},
		flags: []rule{
			{name: "-cp", value: next, use: search}, {name: "-classpath", value: next, use: search}, {name: "--class-path", value: next, use: search},
			{name: "-p", value: next, use: modules}, {name: "--module-path", value: next, use: modules}, {name: "--upgrade-module-path", value: next, use: modules},
			{name: "-jar", value: next, use: archive}, {name: "-m", value: next, use: class}, {name: "--module", value: next, use: class},
			{name: "--add-modules", value: next}, {name: "--limit-modules", value: next}, {name: "--patch-module", value: next}, {name: "--source", value: next, use: refuse},
			{name: "--add-opens", value: next}, {name: "--add-reads", value: next}, {name: "--enable-native-access", value: next},
			{name: "--add-exports", value: next, use: keep}, {name: "--enable-preview", use: keep},
			{name: "-Xbootclasspath/a:", value: glued, use: preload}, {name: "-Xverify:", value: glued, use: keep}, {name: "-XX:-BytecodeVerification", value: begin, use: keep},
			{name: "-version", use: refuse}, {name: "--version", use: refuse}, {name: "--list-modules", use: refuse}, {name: "-help", use: refuse},
		},
	}
)

// Dialects are the runtimes besides Python, by their names.
func Dialects() []Dialect { return []Dialect{Node, Ruby, PHP, JVM} }
