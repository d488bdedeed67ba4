package report_test

import (
	"time"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness/journal"
)

const (
	oldRev = "11aa22bb33cc44dd55ee66ff778899aabbccddee"
	midRev = "22aa22bb33cc44dd55ee66ff778899aabbccddee"
	newRev = "4f1e2d3c4b5a69788796a5b4c3d2e1f001122334"
	epID   = "c-4f1e2d3c4b5a-acme-0badcafe"
)

// clock is a moment of the fixture's day, in the afternoon, by minute and second.
func clock(minute, second int) stamp.Time {
	return stamp.Time{
		Wall: time.Date(2026, 3, 9, 14, minute, second, 0, time.UTC), Boot: "b1",
		Uptime: time.Duration(minute)*time.Minute + time.Duration(second)*time.Second + time.Hour,
	}
}

// agent is a record of the episode in which the module acme.wire lost a name.
func agent(lineage, name, from string, state ledger.State, reason string, at stamp.Time) ledger.Record {
	r := ledger.Record{
		Schema: ledger.Schema, Key: ledger.Key{Project: "web", Lineage: lineage}, State: state, Reason: reason, Revision: 3,
		First: at.Add(time.Second), Episode: epID,
		Facts: ledger.Facts{
			Death: ledger.Death{
				Run: "run-" + lineage, Name: name, At: at, Booted: at.Add(-3 * time.Second), Phase: "booting", Exit: 1,
				Log: "/var/lib/acme/" + lineage + ".log",
			},
			Signature: ledger.Signature{
				Family: "torn_import", Exception: "ImportError", Module: "acme.wire", Symbol: "Frame", Root: "acme",
				Message: "ImportError: cannot import name 'Frame' from 'acme.wire'",
			},
			Roots: []ledger.RootChange{{Root: "acme", From: from, To: newRev}},
			Witnesses: []ledger.Witness{
				{Kind: "boot_identity", Root: "acme", From: from, To: newRev, When: stamp.Window{From: clock(2, 0), To: clock(2, 20)}, Detail: "the tree at the death is not the tree at the boot"},
				{Kind: "file_proof", Root: "acme", Detail: "acme.wire:Frame was there at the boot and is gone at the death", Culprit: &ledger.Culprit{
					Root: "acme", Commit: newRev, Subject: "wire: drop the old frame", When: clock(2, 11), Path: "acme/wire.py", Name: "acme.wire:Frame",
				}},
			},
		},
		History: []ledger.Entry{{State: ledger.Claimed, Event: ledger.Claim, At: at.Add(time.Second), Actor: "i1"}},
	}
	move := func(s ledger.State, e ledger.Event, after time.Duration, reason string) {
		r.History = append(r.History, ledger.Entry{State: s, Event: e, At: at.Add(after), Actor: "i1", Reason: reason})
	}
	switch state {
	case ledger.Deferred:
		move(state, ledger.Defer, 2*time.Second, reason)
	case ledger.Declined:
		r.Facts.Death.Phase, r.Facts.Death.Workspace = "provider_running", "/srv/work/"+lineage
		move(state, ledger.Decline, 2*time.Second, reason)
	case ledger.Launching, ledger.Launched, ledger.SettledOK, ledger.SettledFailed:
		r.Evidence = "evidence/web__" + lineage
		r.Facts.Probe = &ledger.Probe{Outcome: "healthy", Modules: []string{"acme.wire", "acme.worker"}, At: at.Add(30 * time.Second)}
		r.Launch = &ledger.Launch{ID: "launch-" + lineage, Begun: at.Add(31 * time.Second)}
		move(ledger.Deferred, ledger.Defer, 2*time.Second, "not_quiet")
		move(ledger.Claimed, ledger.Claim, 30*time.Second, "")
		move(ledger.Launching, ledger.BeginLaunch, 31*time.Second, "relaunch")
		if state == ledger.Launching {
			break
		}
		r.Launch.Run, r.Launch.Bound, r.Launch.BoundAt = "new-"+lineage, &ledger.Instance{ID: "i2"}, at.Add(32*time.Second)
		move(ledger.Launched, ledger.Bind, 32*time.Second, "")
		switch state {
		case ledger.SettledOK:
			move(state, ledger.SettleOK, 9*time.Minute, "replacement_ok")
		case ledger.SettledFailed:
			move(state, ledger.SettleBad, 9*time.Minute, "already_restarted")
		}
	}
	return r
}

// story is one update that broke six agents, in every state that a person may see.
func story() []ledger.Record {
	return []ledger.Record{
		agent("lin-a", "coder", oldRev, ledger.SettledOK, "replacement_ok", clock(2, 14)),
		agent("lin-b", "reviewer", oldRev, ledger.Launched, "relaunch", clock(2, 15)),
		agent("lin-c", "翻訳者", midRev, ledger.Launching, "relaunch", clock(2, 17)),
		agent("lin-d", "failover-error", midRev, ledger.SettledFailed, "already_restarted", clock(2, 18)),
		agent("lin-e", "planner", oldRev, ledger.Declined, "notify_post_provider", clock(2, 19)),
		agent("lin-f", "tester", oldRev, ledger.Deferred, "not_quiet", clock(2, 20)),
	}
}

func answers() []ledger.Answer {
	return []ledger.Answer{
		{Schema: 1, Run: "run-x", Key: ledger.Key{Project: "api", Lineage: "lin-x"}, Name: "scout", At: clock(5, 1), Died: clock(5, 0), Verdict: "leave_alone", Reason: "rate_limit", Text: "The provider said 429."},
		{Schema: 1, Run: "run-y", Key: ledger.Key{Project: "web", Lineage: "lin-y"}, Name: "writer", At: clock(6, 1), Died: clock(6, 0), Verdict: "skip", Reason: "dismissed", Text: "A person dismissed this run."},
	}
}

func row() *journal.Row {
	return &journal.Row{
		Schema: 1, ID: "0195-row", Status: journal.Updated, Begun: clock(2, 9), Closed: clock(2, 12), Command: []string{"git", "pull", "--ff-only"},
		Roots: []journal.Root{{Name: "acme", From: midRev, To: newRev}},
	}
}
