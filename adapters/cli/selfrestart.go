package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
	"github.com/mulligan-dev/mulligan/restart/boot"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// selfRestartCommand restarts the unit that it runs in.
type selfRestartCommand struct {
	*shared
	unit, manager, dir, store, session, call string
	request                                  handoff.Request
	yes, json                                bool
}

func newSelfRestart(s *shared) *cobra.Command {
	r := &selfRestartCommand{shared: s}
	c := &cobra.Command{
		Use:   "self-restart [--unit NAME] [--reason TEXT] [--cause WORD] [--canary] [--wait] [--force] [--session NAME [--call ID]] [-j]",
		Short: "Restart the systemd unit that this is called in",
		Long: "Restart the systemd unit that this is called in, or the one that --unit or the config block self_restart names.\n" +
			"It asks first whether it may, looks who is in the middle of a turn, and writes down that the restart is meant. It\n" +
			"ends when systemd has taken the job; that it dies with the unit then does no harm.\n\n" +
			"Refused are: a restart while sessions are in the middle of a turn, unless it waits (--wait, 2 minutes at most for\n" +
			"everything together) or a person lets it cut them off (--force); the 4th within 10 minutes; one whose canary\n" +
			"failed; and one by a session that a restart started and that has completed no turn since, unless a person\n" +
			"confirms. At a terminal it asks; elsewhere --yes confirms.\n\n" +
			"--session names the session that wants it: it is not waited for, and is told after the restart.\n" +
			"--canary boots the unit's command beside it first, or the one in the config.\n\n" +
			"A host that listens for it (handoff.Listen) does all of this itself: then no turn begins while the restart is\n" +
			"prepared, the session's turn ends in order, with the call that --call names, and the host's own canary and rule\n" +
			"for confirming count. Beside any other host, a turn that begins at the last moment is cut off, and so is the\n" +
			"session's own.\n\n" +
			"The sessions' store tells who is in the middle of a turn: --store, else $MULLIGAN_SESSIONS, else the config block\n" +
			"sessions, else sessions.db in the state folder, if there is one; and so does what a host without a store has noted.\n" +
			"That, notices and the count of restarts are in --dir, else $MULLIGAN_NOTICES, else dir in the config block\n" +
			"restart_notice, else the folder boot in the state folder.\n\n" +
			"Exit codes: 0 the restart comes; 1 it was refused, or failed; 2 wrong arguments or config.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return r.run(c.Context()) })
	f := c.Flags()
	f.StringVar(&r.unit, "unit", "", "the unit's `NAME` (default: the one that this is called in)")
	f.StringVar(&r.manager, "manager", "", "whose unit it is, a `MANAGER`: system or user (default: as this is called)")
	f.StringVar(&r.request.Reason, "reason", "", "why, a sentence of `TEXT` that the session reads again")
	f.StringVar(&r.request.Cause, "cause", "", "a `WORD` for records, such as deploy")
	f.BoolVar(&r.request.Canary, "canary", false, "try the new code first; a failure stops the restart")
	f.BoolVar(&r.request.Wait, "wait", false, "wait until nobody is in the middle of a turn")
	f.BoolVar(&r.request.Force, "force", false, "cut off whoever is, when a person confirms it")
	f.BoolVar(&r.yes, "yes", false, "confirm without being asked")
	f.StringVar(&r.session, "session", "", "the `NAME` of the session that wants it")
	f.StringVar(&r.call, "call", "", "the `ID` of the session's call that this is, if it is in its log")
	f.StringVar(&r.dir, "dir", "", "the host's `DIR` of notices and restarts, see above")
	f.StringVar(&r.store, "store", "", "where the logs of sessions are, a `STORE`: sqlite:PATH, log:PATH or postgres://...")
	jsonFlag(c, &r.json)
	return c
}

func (r *selfRestartCommand) run(ctx context.Context) error {
	cfg, err := r.loadConfig()
	if err != nil {
		return err
	}
	dir, err := r.noticeDir(r.dir, cfg)
	if err != nil {
		return err
	}
	m, err := r.target(cfg.SelfRestart)
	if err != nil {
		return err
	}
	defer m.close()
	log, err := r.logger(slog.LevelError)
	if err != nil {
		return err
	}
	// A signal gives up what is only prepared. What was begun is brought to its end: the signal may be the very stop that
	// was asked for.
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGHUP)
	defer stop()
	if res, err := r.askHost(ctx, dir, m); err == nil {
		return r.tell(m, res)
	} else if !errors.Is(err, handoff.ErrNoHost) {
		res := r.failed(err)
		res.Restarting = errors.Is(err, handoff.ErrUnknown) // it may still come
		return r.tell(m, res)
	}
	err = r.withSessions(ctx, cfg, func(ctx context.Context, u *sessionsUse) error {
		return r.ask(ctx, cfg.SelfRestart, dir, m, u, log)
	})
	var exit *ExitError
	if err == nil || errors.As(err, &exit) {
		return err
	}
	return r.tell(m, r.failed(err))
}

