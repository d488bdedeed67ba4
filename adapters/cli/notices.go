package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
)

// EnvNotices is the environment variable that says where a service keeps its notices, as --dir does.
const EnvNotices = "MULLIGAN_NOTICES"

// noticeFolder is the folder in the state folder that counts when nothing names another.
const noticeFolder = "boot"

// asked is the state of a restart that was asked for and has not come: its notice is made when it does.
const asked = bootnotice.State("asked")

var noticeStates = []bootnotice.State{asked, bootnotice.Pending, bootnotice.Acknowledged, bootnotice.Undeliverable, bootnotice.PassedOn, bootnotice.Withdrawn}

// noticesCommand is what the commands about notices share.
type noticesCommand struct {
	*shared
	dir string // the flag
}

func newNotices(s *shared) *cobra.Command {
	n := &noticesCommand{shared: s}
	c := &cobra.Command{
		Use:   "notices",
		Short: "See what sessions are told of restarts, and acknowledge it",
		Long: "See what sessions are told of the restarts of their host, and acknowledge it in their place. Both work from any\n" +
			"process beside the host.\n\n" +
			"Where they are says --dir, else $MULLIGAN_NOTICES, else dir in the config block restart_notice, else it is the\n" +
			"folder boot in the state folder. It has to be the one that the host's keeper has.",
		Args: s.args(noneOr("command")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return c.Help() })
	dirFlag(c, &n.dir)
	c.AddCommand(n.newList(), n.newAck())
	return c
}

func dirFlag(c *cobra.Command, to *string) {
	c.PersistentFlags().StringVar(to, "dir", "", "the host's `DIR` of notices and restarts, see above")
}

// noticeDir finds the folder: the flag, else the environment, else the config, else one in the state folder.
func (s *shared) noticeDir(flag string, c config.Config) (string, error) {
	if dir := cmp.Or(flag, s.env.get(EnvNotices)); dir != "" {
		if flag == "" && !filepath.IsAbs(dir) {
			return "", usage("$%s is %q, want an absolute path", EnvNotices, dir)
		}
		return s.env.path(dir)
	}
	if c.NoticeDir != "" {
		return c.NoticeDir, nil
	}
	state, err := s.env.stateDir(s.home)
	if err != nil {
		return "", &ExitError{Code: CodeUsage, Err: err}
	}
	return filepath.Join(state, noticeFolder), nil
}

// kept reports that a keeper has been in a folder, or that this cannot be told.
func kept(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "marker.json"))
	return !errors.Is(err, fs.ErrNotExist)
}

// outbox opens the notices of a host. What is not there is not made: nobody would ever deliver from it. A folder alone
// proves nothing, since the count of restarts is kept there too; a keeper leaves a marker.
func outbox(dir string) (*boot.Outbox, error) {
	if !kept(dir) {
		return nil, fmt.Errorf("no host keeps notices at %s: --dir, $%s or dir in the config block %s name another",
			dir, EnvNotices, config.NoticeBlock)
	}
	return boot.OpenOutbox(dir)
}

// use opens the notices for one command.
func (n *noticesCommand) use(f func(o *boot.Outbox) error) error {
	cfg, err := n.loadConfig()
	if err != nil {
		return err
	}
	dir, err := n.noticeDir(n.dir, cfg)
	if err != nil {
		return err
	}
	o, err := outbox(dir)
	if err != nil {
		return err
	}
	return errors.Join(f(o), o.Close())
}

