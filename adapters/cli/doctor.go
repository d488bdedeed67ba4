package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/notify"
)

func newDoctor(s *shared) *cobra.Command {
	var json bool
	c := &cobra.Command{
		Use:   "doctor [-j]",
		Short: "Check the config, the state folder and the programs that are needed",
		Long: "Check all that Mulligan stands on, and say what to do about what is wrong. Nothing is changed, but a state folder\n" +
			"that is absent is made. Exit code 1 when a check failed; warnings alone are 0.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error {
		d := &doctor{shared: s}
		d.run(c.Context())
		view := doctorView{OK: !slices.ContainsFunc(d.checks, func(k check) bool { return k.Status == statusFail }), Checks: d.checks}
		var err error
		if json {
			err = printJSON(s.env.Stdout, view)
		} else {
			err = printText(s.env.Stdout, view.text())
		}
		if err == nil && !view.OK {
			err = silent(CodeFailed)
		}
		return err
	})
	jsonFlag(c, &json)
	return c
}

// status is how a check came out. A warning is something that may be meant; a failure never is.
type status string

const (
	statusOK   status = "ok"
	statusWarn status = "warn"
	statusFail status = "fail"
)

// check is one thing that was looked at.
type check struct {
	Name   string `json:"name"`
	Status status `json:"status"`
	Detail string `json:"detail"`
	// Next is what to do about it.
	Next string `json:"next,omitempty"`
}

type doctorView struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
}

func (v doctorView) text() string {
	rows := [][]string{}
	for _, k := range v.Checks {
		rows = append(rows, []string{string(k.Status), k.Name, k.Detail})
		if k.Next != "" {
			rows = append(rows, []string{"", "", "-> " + k.Next})
		}
	}
	return table(rows)
}

// doctor collects checks. Each stands for itself: what cannot be looked at because of an earlier failure is left out.
type doctor struct {
	*shared
	checks []check
}

func (d *doctor) add(name string, s status, next, detail string, args ...any) {
	d.checks = append(d.checks, check{Name: name, Status: s, Next: next, Detail: notify.Line(fmt.Sprintf(detail, args...), 0)})
}

// run makes every check that can be made. A config that is wrong does not end it: the person who is looking for what is
// wrong wants all of it.
func (d *doctor) run(ctx context.Context) {
	cfg, err := d.loadConfig()
	if err != nil {
		d.add("config", statusFail, "correct the file, or name another with --config", "%v", err)
		cfg = config.Default()
	} else {
		d.config(cfg)
	}
	d.programs(cfg)
	dir, err := d.env.stateDir(d.home)
	if err != nil {
		d.add("state folder", statusFail, "set $MULLIGAN_HOME to an absolute path", "%v", err)
		return
	}
	// Before it is opened: a folder that somebody else owns is refused below, and the modes say why.
	d.permissions(dir)
	h, err := d.open(cfg, slog.LevelError)
	if err != nil {
		d.add("state folder", statusFail, "use a folder of your own on a local disk: --home or $MULLIGAN_HOME", "%v", err)
		return
	}
	defer h.close()
	d.add("state folder", statusOK, "", "%s", dir)
	d.pause(ctx, h, cfg)
	d.records(ctx, h)
	d.runs(ctx, h)
	d.doorbells(ctx, h)
	d.answers(ctx, h)
	d.journal(ctx, h)
}
