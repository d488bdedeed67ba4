package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// Env is all that a command tree takes from outside its arguments. The zero Env is this process: its streams, its
// environment and its working folder.
type Env struct {
	// Stdin, Stdout and Stderr are files, because exec hands them to the program as they are.
	Stdin, Stdout, Stderr *os.File
	// Environ is the environment, "KEY=value".
	Environ []string
	// Dir is the working folder.
	Dir string
	// Runner is the command line that reaches this command tree in a new process; `exec --launch ...` is appended to it
	// to start the runner of a replacement. Nil is this executable followed by the names under which the tree is mounted.
	Runner []string
	// Config allows root kinds and runtimes of the host's own in the config file.
	Config config.Options
	// Extend is called with the healer's config before it is used, to add what the host brings: sources, runtimes,
	// notifiers, a launcher. Its sources also serve exec and swap. Nil changes nothing.
	Extend func(*restart.Config) error
	// RunTurn runs a turn of a session as the host does, to its end (Turn.End or Turn.Park), for `sessions resume`. One
	// that it leaves open is ended as failed. Nil is a program that cannot run turns, which that command then says.
	RunTurn func(ctx context.Context, t *sessions.Turn) error
}

func (e Env) withDefaults() Env {
	if e.Stdin == nil {
		e.Stdin = os.Stdin
	}
	if e.Stdout == nil {
		e.Stdout = os.Stdout
	}
	if e.Stderr == nil {
		e.Stderr = os.Stderr
	}
	if e.Environ == nil {
		e.Environ = os.Environ()
	}
	return e
}

// get is the last value of a variable: of duplicates the last counts, as in os/exec.
func (e Env) get(key string) string {
	for i := len(e.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(e.Environ[i], key+"="); ok {
			return v
		}
	}
	return ""
}

// dir is the working folder, absolute.
func (e Env) dir() (string, error) {
	if e.Dir != "" {
		return filepath.Abs(e.Dir)
	}
	return os.Getwd()
}

// path is a path of a person's, absolute.
func (e Env) path(p string) (string, error) {
	if filepath.IsAbs(p) {
		return filepath.Clean(p), nil
	}
	dir, err := e.dir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, p), nil
}

// stateDir is the state folder: the flag, else $MULLIGAN_HOME, else mulligan in the XDG state folder. A relative value in
// the environment would name another folder in each working directory and is refused.
func (e Env) stateDir(flag string) (string, error) {
	if flag != "" {
		return e.path(flag)
	}
	for _, v := range []struct{ name, below string }{
		{"MULLIGAN_HOME", ""}, {"XDG_STATE_HOME", "mulligan"}, {"HOME", ".local/state/mulligan"},
	} {
		dir := e.get(v.name)
		switch {
		case dir == "":
			continue
		case !filepath.IsAbs(dir):
			return "", fmt.Errorf("$%s is %q, want an absolute path", v.name, dir)
		}
		return filepath.Join(dir, v.below), nil
	}
	return "", errors.New("there is no state folder: set $MULLIGAN_HOME or give --home DIR")
}

// shared are the flags of every command.
type shared struct {
	env     Env
	root    *cobra.Command
	home    string
	config  string
	verbose bool
}

// loadConfig finds and reads the config.
func (s *shared) loadConfig() (config.Config, error) {
	dir, err := s.env.dir()
	if err != nil {
		return config.Config{}, err
	}
	c, err := config.Load(s.config, s.env.get(config.EnvFile), dir, s.env.Config)
	if err != nil {
		return c, &ExitError{Code: CodeUsage, Err: err}
	}
	return c, nil
}
