package e2e

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// snapshot is every file below some folders, with its mode and a hash of its content.
func snapshot(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			if d.IsDir() {
				out[path] = info.Mode().String()
				return nil
			}
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum := sha256.Sum256(b)
			out[path] = info.Mode().String() + " " + hex.EncodeToString(sum[:8])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// unchanged runs f and reports every byte of the state folder, the checkout and the workspaces that it changed.
func (w *world) unchanged(what string, f func()) {
	w.t.Helper()
	before := snapshot(w.t, w.dir)
	f()
	if diff := cmp.Diff(before, snapshot(w.t, w.dir)); diff != "" {
		w.t.Errorf("%s changed what is on disk:\n%s", what, diff)
	}
}

// TestDryRun: it takes the real path to the real verdict and changes not one byte, at each stage of a story.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{settings: slow})
	scout := w.after("scout", "count:starts", "mark:preparing", "wait:update", "encode", "wait:second", "bug")
	rate := w.start("rate", "rate_limit").dies()
	w.start("scribe", "mark:provider_running", "bug").dies()

	dry := func(stage string) (out map[string]string) {
		out = map[string]string{}
		w.unchanged("a dry run, "+stage, func() {
			res, err := w.healer.DryRun().Pass(w.ctx, everything)
			if err != nil || res.Failed() {
				t.Fatalf("%s: %v %+v", stage, err, res.Outcomes)
			}
			for _, o := range res.Outcomes {
				out[o.Name] = string(o.Verdict) + " " + o.Code
			}
		})
		return out
	}
	same := func(stage string) {
		t.Helper()
		shown := dry(stage)
		real := map[string]string{}
		for _, o := range w.pass().Outcomes {
			real[o.Name] = string(o.Verdict) + " " + o.Code
		}
		if diff := cmp.Diff(real, shown); diff != "" {
			t.Errorf("%s: the dry run (+) showed another outcome than the pass (-) had:\n%s", stage, diff)
		}
	}

	same("with fresh deaths in a tree that changed")
	w.wantStands(scout, "deferred not_quiet")
	w.wantStands(rate, "answer rate_limit")
	w.clock.forward(hourAndMore)
	// A probe that wrote bytecode would write it anew.
	w.repo.Remove("acme/__pycache__")
	if got := dry("with a tree at rest")["scout"]; got != "relaunch relaunch" {
		t.Errorf("the dry run shows %q for scout, want relaunch", got)
	}
	w.wantStands(scout, "deferred not_quiet")
	if w.times("starts") != 1 {
		t.Fatalf("the dry run started the program: %d starts", w.times("starts"))
	}
	same("a second time")
	w.until("the replacement to wait", func() bool { return w.has("scout-waits-for-second") })
	w.tell("second")
	w.until("the replacement to end", func() bool { return scout.replacement().Ended != nil })
	same("with a replacement that broke")
	w.wantStands(scout, "settled_failed already_restarted")
}

// TestScan: the replay over history writes nothing, runs no probe, and says what it would have probed.
func TestScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	scout := w.after("scout", "mark:preparing", "wait:update", "encode")
	w.start("rate", "mark:preparing", "rate_limit").dies()
	w.start("fine", "say:fine").dies()
	scan := func() map[string]string {
		out := map[string]string{}
		w.unchanged("a scan", func() {
			past, err := w.healer.Scan(w.ctx, time.Hour, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range past {
				if p.Error != "" {
					t.Errorf("%s: %s", p.Name, p.Error)
				}
				out[p.Name] = p.Code + ", was " + p.Was
			}
		})
		return out
	}
	if diff := cmp.Diff(map[string]string{"scout": "would_probe, was ", "rate": "rate_limit, was "}, scan()); diff != "" {
		t.Errorf("before any pass (want -, got +):\n%s", diff)
	}
	w.passUntil("scout to end well", func() bool { return w.stands(scout) == "settled_ok replacement_ok" })
	probes := w.prober.starts.Load()
	got := scan()
	if got["scout"] != "would_probe, was replacement_ok" || got["rate"] != "rate_limit, was rate_limit" {
		t.Errorf("afterwards: %v", got)
	}
	if w.prober.starts.Load() != probes {
		t.Error("the scan ran a probe")
	}
	if past, err := w.healer.Scan(w.ctx, time.Hour, 1); err != nil || len(past) != 1 || past[0].Name != "rate" {
		t.Errorf("limited to one: %+v, %v, want the newest", past, err)
	}
}