func (r *selfRestartCommand) failed(err error) handoff.Result {
	return handoff.Result{SessionID: r.session, Reason: r.request.Reason, Error: err.Error(), InFlight: []string{}}
}

// hostWithin is how long a host that listens may take: its own deadline bounds it, unless it is stopped.
const hostWithin = handoff.DefaultDeadline + time.Minute

// askHost has the host do it, if one listens and is about the unit that is meant.
func (r *selfRestartCommand) askHost(ctx context.Context, dir string, m *ownManager) (handoff.Result, error) {
	unit, found := m.unit, false
	if unit == "" {
		own, err := m.Own(ctx)
		if err != nil && m.manager != "" {
			return handoff.Result{}, handoff.ErrNoHost // why this is no unit of that manager is said without it
		}
		unit, found = own, true // called in no unit, it is about the one that the host is in
	}
	ctx, cancel := context.WithTimeout(ctx, hostWithin)
	defer cancel()
	res, err := handoff.AskHost(ctx, dir, handoff.Outside{Request: r.request, Unit: unit, Found: found, Session: r.session, Call: r.call})
	m.host = err == nil
	return res, err
}

// target is what is to be restarted, and by which manager.
func (r *selfRestartCommand) target(c config.SelfRestart) (*ownManager, error) {
	m := &ownManager{unit: cmp.Or(r.unit, c.Unit), manager: systemd.Manager(cmp.Or(r.manager, c.Manager))}
	if m.manager != "" && m.manager != systemd.System && m.manager != systemd.User {
		return nil, usage("--manager %q, want system or user", m.manager)
	}
	if m.unit != "" && !handoff.Token(m.unit) {
		return nil, usage("--unit %q is no unit's name: letters, digits and _ . @ -", m.unit)
	}
	m.unit = withSuffix(m.unit)
	return m, nil
}

// ask has the restart asked for and tells what came of it. u is nil where there are no sessions.
func (r *selfRestartCommand) ask(ctx context.Context, c config.SelfRestart, dir string, m *ownManager, u *sessionsUse, log *slog.Logger) error {
	if inside.Inert() {
		return inside.ErrInert // before the stores say so in their own words
	}
	came := make(chan outcome, 2)
	hc := handoff.Config{
		Restarter: m, Own: m, Unit: m.unit, Confirm: r.confirm, Always: c.Canary.Always, Log: log,
		Canary: func(ctx context.Context) (handoff.Outcome, string) { return m.try(ctx, c.Canary, r.env.Environ, log) },
		// The answer is printed when systemd has taken the job: nobody has to get it before.
		Delay:  time.Millisecond,
		Asked:  func(err error) { came <- outcome{err: err, unknown: err != nil} },
		Failed: func(f handoff.Failure) { came <- outcome{err: f.Err, over: true} },
	}
	var notices *boot.Outbox
	if r.session != "" || kept(dir) { // where no session asks nobody is told, and there need be no keeper
		var err error
		if notices, err = outbox(dir); err != nil {
			return err
		}
		defer notices.Close()
		hc.Notices = notices
	}
	history := &lateHistory{dir: dir}
	defer history.close()
	hc.History = history
	woken := false
	if u != nil {
		var err error
		if woken, err = r.visit(ctx, u, notices); err != nil {
			return err
		}
	}
	hc.Others = func(ctx context.Context) ([]string, error) { return r.others(ctx, m, u, notices) }
	h, err := handoff.New(hc)
	if err != nil {
		return err
	}
	defer h.Close()
	if u != nil {
		h.Attach(u)
	}
	if woken {
		h.Woken(r.session)
	}
	res := h.Ask(ctx, handoff.Asker{Session: r.session}, r.request)
	if res.OK {
		res = r.await(ctx, m, res, came)
	}
	return r.tell(m, res)
}

// others are the sessions in the middle of a turn, by the host's own notes and by its store: a host has the one or the other.
func (r *selfRestartCommand) others(ctx context.Context, m *ownManager, u *sessionsUse, notices *boot.Outbox) (names []string, err error) {
	if notices != nil {
		if names, err = notices.MidTurn(func(owner ledger.Instance) bool { return r.over(m, u, owner) }); err != nil {
			return names, err
		}
	}
	if u == nil {
		return names, nil
	}
	more, err := handoff.MidTurn(ctx, u, m.spares(u.Instances.Self()))
	return append(names, more...), err
}

