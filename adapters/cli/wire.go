package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/mulligan-dev/mulligan/adapters/binary"
	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/folder"
	"github.com/mulligan-dev/mulligan/adapters/gem"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/image"
	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/adapters/jar"
	"github.com/mulligan-dev/mulligan/adapters/lognotify"
	"github.com/mulligan-dev/mulligan/adapters/npm"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/pypackage"
	"github.com/mulligan-dev/mulligan/adapters/terminal"
	"github.com/mulligan-dev/mulligan/adapters/zlog"
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
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// host is Mulligan wired up over one state folder: the only place of this package where adapters meet.
type host struct {
	shared *shared
	home   *files.Home
	log    *slog.Logger
	cfg    restart.Config
	units  *unitLauncher  // of a healer that is a service
	held   chan os.Signal // of a runner that records an end
}

// open opens the state folder and wires everything to it. The caller closes the host.
func (s *shared) open(c config.Config, level slog.Level) (*host, error) {
	dir, err := s.env.stateDir(s.home)
	if err != nil {
		return nil, &ExitError{Code: CodeUsage, Err: err}
	}
	log, err := s.logger(level)
	if err != nil {
		return nil, err
	}
	home, err := files.Open(files.Config{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("%w: `%s doctor` looks closer; --home names another state folder", err, s.called())
	}
	h := &host{shared: s, home: home, log: log, held: make(chan os.Signal, 1)}
	if err := h.wire(c); err != nil {
		return nil, errors.Join(err, home.Close())
	}
	return h, nil
}

func (h *host) close() {
	h.units.close()
	signal.Stop(h.held)
	if err := h.home.Close(); err != nil {
		h.log.Warn("the state folder could not be closed cleanly", "error", err)
	}
}

// wire fills in the healer's config: every source, runtime and notifier that the command line has.
func (h *host) wire(c config.Config) error {
	sources, err1 := sources()
	planned, err2 := probes(c)
	packs, err := h.shared.readPacks(c.Packs)
	if err != nil {
		return err
	}
	judge, err3 := classifier(packs...)
	notifiers, err4 := h.notifiers(c)
	launcher, err5 := h.launcher()
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return err
	}
	h.cfg = restart.Config{
		Stores: h.home.Stores(), Classifier: judge, Sources: sources, Runtimes: planned, Launcher: launcher,
		Ends: managers{h.log}, Notifiers: notifiers, Settings: c.Settings(), Logger: h.log,
	}
	if extend := h.shared.env.Extend; extend != nil {
		if err := extend(&h.cfg); err != nil {
			return fmt.Errorf("extend the wiring: %w", err)
		}
	}
	return nil
}

// sources read the identities of roots, by kind.
func sources() (map[string]witness.Source, error) {
	git, err1 := gitcli.New(gitcli.Config{})
	pkg, err2 := pypackage.New(pypackage.Config{})
	dir, err3 := folder.New(folder.Config{})
	node, err4 := npm.New(npm.Config{})
	gems, err5 := gem.New(gem.Config{})
	jars, err6 := jar.New(jar.Config{})
	images, err7 := image.New(image.Config{})
	binaries, err8 := binary.New(binary.Config{})
	if err := errors.Join(err1, err2, err3, err4, err5, err6, err7, err8); err != nil {
		return nil, err
	}
	return map[string]witness.Source{
		config.KindGit: git, config.KindPackage: pkg, config.KindFolder: dir, config.KindNPM: node, config.KindGem: gems,
		config.KindJar: jars, config.KindImage: images, config.KindBinary: binaries,
	}, nil
}

// probes are how the runtimes' modules are found and loaded, by the runtime's name. Without a declared command there is no
// runtime "command", and a root that asks for it by a flag is told that it has no prober.
func probes(c config.Config) (map[string]restart.Runtime, error) {
	py, err1 := process.NewPython(process.PythonConfig{})
	command, err2 := process.NewCommand(process.CommandConfig{})
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	out := map[string]restart.Runtime{
		"python": {Modules: python.New(), Planner: process.PythonPlanner{Modules: python.New()}, Prober: py},
		"elf":    {Modules: freshimport.Names{}, Planner: process.ELFPlanner{}, Prober: process.NewELF()},
	}
	if len(c.ProbeCommand) > 0 {
		out[config.RuntimeCommand] = restart.Runtime{Modules: freshimport.Names{}, Planner: process.CommandPlanner{Command: c.ProbeCommand}, Prober: command}
	}
	for _, d := range freshimport.Dialects() {
		p, err := process.NewInterpreter(process.InterpreterConfig{Dialect: d})
		if err != nil {
			return nil, err
		}
		out[d.Name] = restart.Runtime{Modules: freshimport.Names{}, Planner: process.InterpreterPlanner{Dialect: d}, Prober: p}
	}
	return out, nil
}

