package restart

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/google/uuid"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/witness"
)

// startHeld is the runner's part for a launcher that has none: the program is started held on a pipe, the engine takes
// the name and passes the gate with the program's own process bound, and only then lets it run. Should the engine die
// in between, the pipe closes and the program exits without having run a line.
func (p *pass) startHeld(ctx context.Context, d *death, o Order) (Started, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return Started{}, fmt.Errorf("make a run id: %w", err)
	}
	o.Run = id.String()
	if o.Dead.Recipe.Marking == run.Phases {
		// The program looks for the file in which it marks its phases. What a replacement marks decides nothing, and
		// nobody here could keep it. The variable is managed.PhaseFileVar; that package stands on this one.
		o.Dead.Recipe.Env = append(slices.Clone(o.Dead.Recipe.Env), "MULLIGAN_PHASE_FILE="+os.DevNull)
	}
	s, err := p.h.cfg.Launcher.Launch(ctx, o)
	if err != nil {
		return Started{}, fmt.Errorf("launch %s: %w", d.run.Name, err)
	}
	if s.Held == nil {
		return Started{}, fmt.Errorf("launch %s: the launcher declares mode %q and started nothing held", d.run.Name, Held)
	}
	r := d.run.Replacement(o.Run, o.Launch, ledger.Instance{
		ID: "held-" + o.Launch, Unlocked: true, Host: p.h.self.Host, Boot: p.h.self.Boot, PIDNS: p.h.self.PIDNS,
		PID: s.Held.PID(), Start: s.Held.Start(),
	}, p.h.cfg.Now())
	r.PID, r.Log = s.Held.PID(), s.Log
	for _, root := range r.Roots {
		o, err := p.look(ctx, root)
		if err != nil {
			return Started{}, errors.Join(err, s.Held.Abandon())
		}
		r.Boot = append(r.Boot, o.Identity)
	}
	p.h.watching.Store(r.ID, true)
	if err := p.gate(ctx, o, r); err != nil {
		p.h.watching.Delete(r.ID)
		return Started{}, errors.Join(fmt.Errorf("replace %s: %w", d.run.Name, err), s.Held.Abandon())
	}
	if err := s.Held.Release(); err != nil {
		p.h.watching.Delete(r.ID)
		return Started{}, fmt.Errorf("let the replacement of %s run: %w", d.run.Name, err)
	}
	p.h.held.Go(func() {
		defer p.h.watching.Delete(r.ID)
		p.h.watch(context.WithoutCancel(ctx), r, s.Held)
	})
	return s, nil
}

// gate takes the name and binds the held process.
func (p *pass) gate(ctx context.Context, o Order, r run.Run) error {
	err := p.h.cfg.Stores.Runs.Start(ctx, r, func(holder *run.Run) error { return MayReplace(o.Dead, holder) })
	if err != nil {
		return err
	}
	// A person may have dismissed the dead run while the name was taken: their word is heard until the gate.
	dead, err := p.h.cfg.Stores.Runs.Get(ctx, o.Dead.ID)
	if err == nil {
		err = MayReplace(dead, nil)
	}
	if err != nil {
		return err
	}
	return PassGate(ctx, p.h.cfg.Stores.Ledger, o.Key, o.Launch, r.ID, r.Instance)
}

// watch stays with a held program to its end, and records or rings it like a runner would.
func (h *Healer) watch(ctx context.Context, r run.Run, proc HeldProcess) {
	exit := proc.Wait()
	end := run.End{At: h.cfg.Now(), OK: exit == (classify.Exit{}), Exit: exit}
	if !end.OK {
		for _, root := range r.Roots {
			if src := h.cfg.Sources[root.Kind]; src != nil {
				id, err := src.Identify(ctx, root)
				if err != nil {
					id = witness.Identity{Unknown: err.Error()}
				}
				id.Root, id.Kind, id.At = root.Name, root.Kind, h.cfg.Now()
				end.Identities = append(end.Identities, id)
			}
		}
		text := proc.Tail()
		err := h.cfg.Stores.Doorbells.Ring(ctx, doorbell.Note{Schema: doorbell.Schema, Run: r.ID, At: end.At,
			Phase: run.UnknownPhase, Exit: exit, Text: text[max(0, len(text)-doorbell.TextLimit):], Identities: end.Identities, Silenced: true})
		if err != nil {
			h.log.Error("the end of a replacement could not be rung", "run", r.ID, "error", err)
		}
	}
	_, err := h.cfg.Stores.Runs.Update(ctx, r.ID, func(cur run.Run) (run.Run, error) {
		if cur.Ended == nil {
			cur.Ended = &end
		}
		return cur, nil
	})
	if err != nil {
		h.log.Error("the end of a replacement could not be recorded", "run", r.ID, "error", err)
	}
}
