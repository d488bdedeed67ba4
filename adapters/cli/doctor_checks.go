package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// config says which file counts, and what is missing in it for anything to be put back. That is no failure: a host may
// want the ledger and the notices alone.
func (d *doctor) config(c config.Config) {
	from := c.File
	if from == "" {
		from = "the defaults (no config file)"
	}
	d.add("config", statusOK, "", "%s", from)
	if len(c.Roots) == 0 {
		d.add("roots", statusWarn, "declare the managed code under roots in the config, or with --root at each exec",
			"none is declared: a run without a root is never put back")
		return
	}
	for _, r := range c.Roots {
		if r.Runtime == "" {
			d.add("roots", statusWarn, "set its runtime", "root %s has no runtime: its new code cannot be tried, so its runs are never put back", r.Name)
		}
	}
	d.add("roots", statusOK, "", "%d declared", len(c.Roots))
}

// programs looks for what identities and probes are read with. A program that no root of the config needs is a warning at
// most: runs may declare roots of their own, and those say at their start what they lack.
func (d *doctor) programs(c config.Config) {
	usesGit := slices.ContainsFunc(c.Roots, func(r witness.Root) bool { return r.Kind == config.KindGit })
	usesPython := slices.ContainsFunc(c.Roots, func(r witness.Root) bool { return r.Runtime == "python" })
	for _, p := range []struct {
		name   string
		needed bool
		why    string
	}{
		{"git", usesGit, "roots of kind git cannot be read without it"},
		{"python3", usesPython, "runs that start it cannot be tried without it"},
	} {
		path := d.look(p.name)
		switch {
		case path != "":
			d.add(p.name, statusOK, "", "%s", path)
		case p.needed:
			d.add(p.name, statusFail, "install "+p.name+" or correct $PATH", "not found: %s", p.why)
		default:
			d.add(p.name, statusWarn, "", "not found: %s (no root of the config needs it)", p.why)
		}
	}
}

// look finds a program in the environment's PATH, which may be another than this process has.
func (d *doctor) look(name string) string {
	for _, dir := range filepath.SplitList(d.env.get("PATH")) {
		p := filepath.Join(dir, name)
		if st, err := os.Stat(p); err == nil && !st.IsDir() && st.Mode()&0o111 != 0 && filepath.IsAbs(p) {
			return p
		}
	}
	return ""
}

// showAtMost bounds how many bad files one check names.
const showAtMost = 5

// permissions finds what others than the owner may read or write. Recipes hold whole environments, so everything in the
// state folder is its owner's alone.
func (d *doctor) permissions(dir string) {
	var open []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // not made yet, or gone since
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			open = append(open, path+" is a symlink")
			return nil
		}
		st, err := e.Info()
		if err == nil && st.Mode().Perm()&0o077 != 0 {
			open = append(open, fmt.Sprintf("%s has mode %04o", path, st.Mode().Perm()))
		}
		return nil
	})
	switch {
	case err != nil:
		d.add("permissions", statusFail, "run it as the owner of the state folder", "%v", err)
	case len(open) > 0:
		d.add("permissions", statusFail, "make folders 0700 and files 0600 (chmod -R go= "+dir+"), and remove symlinks", "%s", some(open))
	default:
		d.add("permissions", statusOK, "", "nobody else can read or write the state folder")
	}
}

func some(list []string) string {
	if len(list) > showAtMost {
		return strings.Join(list[:showAtMost], "; ") + fmt.Sprintf("; and %d more", len(list)-showAtMost)
	}
	return strings.Join(list, "; ")
}

// pause tells whether anything is started at all. A state that cannot be read is the worst of it: the breaker cannot be
// asked, so nothing is started until a person has seen to it.
func (d *doctor) pause(ctx context.Context, h *host, c config.Config) {
	state, err := h.home.Breaker().State(ctx)
	switch {
	case err != nil:
		d.add("pause", statusFail, "restore state.json from a copy, or remove it: the storm breaker then begins anew", "%v: nothing is started", err)
	case !c.Enabled:
		d.add("pause", statusWarn, "set enabled: true in the config", "the healer is switched off: nothing is started")
	case state.Paused != nil:
		d.add("pause", statusWarn, d.called()+" resume", "paused since %s (%s): nothing is started", state.Paused.Since, notify.Reason(state.Paused.Reason).Title)
	default:
		d.add("pause", statusOK, "", "the healer is on")
	}
}

// records audits the whole ledger: what cannot be read, and what the machine cannot have made. Either was done by
// something else than Mulligan, and nobody can say what it meant, so a person has to look.
func (d *doctor) records(ctx context.Context, h *host) {
	n := 0
	counted := func(yield func(ledger.Record, error) bool) {
		for r, err := range h.cfg.Stores.Ledger.List(ctx) {
			n++
			if !yield(r, err) {
				return
			}
		}
	}
	var bad []string
	for _, p := range ledger.Check(counted) {
		bad = append(bad, p.String())
	}
	if len(bad) > 0 {
		d.add("records", statusFail, "their lineages stay closed; start those runs by hand, and keep the files as they are", "%s", some(bad))
		return
	}
	d.add("records", statusOK, "", "%d, all sound", n)
}