// classifier reads the failure texts of every runtime that there is a package for, and of more.
func classifier(more ...classify.Runtime) (*classify.Classifier, error) {
	return classify.New(classify.Config{Runtimes: append(runtimes(), more...)})
}

func runtimes() []classify.Runtime {
	return []classify.Runtime{
		python.New(), node.New(), jvm.New(), dotnet.New(), beam.New(), ruby.New(), perl.New(), php.New(), lua.New(), tcl.New(), golang.New(), rust.New(), loader.New(), shell.New(), service.New(), datafmt.New(), agentcli.New(),
	}
}

// notifiers are those that the config chooses. The terminal is standard error, so that results stay apart from notices.
func (h *host) notifiers(c config.Config) ([]notify.Notifier, error) {
	out := []notify.Notifier{}
	var errs []error
	for _, n := range c.Notifiers {
		var one notify.Notifier
		var err error
		switch n.Kind {
		case config.Terminal:
			stderr := h.shared.env.Stderr
			one, err = terminal.New(terminal.Config{Out: stderr, Color: isTerminal(stderr) && h.shared.env.get("NO_COLOR") == ""})
		case config.Log:
			one, err = lognotify.New(lognotify.Config{Log: h.log})
		case config.Inbox:
			one, err = inbox.New(inbox.Config{Dir: n.Dir})
		}
		out, errs = append(out, one), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// runner is the command line by which this tree is reached in a new process.
func (s *shared) runner() ([]string, error) {
	if s.env.Runner != nil {
		return s.env.Runner, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program that runs replacements: %w", err)
	}
	// The first name of the path is the program itself; the rest is where the tree is mounted.
	return append([]string{exe}, strings.Fields(s.root.CommandPath())[1:]...), nil
}

// runsDir holds phase files and logs beside the runs.
func (h *host) runsDir() string { return filepath.Join(h.home.Dir(), "runs") }

func (h *host) healer() (*restart.Healer, error) { return restart.New(h.cfg) }

// managed is the run's side. Signals and the terminal are the program's while it runs.
func (h *host) managed() (*managed.Host, error) {
	return managed.New(managed.Config{Stores: h.cfg.Stores, Sources: h.cfg.Sources, Programs: programs{held: h.held}, Dir: h.runsDir(), Logger: h.log})
}

func (h *host) updater(cmds update.Commands) (*update.Updater, error) {
	return update.New(update.Config{Journal: h.cfg.Stores.Journal, Lock: h.cfg.Stores.Lock, Instances: h.cfg.Stores.Instances,
		Sources: h.cfg.Sources, Commands: cmds, Logger: h.log})
}

// logger writes to standard error: lines for people on a terminal, JSON for whatever collects it elsewhere.
func (s *shared) logger(level slog.Level) (*slog.Logger, error) {
	if s.verbose {
		level = slog.LevelDebug
	}
	var out io.Writer = s.env.Stderr
	if isTerminal(s.env.Stderr) {
		out = zerolog.ConsoleWriter{Out: s.env.Stderr, TimeFormat: "15:04:05", NoColor: s.env.get("NO_COLOR") != ""}
	}
	handler, err := zlog.New(zlog.Config{Out: out, Level: level})
	if err != nil {
		return nil, err
	}
	return slog.New(redactor{handler}), nil
}

// use opens everything for one command and closes it afterwards.
func (s *shared) use(ctx context.Context, level slog.Level, f func(ctx context.Context, h *host, c config.Config) error) error {
	c, err := s.loadConfig()
	if err != nil {
		return err
	}
	h, err := s.open(c, level)
	if err != nil {
		return err
	}
	defer h.close()
	return f(ctx, h, c)
}

// ask is use for a command that needs the healer.
func (s *shared) ask(ctx context.Context, level slog.Level, f func(ctx context.Context, h *host, c config.Config, healer *restart.Healer) error) error {
	return s.use(ctx, level, func(ctx context.Context, h *host, c config.Config) error {
		healer, err := h.healer()
		if err != nil {
			return err
		}
		return f(ctx, h, c, healer)
	})
}
