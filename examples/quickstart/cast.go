package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/witness"
)

const project = "quickstart"

// cast are the agents; tree/acme/agent.py says what each of them does.
var cast = []string{"scout", "herald", "scribe", "porter", "envoy", "warden"}

func waitsFor(name string) string {
	if name == "herald" {
		return "scout-is-done"
	}
	return "update"
}

// start runs an agent as a managed run, beside this function.
func (h *host) start(ctx context.Context, name string) error {
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		return err
	}
	ws, err := h.world.workspace(name)
	if err != nil {
		return err
	}
	spec := managed.Spec{
		Project: project, Name: name, Roots: []witness.Root{h.root}, Workspaces: []string{ws},
		Recipe: run.Recipe{Command: []string{interpreter, "-m", "acme.agent", name}, Dir: ws, Env: h.world.env, Marking: run.Phases},
		// Nobody watches these agents but the healer.
		Silenced: true,
	}
	if name == "herald" {
		spec.WaitsFor = []string{"scout"}
	}
	if spec.Runtime, err = process.Runtime(spec.Recipe); err != nil {
		return err
	}
	h.agents.Go(func() {
		if _, err := h.runs.Exec(ctx, spec, managed.IO{}); err != nil {
			say("%s could not be run: %v", name, err)
		}
	})
	return nil
}

// settled waits until every agent's story has an end: a final record, or an answer.
func (h *host) settled(ctx context.Context) error {
	return h.until(ctx, "all six to be decided", func() bool {
		done := 0
		for rec, err := range h.home.Ledger().List(ctx) {
			if err == nil && rec.State.Final() && rec.Episode != "" {
				done++
			}
		}
		for _, err := range h.home.Answers().Answers(ctx) {
			if err == nil {
				done++
			}
		}
		return done == len(cast)
	})
}

// until looks again and again; an agent's story is told by files, not by calls.
func (h *host) until(ctx context.Context, what string, ok func() bool) error {
	for !ok() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w: see %s", what, ctx.Err(), h.logs())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (h *host) logs() string { return filepath.Join(h.home.Dir(), "runs") }

// record is the record of an agent, for the card.
func (h *host) record(ctx context.Context, name string) (ledger.Record, error) {
	x, err := h.healer.Explain(ctx, project+"/"+name)
	if err != nil {
		return ledger.Record{}, err
	}
	if x.Record == nil {
		return ledger.Record{}, fmt.Errorf("%s has no record", name)
	}
	return *x.Record, nil
}
