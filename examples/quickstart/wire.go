package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/adapters/inbox"
	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// host is what an orchestrator has: runs, a healer for them, and a way to update their code.
type host struct {
	world   *world
	home    *files.Home
	runs    *managed.Host
	healer  *restart.Healer
	updater *update.Updater
	root    witness.Root

	agents sync.WaitGroup
	loop   sync.WaitGroup
	stop   context.CancelFunc
}

// newHost wires Mulligan: a state folder, git to read identities, Python to classify and to probe, this process as the
// runner of what is put back.
func newHost(ctx context.Context, w *world) (*host, error) {
	home, err := files.Open(files.Config{Dir: w.home})
	if err != nil {
		return nil, err
	}
	git, err := gitcli.New(gitcli.Config{})
	if err != nil {
		return nil, err
	}
	sources := map[string]witness.Source{"git": git}
	stores := home.Stores()

	runs, err := managed.New(managed.Config{Stores: stores, Sources: sources, Programs: process.Programs{NoSignals: true, NoTerminal: true},
		Dir: filepath.Join(home.Dir(), "runs")})
	if err != nil {
		return nil, err
	}
	judge, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.Runtime{}}})
	if err != nil {
		return nil, err
	}
	prober, err := process.NewPython(process.PythonConfig{})
	if err != nil {
		return nil, err
	}
	rows, err := inbox.New(inbox.Config{Dir: filepath.Join(w.dir, "inbox")})
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	healer, err := restart.New(restart.Config{
		Stores: stores, Classifier: judge, Sources: sources, Launcher: runs.Launcher(ctx),
		Runtimes:  map[string]restart.Runtime{"python": {Modules: python.Runtime{}, Planner: process.PythonPlanner{Modules: python.Runtime{}}, Prober: prober}},
		Notifiers: []notify.Notifier{rows},
		// A person waits here; a real host keeps the 30 seconds.
		Settings: restart.Settings{Quiescence: time.Second, Tick: time.Second},
	})
	if err != nil {
		stop()
		return nil, err
	}
	updater, err := update.New(update.Config{Journal: stores.Journal, Lock: stores.Lock, Instances: stores.Instances,
		Sources: sources, Commands: process.Commands{}})
	if err != nil {
		stop()
		return nil, err
	}
	h := &host{world: w, home: home, runs: runs, healer: healer, updater: updater, stop: stop,
		root: witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{w.live}, Modules: []string{"acme"}}, Kind: "git", Runtime: "python"}}
	h.loop.Go(func() {
		if err := healer.Run(ctx); err != nil {
			say("the healer stopped: %v", err)
		}
	})
	return h, nil
}

// update is what everything turns on: the code under the running agents changes, with a witness.
func (h *host) update(ctx context.Context) error {
	row, err := h.updater.Run(ctx, []witness.Root{h.root}, update.Command{
		Args: []string{"git", "-C", h.world.live, "pull", "--quiet"}, Env: h.world.env, Stderr: os.Stderr,
	}, 0)
	if err != nil {
		return err
	}
	say("  %s: %s → %s", row.Status, row.Roots[0].FromRevision[:7], row.Roots[0].ToRevision[:7])
	return nil
}

func (h *host) close() {
	h.stop()
	h.loop.Wait()
	h.agents.Wait()
	h.home.Close()
}
