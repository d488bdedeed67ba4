package systemd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// wakes is a host's way into its sessions: a turn that begins with the notice and runs to its end.
type wakes struct {
	s    *sessions.Service
	told []bootnotice.Delivery
}

func (w *wakes) Deliver(ctx context.Context, d bootnotice.Delivery) (seen bool, err error) {
	w.told = append(w.told, d)
	if d.Way != bootnotice.ByWake {
		return false, fmt.Errorf("%s is told by %s", d.Session, d.Way)
	}
	return true, turn(ctx, w.s, d.Session, d.Text)
}

func (w *wakes) Undeliverable(context.Context, bootnotice.Notice) error {
	return errors.New("a notice was given up")
}

// turn is a whole turn of a session that nobody else of this process has open.
func turn(ctx context.Context, s *sessions.Service, name, message string) error {
	h, err := s.Open(ctx, name)
	if err != nil {
		return err
	}
	t, err := begin(ctx, s, h, message)
	if err != nil {
		return err
	}
	_, err = t.Append(ctx, session.Reply(s.Now(), sessions.NewID(), session.ModelTurn{}))
	return errors.Join(err, t.End(ctx, session.TurnEnded{End: session.EndDone}), h.Close(ctx))
}

func begin(ctx context.Context, s *sessions.Service, h *sessions.Handle, message string) (*sessions.Turn, error) {
	t, err := h.Begin(ctx, sessions.Start{})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	_, err = t.Append(ctx, session.Say(s.Now(), sessions.NewID(), text))
	return t, err
}

// life is what one life of the host found out.
type life struct {
	Self ledger.Instance
	Boot bootnotice.Boot
	Told []bootnotice.Delivery
}

// hostLife is one life of a service that keeps sessions: it tells whoever has to be told, and writes down what it knows. Then
// it ends in order, or begins a turn and is still at it when the machine goes.
func hostLife() {
	ctx := context.Background()
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	if back, err := time.ParseDuration(os.Getenv("BACK")); err == nil { // the machine's clock has forgotten the time
		then := unix.NsecToTimeval(time.Now().Add(-back).UnixNano())
		fatal(unix.Settimeofday(&then))
	}
	dir := os.Getenv("OUT")
	home, err := files.Open(files.Config{Dir: dir + "/home"})
	fatal(err)
	store, err := sessionlog.Open(sessionlog.Config{Path: dir + "/log/sessions"})
	fatal(err)
	s, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances()})
	fatal(err)
	w := &wakes{s: s}
	self := home.Instances().Self()
	k, err := boot.New(ctx, boot.Config{Dir: dir + "/boot", Instance: self, Deliver: w, Sessions: s, Beat: 20 * time.Millisecond,
		Notice: bootnotice.Config{Grace: -1, Wait: -1}}) // nobody but whom the stop cut off, and all are there
	fatal(err)
	for _, name := range []string{"before", "busy", "quiet"} {
		k.Appeared(name)
	}
	fatal(k.Run(ctx))
	b, err := json.Marshal(life{self, k.Boot(), w.told})
	fatal(err)
	note(dir+"/lives", append(b, '\n'))
	if then := os.Getenv("THEN"); then != "" {
		fatal(turn(ctx, s, "before", "hello"))
		fatal(turn(ctx, s, "quiet", "hello"))
		h, err := s.Open(ctx, "busy")
		fatal(err)
		_, err = begin(ctx, s, h, "long work")
		fatal(err)
		note(dir+"/at-work", nil)
		if then == "poweroff" {
			_ = exec.Command("systemctl", "poweroff").Run() // it is in our unit, and may be told to end before it ends
		}
		<-stop // the turn is cut off with the process
		fatal(k.Close())
		return
	}
	fatal(errors.Join(k.Close(), s.Close(), store.Close(), home.Close()))
}

// note appends to a file, durably.
func note(file string, line []byte) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	fatal(err)
	_, err = f.Write(line)
	fatal(errors.Join(err, f.Sync(), f.Close()))
}

// rebooted is a folder that machines are booted over.
type rebooted struct {
	t         *testing.T
	dir, self string
}

func newRebooted(t *testing.T) *rebooted {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &rebooted{t, t.TempDir(), self}
}

// on boots a machine with a host on it.
func (r *rebooted) on(env []string, command ...string) *require.Machine {
	r.t.Helper()
	_ = os.Remove(r.dir + "/at-work")
	return require.Boot(r.t, r.dir, append(env, role+"=host", "OUT="+r.dir), append(command, r.self)...)
}