// runs looks for runs that cannot be read: their deaths can never be decided, because nobody knows what they were.
func (d *doctor) runs(ctx context.Context, h *host) {
	n := 0
	var bad, lost []string
	for r, err := range h.cfg.Stores.Runs.List(ctx) {
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		if n++; r.Launch == "" && restart.Lost(h.cfg.Stores.Instances, r) && !d.answered(ctx, h, r) {
			lost = append(lost, notify.Line(r.Name, 0)+" ("+r.ID+")")
		}
	}
	if len(lost) > 0 {
		d.add("lost runs", statusWarn, d.called()+" run -p shows them, and leaves them alone", "their runners were killed and left no word: %s", some(lost))
	}
	if len(bad) > 0 {
		d.add("runs", statusFail, "deaths of these runs cannot be decided; remove the files once nobody needs them", "%s", some(bad))
		return
	}
	d.add("runs", statusOK, "", "%d, all readable", n)
}

// answered reports that a pass has seen to a run's end, or is about to: it rang.
func (d *doctor) answered(ctx context.Context, h *host, r run.Run) bool {
	if _, ok, err := h.cfg.Stores.Answers.Answer(ctx, r.ID); err == nil && ok {
		return true
	}
	if _, err := h.cfg.Stores.Ledger.Get(ctx, r.Key()); err == nil {
		return true
	}
	items, err := h.cfg.Stores.Doorbells.Pending(ctx)
	return err == nil && slices.ContainsFunc(items, func(it doorbell.Item) bool { return it.Note.Run == r.ID })
}

// doorbells looks for notes that no pass can use: they cannot be read, or the run that rang cannot. They are never removed
// by a pass: each may be the only word of a death.
func (d *doctor) doorbells(ctx context.Context, h *host) {
	items, err := h.cfg.Stores.Doorbells.Pending(ctx)
	if err != nil {
		d.add("doorbells", statusFail, "", "%v", err)
		return
	}
	var bad []string
	for _, it := range items {
		if errors.Is(it.Err, doorbell.ErrLater) {
			continue // it is pending, and nothing is known of it
		}
		if it.Err != nil {
			bad = append(bad, it.Err.Error())
			continue
		}
		if _, err := h.cfg.Stores.Runs.Get(ctx, it.Note.Run); err != nil {
			bad = append(bad, fmt.Sprintf("note %s is of a run that cannot be read: %v", it.Place, err))
		}
	}
	switch {
	case len(bad) > 0:
		d.add("doorbells", statusFail, "correct these files (the format is ledger/doorbell/note.schema.json) or remove them; no pass does",
			"%d of %d: %s", len(bad), len(items), some(bad))
	case len(items) > 0:
		d.add("doorbells", statusOK, d.called()+" run -p", "%d pending", len(items))
	default:
		d.add("doorbells", statusOK, "", "none pending")
	}
}

// answers looks for answers that cannot be read. Their deaths count as unanswered.
func (d *doctor) answers(ctx context.Context, h *host) {
	n := 0
	var bad []string
	for _, err := range h.cfg.Stores.Answers.Answers(ctx) {
		if err != nil {
			bad = append(bad, err.Error())
			continue
		}
		n++
	}
	if len(bad) > 0 {
		d.add("answers", statusFail, "what these lines said of a death is lost; the other lines count", "%s", some(bad))
		return
	}
	d.add("answers", statusOK, "", "%d, all readable", n)
}

// journal looks for updates that are under way, were cut off, or left rows that cannot be read.
func (d *doctor) journal(ctx context.Context, h *host) {
	n := 0
	var bad, living, cut []string
	for row, err := range h.cfg.Stores.Journal.Rows(ctx) {
		switch {
		case err != nil:
			bad = append(bad, err.Error())
			continue
		case row.Open() && update.Alive(h.cfg.Stores.Instances, row):
			living = append(living, fmt.Sprintf("%s (pid %d)", strings.Join(row.Command, " "), row.PID))
		case row.Open():
			cut = append(cut, row.ID)
		}
		n++
	}
	switch {
	case len(bad) > 0:
		d.add("update journal", statusFail, "updates of these rows are no witnesses; the other rows count", "%s", some(bad))
	case len(living) > 0:
		d.add("update journal", statusWarn, "wait for it to end: nothing is put back meanwhile", "an update is under way: %s", some(living))
	case len(cut) > 0:
		d.add("update journal", statusWarn, "the next `"+d.called()+" swap` or pass closes them", "cut off and still open: %s", some(cut))
	default:
		d.add("update journal", statusOK, "", "%s", amount(n, "update"))
	}
	if holder, held, err := h.cfg.Stores.Lock.Holder(ctx); err != nil {
		d.add("writer lock", statusFail, "", "%v", err)
	} else if held {
		d.add("writer lock", statusOK, "", "held by %s", holder)
	}
}
