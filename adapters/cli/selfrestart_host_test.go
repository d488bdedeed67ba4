package cli_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// restartsItself is how a selfhost that listens for its restart is wired; nil is one that does not.
func restartsItself(ctx context.Context, home string) (*handoff.Handoff, error) {
	if os.Getenv("LISTEN") == "" {
		return nil, nil
	}
	self, err := systemd.Self()
	if err != nil {
		return nil, err
	}
	conn, err := systemd.Connect(context.WithoutCancel(ctx), self.Manager) // it ends with the process
	if err != nil {
		return nil, err
	}
	restarter, err := systemd.NewRestarter(conn)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(home, "boot")
	history, err := handoff.OpenHistory(dir)
	if err != nil {
		return nil, err
	}
	notices, err := boot.OpenOutbox(dir)
	if err != nil {
		return nil, err
	}
	h, err := handoff.New(handoff.Config{Restarter: restarter, Own: restarter, History: history, Notices: notices})
	if err != nil {
		return nil, err
	}
	return h, h.Listen(dir)
}

// callOpen begins a call of a turn, which the restart cuts off unless it completes it.
func callOpen(ctx context.Context, turn *sessions.Turn, now func() stamp.Time, id string) error {
	guard, err := effect.New(effect.Config{Turn: turn, Now: now})
	if err != nil {
		return err
	}
	_, err = guard.Begin(ctx, effect.Call{ID: id, Tool: "shell"})
	return err
}

// asksTheHost: a host that listens keeps new turns out while the command waits, and ends the turn that asked, with its call.
func asksTheHost(t *testing.T, user bool) {
	u := startHost(t, user, "listens", "Environment=LISTEN=1")
	defer u.systemctl("stop", u.name)
	u.do("begin", "s1")
	u.do("begin", "s2")
	u.do("call", "s1", "c1")
	if res := u.refused("in the middle of a turn: s2", "--session", "s1", "--call", "c1"); !slices.Equal(res.InFlight, []string{"s2"}) {
		t.Errorf("%+v", res)
	}
	u.refused("cutting off turns that are under way was not allowed: s1, s2", "--force", "--yes") // --yes is not the host's word
	if said := strings.Join(u.lines("out"+strconv.Itoa(u.runs)), " "); !strings.Contains(said, "its host confirms, and nobody else") {
		t.Error(said)
	}
	u.refused(`there is no session "s9"`, "--session", "s9")
	file := u.start("--session", "s1", "--call", "c1", "--reason", "a new build", "--wait")
	u.until("new turns to be kept out", func() bool {
		u.do("try", "s3")
		tries := u.lines("tries")
		return len(tries) > 0 && tries[len(tries)-1] == string(handoff.ErrRestarting)
	})
	u.do("end", "s2")
	u.lives(2)
	if res := u.result(file); !res.OK || !res.Restarting || res.SessionID != "s1" || res.Reason != "a new build" {
		t.Errorf("%+v", res)
	}
	u.until("the session to be told", func() bool { return len(u.lines("told")) == 1 })
	if told := u.lines("told")[0]; !strings.Contains(told, "you asked for it (a new build)") {
		t.Errorf("told %q", told)
	}
	var s1 struct {
		session.Status
		Calls, InFlight []json.RawMessage
	}
	out, err := mulligan(t, []string{"MULLIGAN_HOME=" + u.home()}, "sessions", "show", "s1", "-j")
	if err != nil || json.Unmarshal([]byte(out), &s1) != nil || s1.Headline != session.Idle || s1.Head.Ended != session.EndRestarting ||
		s1.Interruption != nil || s1.Ambiguous || len(s1.Head.Calls) != 0 {
		t.Errorf("the session that asked: %v, %s", err, out)
	}
	// From elsewhere, by the unit's name.
	args := []string{"self-restart", "--unit", strings.TrimSuffix(u.name, ".service"), "--cause", "deploy"}
	if user {
		args = append(args, "--manager", "user")
	}
	if out, err := mulligan(t, []string{"MULLIGAN_HOME=" + u.home()}, args...); err != nil || !strings.Contains(out, "Restarting: the host has written it down") {
		t.Errorf("%v: %s", err, out)
	}
	u.lives(3)
}
