package e2e

import (
	"context"
	"syscall"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/restart"
)

// The doubles let a story act, or break something, at one exact moment of a pass; everything else is the real thing.

// meddleEvidence acts at the last moment before the launch begins.
type meddleEvidence struct {
	ledger.Evidence
	before func()
}

func (m meddleEvidence) Put(ctx context.Context, k ledger.Key, files map[string][]byte) (string, error) {
	m.before()
	return m.Evidence.Put(ctx, k, files)
}

// brokenEvidence has no room while full is set.
type brokenEvidence struct {
	ledger.Evidence
	full *bool
}

func (b brokenEvidence) Put(ctx context.Context, k ledger.Key, files map[string][]byte) (string, error) {
	if *b.full {
		return "", syscall.ENOSPC
	}
	return b.Evidence.Put(ctx, k, files)
}

// meddleRunner acts between the begun launch and the gate.
type meddleRunner struct {
	restart.Launcher
	before func()
}

func (m meddleRunner) Launch(ctx context.Context, o restart.Order) (restart.Started, error) {
	m.before()
	return m.Launcher.Launch(ctx, o)
}

// meddlePreflight acts after the claim and before the healer looks once more.
type meddlePreflight struct {
	restart.Launcher
	before func()
}

func (m meddlePreflight) Preflight(ctx context.Context, o restart.Order) preflight {
	m.before()
	return m.Launcher.Preflight(ctx, o)
}