// over tells that an instance is proven dead, or that the restart leaves it alone. Where that cannot be told it is neither.
func (r *selfRestartCommand) over(m *ownManager, u *sessionsUse, owner ledger.Instance) bool {
	var near ledger.Instances
	if u != nil {
		near = u.Instances
	} else {
		dir, err := r.env.stateDir(r.home)
		if err != nil {
			return false
		}
		home, err := files.Open(files.Config{Dir: dir})
		if err != nil {
			return false
		}
		defer home.Close()
		near = home.Instances()
	}
	return near.Liveness(owner) == ledger.Dead || m.spares(near.Self())(owner)
}

// outcome is what came of a restart that was asked for.
type outcome struct {
	err     error
	unknown bool // the answer was lost
	over    bool // what was written was taken back
}

// await is the result once it is known whether the restart comes. When the answer was lost, only a process of the unit
// itself can tell: it lives on when nothing comes, and is told to stop when it does.
func (r *selfRestartCommand) await(ctx context.Context, m *ownManager, res handoff.Result, came <-chan outcome) handoff.Result {
	o := <-came
	if o.unknown && m.own {
		select {
		case o = <-came:
			o.err = fmt.Errorf("%w, and %v later nothing has come: it was taken back", o.err, handoff.Settle)
		case <-ctx.Done():
			o = outcome{}
		}
	}
	if o.err == nil {
		return res
	}
	res.OK, res.Restarting, res.Error = false, !o.over, o.err.Error()
	if !o.over {
		res.Error += ": it may still come, and its notice stays"
	}
	return res
}

// confirm asks a person; where nobody can be asked, --yes is the answer.
func (r *selfRestartCommand) confirm(ctx context.Context, q handoff.Question) (bool, error) {
	if r.yes {
		return true, nil
	}
	if r.json || !isTerminal(r.env.Stdin) {
		return false, nil
	}
	text := "A restart started session " + notify.Line(q.Session, 0) + ", which has completed no turn since. Restart again? [y/N] "
	if q.Why == handoff.WhyForce {
		text = "In the middle of a turn: " + notify.Line(strings.Join(q.InFlight, ", "), 0) + ". Cut off and restart? [y/N] "
	}
	if err := printText(r.env.Stdout, text); err != nil {
		return false, err
	}
	answered := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(r.env.Stdin).ReadString('\n') // no answer is none
		answered <- strings.ToLower(strings.TrimSpace(line))
	}()
	select {
	case answer := <-answered:
		return answer == "y" || answer == "yes", nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// hintsOf say what to do about a refusal, where its own text does not.
var hintsOf = map[handoff.Code]string{
	handoff.CodeNoUnit:      "--unit NAME names it, or unit in the config block " + config.SelfRestartBlock,
	handoff.CodeUnconfirmed: "--yes confirms it where nobody can be asked",
	handoff.CodeBusy:        "--wait waits, --force asks",
}

// tell prints what came of it.
func (r *selfRestartCommand) tell(m *ownManager, res handoff.Result) error {
	if res.OK {
		if r.json {
			return printJSON(r.env.Stdout, res)
		}
		return printText(r.env.Stdout, r.text(m, res))
	}
	text := res.Error
	hint := hintsOf[res.Code]
	if m.host && res.Code == handoff.CodeUnconfirmed {
		hint = "its host confirms, and nobody else"
	}
	if hint != "" {
		text += ": " + hint
	}
	fmt.Fprintf(r.env.Stderr, "%s self-restart: %s\n", r.program(), notify.Line(text, 0))
	if r.json {
		if err := printJSON(r.env.Stdout, res); err != nil {
			return err
		}
	}
	return silent(CodeFailed)
}

func (r *selfRestartCommand) text(m *ownManager, res handoff.Result) string {
	text := "Restarting " + m.name() + ": systemd has taken the job.\n"
	if m.host {
		text = "Restarting: the host has written it down, and asks for it now.\n"
	}
	if res.Canary != "" {
		text += "Canary: " + string(res.Canary) + ". " + notify.Line(res.CanaryDetail, 0) + "\n"
	}
	if len(res.InFlight) > 0 {
		text += "Cut off: " + notify.Line(strings.Join(res.InFlight, ", "), 0) + "\n"
	}
	if r.session != "" {
		text += "After it, " + notify.Line(r.session, 0) + " is told.\n"
	}
	return text
}
