// Oncall is a small incident agent whose sessions survive: it reads the status of a service, asks before it scales, and
// scales. The model is a script, the service is a file, and everything else is real: several processes on one SQLite
// database, and kill -9.
//
//	go run ./examples/oncall
//
// tells the whole story by starting itself in its parts, in a folder that it removes at the end. The parts are commands of
// their own, for a look by hand ($ONCALL_DIR is the folder):
//
//	oncall inject SESSION TEXT   an alert: a message to a session, from any process
//	oncall host                  the process that runs the turns
//	oncall sessions ...          the commands about sessions as this host mounts them, so that resume runs turns too
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/cli"
	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sqlite"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code := command(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}

// command runs one part, or the story, and says the exit code.
func command(ctx context.Context, args []string) int {
	if len(args) == 0 {
		return told(story(ctx))
	}
	dir := os.Getenv("ONCALL_DIR")
	if dir == "" {
		return told(errors.New("ONCALL_DIR is not set: without arguments oncall makes a folder and tells its story"))
	}
	switch args[0] {
	case "inject":
		if len(args) != 3 {
			return told(errors.New("usage: oncall inject SESSION TEXT"))
		}
		return told(use(ctx, dir, func(s *sessions.Service) error { return inject(ctx, s, args[1], args[2]) }))
	case "host":
		return told(use(ctx, dir, func(s *sessions.Service) error { return host(ctx, s, newAgent(dir, os.Stdout)) }))
	}
	// The commands of mulligan, with a way to run turns.
	root := &cobra.Command{Use: "oncall", SilenceErrors: true, SilenceUsage: true}
	tree := cli.New(cli.Env{
		Environ: append(os.Environ(), "MULLIGAN_HOME="+homeDir(dir), cli.EnvSessions+"=sqlite:"+database(dir)),
		RunTurn: newAgent(dir, os.Stderr).turn, // standard output is the command's own, as JSON with -j
	})
	for _, c := range tree.Commands() {
		if c.Name() == "sessions" {
			tree.RemoveCommand(c)
			root.AddCommand(c)
		}
	}
	root.SetArgs(args)
	return cli.ExitCode(root.ExecuteContext(ctx))
}

func told(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "oncall:", err)
		return 1
	}
	return 0
}

func homeDir(dir string) string  { return filepath.Join(dir, "home") }
func database(dir string) string { return filepath.Join(dir, "sessions.db") }

// use opens what every process of this example has: a state folder, whose lock proves it alive, the database, and the
// service on them.
func use(ctx context.Context, dir string, f func(*sessions.Service) error) error {
	home, err := files.Open(files.Config{Dir: homeDir(dir)})
	if err != nil {
		return err
	}
	defer home.Close()
	db, err := sqlite.Open(ctx, sqlite.Config{Path: database(dir)})
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := sessions.New(sessions.Config{Store: db.Sessions(), Instances: home.Instances(), Poll: 100 * time.Millisecond})
	if err != nil {
		return err
	}
	defer s.Close()
	return f(s)
}

func now() stamp.Time { return stamp.Wall(time.Now(), 0) }

// inject says something to a session; that makes it when there is none.
func inject(ctx context.Context, s *sessions.Service, name, text string) error {
	content, err := json.Marshal(text)
	if err != nil {
		return err
	}
	return s.Say(ctx, name, content)
}

// say prints one line of a host or of the story.
func say(format string, args ...any) {
	fmt.Println(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}