// await waits for something that a machine does.
func (r *rebooted) await(m *require.Machine, what string, is func() bool) {
	r.t.Helper()
	for !is() { // a machine that does nothing is switched off at last
		select {
		case <-m.Off():
			if is() {
				return
			}
			m.Wait(r.t)
			r.t.Fatalf("the machine went off before %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// atWork waits until the host is in a turn.
func (r *rebooted) atWork(m *require.Machine) {
	r.t.Helper()
	r.await(m, "the turn", func() bool { _, err := os.Stat(r.dir + "/at-work"); return err == nil })
}

// beating waits until the host has lived for a while, and returns a heartbeat of it.
func (r *rebooted) beating(m *require.Machine) time.Time {
	r.t.Helper()
	r.atWork(m)
	var first, last struct {
		Body struct{ At stamp.Time }
	}
	r.await(m, "heartbeats", func() bool {
		b, err := os.ReadFile(filepath.Join(r.dir, "boot", "beat.json"))
		if err != nil || json.Unmarshal(b, &last) != nil {
			return false
		}
		if first.Body.At.IsZero() {
			first = last
		}
		return last.Body.At.Sub(first.Body.At) > 2*skew
	})
	return last.Body.At.Wall
}

// lives are those that there were so far.
func (r *rebooted) lives(want int) (out []life) {
	r.t.Helper()
	b, err := os.ReadFile(r.dir + "/lives")
	if err != nil {
		r.t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var l life
		if err := json.Unmarshal(line, &l); err != nil {
			r.t.Fatal(err)
		}
		out = append(out, l)
	}
	if len(out) != want {
		r.t.Fatalf("%d lives, want %d: %s", len(out), want, b)
	}
	return out
}

// skew is how far the clocks of two kernels may lie apart.
const skew = time.Second

// toldOfReboot checks that a life knows of the reboot after another, and told the session that was cut off, and it alone, once.
// It ended, or was last known to live, between two times; from zero on nobody knows.
func (r *rebooted) toldOfReboot(was, is life, from, to time.Time) {
	r.t.Helper()
	b := is.Boot
	if was.Self.Boot == is.Self.Boot || b.Kind != bootnotice.HostReboot || b.ID != was.Self.ID {
		r.t.Errorf("after %+v comes %+v with %+v", was.Self, is.Self, b)
	}
	if known := !from.IsZero(); b.Known != known || !known && b.Downtime != 0 {
		r.t.Errorf("the downtime is known: %t, want %t: %+v", b.Known, known, b)
	} else if known && (b.Stopped.Wall.Before(from.Add(-skew)) || b.Stopped.Wall.After(to.Add(skew)) || b.Downtime <= 0 ||
		b.Downtime != b.At.Wall.Sub(b.Stopped.Wall)) {
		r.t.Errorf("it lived at %v and was gone at %v, and its stop is said to be %v, %v before %v", from, to, b.Stopped, b.Downtime, b.At)
	}
	if len(is.Told) != 1 || is.Told[0].Session != "busy" || len(is.Told[0].Notices) != 1 {
		r.t.Fatalf("told: %+v", is.Told)
	}
	text := is.Told[0].Text
	if !strings.Contains(text, "The host was rebooted") || !strings.Contains(text, "You were in the middle of a turn") || strings.Contains(text, "Downtime: ") != b.Known {
		r.t.Errorf("it is told %q", text)
	}
}

// settled checks what is left in the folder: notices of so many reboots, all seen, and what the session went through.
func (r *rebooted) settled(reboots int, kinds string) {
	r.t.Helper()
	o, err := boot.OpenOutbox(r.dir + "/boot")
	if err != nil {
		r.t.Fatal(err)
	}
	defer o.Close()
	ns, err := o.List(r.t.Context())
	if err != nil || len(ns) != reboots {
		r.t.Errorf("%d notices for %d reboots, %v: %+v", len(ns), reboots, err, ns)
	}
	for _, n := range ns {
		if n.Session != "busy" || !n.MidTurn || n.State != bootnotice.Acknowledged || len(n.Attempts) != 1 {
			r.t.Errorf("%+v", n)
		}
	}
	store, err := sessionlog.Read(sessionlog.Config{Path: r.dir + "/log/sessions"})
	if err != nil {
		r.t.Fatal(err)
	}
	events, err := store.Read(r.t.Context(), "busy", 0, 0)
	if err != nil {
		r.t.Fatal(err)
	}
	got := ""
	for _, e := range events {
		got += string(e.Kind) + " "
	}
	if got != kinds {
		r.t.Errorf("the log is %s\nnot        %s", got, kinds)
	}
}

const (
	cut  = "lease turn_begun message "
	done = cut + "model_turn turn_ended lease "
)

// TestHostReboot cuts the power of a machine whose host is in a turn, and boots it again. There the host starts twice.
func TestHostReboot(t *testing.T) {
	t.Parallel()
	r := newRebooted(t)
	m := r.on([]string{"THEN=work"})
	lived := r.beating(m)
	m.Cut(t)
	gone := time.Now()
	r.on(nil, "/bin/sh", "-c", `"$0" && "$0"`).Wait(t)
	l := r.lives(3)
	if l[0].Boot.Kind != bootnotice.FirstBoot || len(l[0].Told) > 0 {
		t.Errorf("the first life: %+v", l[0])
	}
	r.toldOfReboot(l[0], l[1], lived, gone)
	if l[1].Boot.Clean {
		t.Error("a power cut is said to be an orderly stop")
	}
	if b := l[2].Boot; b.Kind != bootnotice.ProcessRestart || !b.Clean || len(l[2].Told) > 0 {
		t.Errorf("another start in the same boot: %+v, told %+v", b, l[2].Told)
	}
	r.settled(1, cut+done)
}

// TestHostShutdown shuts a machine down in order while its host is in a turn. In its next boot the same happens by a power
// cut, after which the clock has gone back: how long it was off nobody knows then.
func TestHostShutdown(t *testing.T) {
	t.Parallel()
	r := newRebooted(t)
	m := r.on([]string{"THEN=poweroff"})
	r.atWork(m)
	lived := time.Now()
	m.Wait(t)
	gone := time.Now()

	m = r.on([]string{"THEN=work"})
	r.atWork(m)
	m.Cut(t)
	l := r.lives(2)
	r.toldOfReboot(l[0], l[1], lived, gone)
	if !l[1].Boot.Clean {
		t.Error("an orderly shutdown is not recorded as one")
	}

	r.on([]string{"BACK=1h"}).Wait(t)
	l = r.lives(3)
	r.toldOfReboot(l[1], l[2], time.Time{}, time.Time{})
	r.settled(2, cut+done+cut+done)
}