// noticeRow is a notice in a list, as JSON. One in the state "asked" is a restart that has not come.
type noticeRow struct {
	ID      string           `json:"id"`
	Session string           `json:"session"`
	State   bootnotice.State `json:"state"`
	// Why is why the session is told: requested, unplanned or target.
	Why bootnotice.Why `json:"why"`
	// Kind is what the boot was: process_restart, host_reboot or exec_in_place.
	Kind    bootnotice.Kind `json:"kind,omitempty"`
	MidTurn bool            `json:"mid_turn,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Others  []string        `json:"others,omitempty"`
	// Made is when the restart was asked for or found; Downtime is in seconds, absent when it is not known.
	Made     stamp.Time           `json:"made"`
	Downtime *float64             `json:"downtime,omitempty"`
	Attempts []bootnotice.Attempt `json:"attempts,omitempty"`
	By       string               `json:"by,omitempty"`
}

func (n *noticesCommand) newList() *cobra.Command {
	var json bool
	var state string
	c := &cobra.Command{
		Use:   "list [--state STATE] [-j]",
		Short: "List notices, oldest first",
		Long: "List what sessions are told of restarts, oldest first: what is pending, what was over within the last week, and\n" +
			"the restarts that were asked for and have not come (asked).",
		Args: n.args(noneOr("argument")),
	}
	c.RunE = n.run(func(c *cobra.Command, _ []string) error {
		if state != "" && !slices.Contains(noticeStates, bootnotice.State(state)) {
			return usage("--state %q, want one of %s", state, words(noticeStates))
		}
		return n.use(func(o *boot.Outbox) error {
			rows, err := noticeRows(c.Context(), o)
			if err != nil {
				return err
			}
			if state != "" {
				rows = slices.DeleteFunc(rows, func(r noticeRow) bool { return r.State != bootnotice.State(state) })
			}
			if json {
				return printJSON(n.env.Stdout, map[string]any{"notices": rows})
			}
			return printText(n.env.Stdout, noticesText(rows))
		})
	})
	c.Flags().StringVar(&state, "state", "", "only those in this `STATE`: "+words(noticeStates))
	jsonFlag(c, &json)
	return c
}

// noticeRows are the notices, and what is still to become one.
func noticeRows(ctx context.Context, o *boot.Outbox) ([]noticeRow, error) {
	requests, err := o.Requests(ctx)
	if err != nil {
		return nil, err
	}
	notices, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	rows := []noticeRow{}
	for _, t := range notices {
		r := noticeRow{ID: t.ID, Session: t.Session, State: t.State, Why: t.Why, Kind: t.Boot.Kind, MidTurn: t.MidTurn, Reason: t.Reason,
			Others: t.Others, Made: t.Made, Attempts: t.Attempts, By: t.By}
		if t.Boot.Known {
			down := t.Boot.Downtime.Seconds()
			r.Downtime = &down
		}
		rows = append(rows, r)
	}
	for _, q := range requests {
		rows = append(rows, noticeRow{ID: q.ID, Session: q.Session, State: asked, Why: bootnotice.Requested, Reason: q.Reason, Made: q.At})
	}
	return rows, nil
}

func noticesText(rows []noticeRow) string {
	if len(rows) == 0 {
		return "No notices.\n"
	}
	cells := [][]string{{"ID", "SESSION", "STATE", "MADE", "TRIED", "WHY"}}
	for _, r := range rows {
		why := string(r.Why)
		if r.Reason != "" {
			why += ": " + notify.Line(notify.Redact(r.Reason), 60)
		}
		cells = append(cells, []string{r.ID, notify.Line(r.Session, 40), string(r.State), moment(r.Made), fmt.Sprint(len(r.Attempts)), why})
	}
	return table(cells)
}

func (n *noticesCommand) newAck() *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "ack ID... [-j]",
		Short: "Acknowledge notices: nobody is told of them any more",
		Long: "Acknowledge notices, and with each all that its session was told in the same message: they are delivered no more.\n" +
			"One that is over already stays as it is. With an ID that no notice has nothing is acknowledged.",
		Args: n.args(func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return fmt.Errorf("ID is missing: %s", c.UseLine())
			}
			return nil
		}),
	}
	c.RunE = n.run(func(c *cobra.Command, args []string) error {
		return n.use(func(o *boot.Outbox) error { return n.ack(c.Context(), o, args, json) })
	})
	jsonFlag(c, &json)
	return c
}

func (n *noticesCommand) ack(ctx context.Context, o *boot.Outbox, ids []string, json bool) error {
	was, err := noticeRows(ctx, o)
	if err != nil {
		return err
	}
	if err := n.known(was, ids); err != nil {
		return err
	}
	by := cmp.Or(n.env.get("USER"), n.env.get("LOGNAME"))
	for _, id := range ids {
		if err := o.Ack(ctx, id, by); err != nil {
			return err // it was forgotten this very moment
		}
	}
	is, err := noticeRows(ctx, o)
	if err != nil {
		return err
	}
	var done []noticeRow // those that were named, and those that went with them
	text := ""
	for _, r := range is {
		before := find(was, r.ID)
		switch {
		case before != nil && before.State == bootnotice.Pending && r.State == bootnotice.Acknowledged:
			text += fmt.Sprintf("Acknowledged: %s of %s.\n", r.ID, notify.Line(r.Session, 0))
		case slices.Contains(ids, r.ID):
			text += fmt.Sprintf("It was over already: %s of %s (%s).\n", r.ID, notify.Line(r.Session, 0), r.State)
		default:
			continue
		}
		done = append(done, r)
	}
	if json {
		return printJSON(n.env.Stdout, map[string]any{"notices": done})
	}
	return printText(n.env.Stdout, text)
}

// known refuses ids that no notice has, before anything is changed.
func (n *noticesCommand) known(rows []noticeRow, ids []string) error {
	var none []string
	for _, id := range ids {
		switch r := find(rows, id); {
		case r == nil:
			none = append(none, notify.Shell(id))
		case r.State == asked:
			return fmt.Errorf("%s is a restart that was asked for and has not come: there is nothing to acknowledge yet", id)
		}
	}
	if len(none) > 0 {
		return fmt.Errorf("there is no notice %s: `%s` shows those that there are", strings.Join(none, ", "), n.line("list"))
	}
	return nil
}

// line is a command line for a person to paste, which reaches the same notices.
func (n *noticesCommand) line(word string) string {
	out := n.program() + " notices" + n.where()
	if n.dir != "" {
		out += " --dir " + notify.Shell(n.dir)
	}
	return out + " " + word
}

func find(rows []noticeRow, id string) *noticeRow {
	i := slices.IndexFunc(rows, func(r noticeRow) bool { return r.ID == id })
	if i < 0 {
		return nil
	}
	return &rows[i]
}
