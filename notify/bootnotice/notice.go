package bootnotice

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Why is why a session is told.
type Why string

// The causes of a notice, the strongest first.
const (
	Requested Why = "requested" // it asked for the restart
	Unplanned Why = "unplanned" // it was working, or had been until shortly before
	Target    Why = "target"    // nobody was concerned: it is told as the one who looks after things
)

// State is where a notice stands.
type State string

// The states. Only a pending notice is delivered.
const (
	Pending       State = "pending"
	Acknowledged  State = "acknowledged"
	Undeliverable State = "undeliverable" // too old, or tried in too many boots
	PassedOn      State = "passed_on"     // its session did not appear in time, and the target was told
	Withdrawn     State = "withdrawn"     // the restart was refused
)

// Request is a restart that a session asked for. It is written before the restart is asked for, so that a process which
// is killed a moment later still knows.
type Request struct {
	ID      string     `json:"id"`
	Session string     `json:"session"`
	Reason  string     `json:"reason,omitempty"`
	At      stamp.Time `json:"at"`
}

// Notice is one thing that one session has to be told about one stop. It serialises as JSON.
type Notice struct {
	// ID is made of the stop and the session, so deciding again makes the same notice.
	ID      string `json:"id"`
	Session string `json:"session"`
	Why     Why    `json:"why"`
	// MidTurn is set when a turn of the session was under way.
	MidTurn bool `json:"mid_turn,omitempty"`
	// Reason is what the session gave when it asked for the restart.
	Reason string `json:"reason,omitempty"`
	// Others are sessions that were cut off as well, and get no notice.
	Others []string `json:"others,omitempty"`
	Boot   Boot     `json:"boot"`
	// Made is when the restart was asked for or found; the expiry counts from it.
	Made     stamp.Time `json:"made"`
	State    State      `json:"state"`
	Attempts []Attempt  `json:"attempts,omitempty"`
	// By is who acknowledged it, or why it is over.
	By string `json:"by,omitempty"`
	// Told is set when the host was told that the notice is undeliverable.
	Told bool `json:"told,omitempty"`
}

// Attempt is a delivery, written before it is made.
type Attempt struct {
	// Instance is the instance that made it: one attempt for each.
	Instance string     `json:"instance"`
	At       stamp.Time `json:"at"`
	Way      Way        `json:"way"`
}

// IDPrefix is what the id of every notice begins with.
const IDPrefix = "rn-"

// NoticeID is the id of the notice for a session about a stop.
func NoticeID(boot, session string) string {
	sum := sha256.Sum256([]byte(boot + "\x00" + session))
	return IDPrefix + hex.EncodeToString(sum[:6])
}

// Tried reports whether an instance has made its attempt.
func (n Notice) Tried(instance string) bool {
	return slices.ContainsFunc(n.Attempts, func(a Attempt) bool { return a.Instance == instance })
}

// Settle is the notice at a moment: one that is pending, and too old or tried in too many boots, becomes undeliverable.
// The attempt of this boot counts once the boot is over, so an instance gives up only what others tried.
func (n Notice) Settle(now stamp.Time, instance string) Notice {
	if n.State != Pending {
		return n
	}
	switch {
	case now.Sub(n.Made) > Expiry:
		n.State, n.By = Undeliverable, "it was not acknowledged within a day"
	case len(n.Attempts) >= Boots && !n.Tried(instance):
		n.State, n.By = Undeliverable, "it was delivered in three boots and never acknowledged"
	}
	return n
}
