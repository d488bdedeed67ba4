// Embed is the smallest host: it runs one Python program as a managed run, with a healer beside it. A program that ends
// well ends the host too; after a bad end the host stays, for the healer to decide, until it is interrupted.
//
//	go run ./examples/embed CHECKOUT MODULE COMMAND [ARG...]
//
// CHECKOUT is the git work tree whose updates may break the program, MODULE the Python package that it holds.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/adapters/terminal"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

func main() {
	if len(os.Args) < 4 {
		log.Fatal("usage: embed CHECKOUT MODULE COMMAND [ARG...]")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := host(ctx, os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		stop()
		log.Fatal(err)
	}
}

func host(ctx context.Context, checkout, module string, command []string) error {
	tree, err := filepath.EvalSymlinks(checkout)
	if err != nil {
		return err
	}
	here, err := os.Getwd()
	if err != nil {
		return err
	}
	root := witness.Root{Root: classify.Root{Name: module, Dirs: []string{tree}, Modules: []string{module}}, Kind: "git", Runtime: "python"}
	recipe := run.Recipe{Command: command, Dir: here, Env: os.Environ(), Marking: run.Phases}

	home, err := files.Open(files.Config{}) // the state folder: $MULLIGAN_HOME, or the user's state folder
	if err != nil {
		return err
	}
	defer home.Close()
	git, err1 := gitcli.New(gitcli.Config{})
	prober, err2 := process.NewPython(process.PythonConfig{})
	judge, err3 := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New()}})
	runtime, err4 := process.Runtime(recipe)
	screen, err5 := terminal.New(terminal.Config{Out: os.Stderr})
	for _, err := range []error{err1, err2, err3, err4, err5} {
		if err != nil {
			return err
		}
	}

	// The run's side: registers runs, rings when one ends badly, and runs what is put back.
	runs, err := managed.New(managed.Config{Stores: home.Stores(), Sources: map[string]witness.Source{"git": git},
		Programs: process.Programs{}, Dir: filepath.Join(home.Dir(), "runs")})
	if err != nil {
		return err
	}
	// The healer: decides by evidence, and launches at most once.
	launcher := runs.Launcher(ctx)
	healer, err := restart.New(restart.Config{Stores: home.Stores(), Classifier: judge, Launcher: launcher,
		Sources:   map[string]witness.Source{"git": git},
		Runtimes:  map[string]restart.Runtime{"python": {Modules: python.New(), Planner: process.PythonPlanner{Modules: python.New()}, Prober: prober}},
		Notifiers: []notify.Notifier{screen}})
	if err != nil {
		return err
	}
	loop, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		if err := healer.Run(loop); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()

	res, err := runs.Exec(ctx, managed.Spec{Project: "embed", Name: module, Recipe: recipe, Runtime: runtime, Roots: []witness.Root{root}},
		managed.IO{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr})
	if err == nil && res.End.Exit != (classify.Exit{}) {
		<-ctx.Done()
	}
	stop()
	launcher.Wait()
	return err
}
