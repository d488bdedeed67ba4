package drain

import (
	"context"
	"fmt"
	"slices"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// Calls is a turn that begins no call once the drain has frozen: give it to the effect guard in place of the turn. Calls
// under way are completed, and everything else is appended, as ever. Without it a turn that does not look at its context
// may begin a call after it was cancelled.
func (d *Drain) Calls(t effect.Turn) effect.Turn { return freezing{Turn: t, d: d} }

type freezing struct {
	effect.Turn
	d *Drain
}

// Append implements effect.Turn.
func (f freezing) Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error) {
	if slices.ContainsFunc(batch, func(e session.Draft) bool { return e.Kind == session.KindCall }) {
		if r := f.d.frozen(); r != nil {
			return session.Receipt{}, fmt.Errorf("begin a call: %w", r)
		}
	}
	return f.Turn.Append(ctx, batch...)
}

func (d *Drain) frozen() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch d.phase {
	case Open, Waiting:
		return nil
	}
	return d.refusal()
}
