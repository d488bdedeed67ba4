package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// sessionsCommand is what the commands about sessions share.
type sessionsCommand struct {
	*shared
	group *cobra.Command
	store string // the flag
}

func newSessions(s *shared) *cobra.Command {
	g := &sessionsCommand{shared: s}
	c := &cobra.Command{
		Use:   "sessions",
		Short: "Look at sessions, answer what they ask, and get them out of trouble",
		Long: "Look at the logs of sessions, and append to them what a person decides. Every command works from any process\n" +
			"beside the host that runs the sessions, which sees what was appended at once.\n\n" +
			"Where the logs are says --store, else $MULLIGAN_SESSIONS, else the config block sessions, else it is the file\n" +
			"sessions.db in the state folder:\n\n" +
			"  sqlite:PATH        a database file\n" +
			"  log:PATH           a log file: its host writes it, all others only read\n" +
			"  postgres://...     a database server; give a password through the environment or the config, not as an argument\n\n" +
			"The state folder has to be the host's: there its process is proven alive or dead.\n\n" +
			"Exit codes: 0 done; 1 it could not be carried out; 2 wrong arguments or config; 4 the log refuses it, with the\n" +
			"reason; 5 resume: no host here can run a turn; 6 the store can only be read from here.",
		Args: s.args(noneOr("command")),
	}
	g.group = c
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return c.Help() })
	c.PersistentFlags().StringVar(&g.store, "store", "", "where the logs are, a `STORE`: sqlite:PATH, log:PATH or postgres://...")
	c.AddCommand(g.newList(), g.newShow(), g.newTail(), g.newStats(), g.newPause(), g.newExtend(), g.newAnswer(), g.newAbort(),
		g.newAck(), g.newResolve(), g.newRelease(), g.newResume())
	return c
}

// sessionsUse is an open store with a service on it, for one command.
type sessionsUse struct {
	*sessions.Service
	command *sessionsCommand
	// hosts is set where only the sessions' host can write.
	hosts bool
}

// access is what a command needs of a store.
type access bool

const (
	reading access = false
	writing access = true
)

// use opens the store for one command and closes it afterwards. What the log refuses gets its exit code and what a person
// can do about it.
func (g *sessionsCommand) use(ctx context.Context, a access, f func(ctx context.Context, u *sessionsUse) error) error {
	cfg, err := g.loadConfig()
	if err != nil {
		return err
	}
	dir, err := g.env.stateDir(g.home)
	if err != nil {
		return &ExitError{Code: CodeUsage, Err: err}
	}
	at, err := g.place(cfg.Sessions, dir)
	if err != nil {
		return err
	}
	if a == writing && at.readOnly() {
		return &ExitError{Code: CodeReadOnly, Err: &ReadOnlyError{Store: at.String()}}
	}
	log, err := g.logger(slog.LevelError)
	if err != nil {
		return err
	}
	home, err := files.Open(files.Config{Dir: dir})
	if err != nil {
		return fmt.Errorf("%w: `%s doctor` looks closer; --home names another state folder", err, g.called())
	}
	defer home.Close()
	store, closeStore, err := at.open(ctx)
	if err != nil {
		return err
	}
	service, err := sessions.New(sessions.Config{Store: store, Instances: home.Instances(), Log: log})
	if err != nil {
		return errors.Join(err, closeStore())
	}
	err = f(ctx, &sessionsUse{Service: service, command: g, hosts: at.readOnly()})
	return g.refused(errors.Join(err, service.Close(), closeStore()))
}

// refused gives what the log refuses its exit code, and says what to do about it.
func (g *sessionsCommand) refused(err error) error {
	var exit *ExitError
	code := session.CodeOf(err)
	if code == "" || errors.As(err, &exit) {
		return err
	}
	out := &ExitError{Code: CodeRefused, Err: err}
	if code == session.ErrOutcomeUnknown {
		out.Code = CodeFailed
	}
	if hint := hints[code]; hint != "" {
		out.Err = fmt.Errorf("%w: %s", err, hint)
	}
	return out
}

// hints say what to do about a refusal, where its own text does not.
var hints = map[session.Code]string{
	session.ErrAborted:         "an abort is for good; begin another session",
	session.ErrPaused:          "answer its gates first; `sessions show` lists them",
	session.ErrTurnOpen:        "wait for the turn's end, abort the session, or give --wait 1m to watch its owner",
	session.ErrOwned:           "it is free when that host gives it up or is proven dead; --wait 1m watches it",
	session.ErrAnswerConflict:  "the first answer counts; `sessions tail` shows it",
	session.ErrWrongToken:      "`sessions extend` makes a new one",
	session.ErrTokenExpired:    "`sessions extend` makes a new one",
	session.ErrNoSuchInterrupt: "`sessions show` lists what is open",
	session.ErrNoSuchCall:      "`sessions show` lists the calls by their sequence",
	session.ErrNewer:           "update this program",
	session.ErrOutcomeUnknown:  "do the same again, which is safe",
}

// existing is the state of a session that must exist: an append to a name that was mistyped would make a session.
func (u *sessionsUse) existing(ctx context.Context, name string) (session.Status, error) {
	if err := session.CheckName(name); err != nil {
		return session.Status{}, usage("%.40q is no name of a session: %w", name, err)
	}
	status, err := u.Status(ctx, name)
	if err != nil {
		return status, err
	}
	if status.Head.Last == 0 {
		return status, fmt.Errorf("there is no session %s: `%s` shows those that there are", notify.Shell(name), u.command.line("list"))
	}
	return status, nil
}

// line is a command line for a person to paste, which reaches the same store.
func (g *sessionsCommand) line(words ...string) string {
	out := g.group.CommandPath() + g.where() // also where the group alone is mounted
	if g.store != "" {
		out += " --store " + notify.Shell(redacted(g.store))
	}
	for i, w := range words {
		if i > 0 {
			w = notify.Shell(w)
		}
		out += " " + w
	}
	return out
}
