package storm

import (
	"context"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Schema is the version of the state format that this package writes.
const Schema = 1

// State is what the breaker and the pause remember between passes; it is small and kept whole.
type State struct {
	Schema   int    `json:"schema"`
	Revision uint64 `json:"revision"`
	// Paused is set while nothing is launched until a person resumes.
	Paused *Pause `json:"paused,omitempty"`
	// Disabled is since when the healer is switched off by its config; nil while it is on.
	Disabled *stamp.Time `json:"disabled,omitempty"`
	// Held are past spans in which the healer was paused or disabled: they do not age a deferral.
	Held []stamp.Window `json:"held,omitempty"`
	// Slots are the launches that count against the limits, oldest first.
	Slots []Slot `json:"slots,omitempty"`
	// Told are keys of notices about the state itself, with when they were acknowledged.
	Told map[string]stamp.Time `json:"told,omitempty"`
}

// Pause is why and since when nothing is launched.
type Pause struct {
	Since  stamp.Time `json:"since"`
	Reason string     `json:"reason"` // storm_episode, storm_window, storm_loop, or by_hand
	Note   string     `json:"note"`
	By     string     `json:"by,omitempty"`
}

// Slot is one launch that was reserved before it began. A slot whose launch never began counts until its window ends:
// too high is allowed, too low never.
type Slot struct {
	Launch string `json:"launch"`
	// Project and Lineage are the ledger key of what is launched.
	Project string     `json:"project,omitempty"`
	Lineage string     `json:"lineage,omitempty"`
	Episode string     `json:"episode"`
	At      stamp.Time `json:"at"`
	// Forgiven slots were reserved before a person resumed, and count no more.
	Forgiven bool `json:"forgiven,omitempty"`
}

// Limits are the breaker's bounds.
type Limits struct {
	PerEpisode int
	PerWindow  int
	Window     time.Duration
}

// Store keeps the one State. Every method is durable when it returns.
type Store interface {
	// State is the present state, the zero State when nothing was ever written. One that cannot be read is an error, and
	// then nothing may be launched.
	State(ctx context.Context) (State, error)
	// UpdateState reads, lets f decide and writes, as one step under the breaker's lock. A state that f returns with the
	// present revision is not written.
	UpdateState(ctx context.Context, f func(cur State, now stamp.Time) (State, error)) (State, error)
}
