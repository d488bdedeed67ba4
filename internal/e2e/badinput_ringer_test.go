package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/process"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/restart/managed"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// start.py is a program of the host's own that begins as examples/ringer says.
const startSource = `import ringer
ringer.install()

import os
from acme import boot

open(os.path.join(os.environ["ACME_STATE"], "runs"), "a").write(".")
`

// TestRingerWhileImportsAreTorn: a program is started while an update has replaced half of its package. It dies of the
// ImportError, rings by the ringer for other languages, and is put back once when the update is through.
func TestRingerWhileImportsAreTorn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	ringer, err := filepath.Abs("../../examples/ringer")
	if err != nil {
		t.Fatal(err)
	}
	w.repo.Commit("a program with a ringer", "acme/start.py", startSource, "acme/boot.py", "from acme.wire import Frame\n")
	env := append(w.env, "PYTHONPATH="+w.repo.Dir+":"+ringer, "PYTHONDONTWRITEBYTECODE=1")
	half, rest := filepath.Join(w.state, "half"), filepath.Join(w.state, "rest")
	w.write(filepath.Join(w.dir, "wire.py"), strings.ReplaceAll(wireSource, "Frame", "Packet"))
	w.write(filepath.Join(w.dir, "boot.py"), "from acme.wire import Packet\n")
	replace := fmt.Sprintf("cp wire.py '%[1]s/acme/wire.py'; touch '%[2]s'; until [ -e '%[3]s' ]; do sleep 0.01; done; cp boot.py '%[1]s/acme/boot.py'", w.repo.Dir, half, rest)
	updated := make(chan error, 1)
	go func() {
		_, err := w.updater.Run(w.ctx, []witness.Root{w.root}, update.Command{Args: []string{"sh", "-c", replace}, Dir: w.dir, Env: w.env}, patience)
		updated <- err
	}()
	w.until("half of the update", func() bool { return w.has("half") })

	spec := managed.Spec{Project: project, Name: "scout", Roots: []witness.Root{w.root}, Workspaces: []string{w.state}, Silenced: true,
		Recipe: run.Recipe{Command: []string{w.python, "-m", "acme.start"}, Dir: w.state, Env: env}}
	if spec.Runtime, err = process.Runtime(spec.Recipe); err != nil {
		t.Fatal(err)
	}
	r, err := w.runs.Start(w.ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(w.ctx, w.python, "-m", "acme.start")
	cmd.Dir, cmd.Env = w.state, append(env, "MULLIGAN_HOME="+w.home.Dir(), "MY_RUN_ID="+r.ID())
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "ImportError: cannot import name 'Frame'") {
		t.Fatalf("the program ended with %v and said:\n%s", err, out)
	}

	items, err := w.home.Doorbell().Pending(w.ctx)
	if err != nil || len(items) != 1 || items[0].Err != nil {
		t.Fatalf("the doorbell has %+v, %v", items, err)
	}
	if n := items[0].Note; n.Run != r.ID() || strings.TrimSpace(string(n.Text)) != strings.TrimSpace(string(out)) || n.Exit.Code != 1 || n.At.IsZero() {
		t.Errorf("it rang %+v with the text %q", n, n.Text)
	}
	if st, err := os.Stat(items[0].Place); err != nil || st.Mode() != 0o600 {
		t.Errorf("the note has mode %v, %v", st.Mode(), err)
	}
	w.pass()
	if rec, err := w.home.Ledger().Get(w.ctx, r.Registered().Key()); err != nil || rec.Reason != "not_quiet" {
		t.Fatalf("while the update is under way: %s %s, %v", rec.State, rec.Reason, err)
	}
	w.tell("rest")
	if err := <-updated; err != nil {
		t.Fatal(err)
	}
	w.passUntil("the program to end well", func() bool {
		rec, err := w.home.Ledger().Get(w.ctx, r.Registered().Key())
		return err == nil && rec.State.Final()
	})
	rec, err := w.home.Ledger().Get(w.ctx, r.Registered().Key())
	if err != nil || rec.Reason != "replacement_ok" || rec.Facts.Signature.Family != "torn_import" {
		t.Errorf("its record: %s %s, family %s, %v", rec.State, rec.Reason, rec.Facts.Signature.Family, err)
	}
	if w.runsOf("scout") != 2 || w.times("runs") != 1 || w.bells() != 0 {
		t.Errorf("%d runs, %d of them whole, %d doorbells, want 2, 1, 0", w.runsOf("scout"), w.times("runs"), w.bells())
	}
}

// TestRingerIsSmall holds the ringer to what its page says: ten lines, four modules, and what it writes is a note that the
// published format takes, whatever the text.
func TestRingerIsSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	source, err := os.ReadFile("../../examples/ringer/ringer.py")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(source), "def ring(")
	body, _, _ = strings.Cut(body, "\n\n\n")
	if n := strings.Count(body, "\n"); n > 10 {
		t.Errorf("the ringer has %d lines", n)
	}
	for line := range strings.Lines(string(source)) {
		if strings.Contains(line, "import ") && line != "import json, os, sys, time\n" && !strings.Contains(line, "Import this") {
			t.Errorf("the ringer says %q", line)
		}
	}
	ring := exec.CommandContext(w.ctx, w.python, "-c", `import ringer, sys
loaded = set(sys.modules)
ringer.ring("run: \U0001f642/..", "x" * 70000 + "\udcff the end", "handoff", -1)
ringer.ring("r2", "")
assert set(sys.modules) == loaded, set(sys.modules) - loaded`)
	ring.Env = append(w.env, "PYTHONPATH=../../examples/ringer", "MULLIGAN_HOME="+w.home.Dir(), "PYTHONDONTWRITEBYTECODE=1")
	if out, err := ring.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	items, err := w.home.Doorbell().Pending(w.ctx)
	if err != nil || len(items) != 2 {
		t.Fatalf("%d notes, %v", len(items), err)
	}
	for _, it := range items {
		if it.Err != nil {
			t.Error(it.Err)
		} else if it.Note.Run != "r2" && (it.Note.Run != "run: 🙂/.." || len(it.Note.Text) > doorbell.TextLimit || !strings.HasSuffix(string(it.Note.Text), " the end") || it.Note.Phase != run.Handoff) {
			t.Errorf("%.200v", it.Note)
		}
	}
}
