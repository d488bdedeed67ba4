package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/restart/drain"
)

// stopTimeout is how long the service gets to stop: longer than a drain with the default waits takes at most (56 s).
const stopTimeout = 2 * time.Minute

// managerWithin bounds what is asked of systemd.
const managerWithin = time.Minute

// serviceCommand is the healer's own unit.
type serviceCommand struct {
	*shared
	system, yes, dry, json bool
	name                   string
}

func newService(s *shared) *cobra.Command {
	c := &cobra.Command{
		Use:   "service",
		Short: "Run the healer as a systemd service",
		Long: "Install the healer's loop (`run -p --follow`) as a systemd service, and say how it does. It is the user's own, under\n" +
			"the user's manager, unless --system is given.",
		Args: s.args(noneOr("command")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return c.Help() })
	c.AddCommand(newServiceInstall(s), newServiceStatus(s))
	return c
}

func (v *serviceCommand) flags(c *cobra.Command) {
	c.Flags().BoolVar(&v.system, "system", false, "a service of the system, not of the user")
	c.Flags().StringVar(&v.name, "name", name, "the service's `NAME`")
	jsonFlag(c, &v.json)
}

func newServiceInstall(s *shared) *cobra.Command {
	v := &serviceCommand{shared: s}
	c := &cobra.Command{
		Use:   "install [--system] [--name NAME] [--yes | -n] [-j]",
		Short: "Show the unit, and install it when that is confirmed",
		Long: "Show the unit file of the healer's loop and, when that is confirmed, write it, enable it and start it. Nothing is\n" +
			"written before it was shown: --yes confirms beforehand, -n shows only. The state folder, the config file and PATH\n" +
			"are those of this call. Again, it replaces the unit and starts the healer anew.\n\n" +
			"A replacement that the healer starts runs in a unit of its own, and goes on when the service is stopped.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return v.install(c.Context()) })
	v.flags(c)
	c.Flags().BoolVar(&v.yes, "yes", false, "write it without asking")
	c.Flags().BoolVarP(&v.dry, "dry-run", "n", false, "show it, and write nothing")
	return c
}

func newServiceStatus(s *shared) *cobra.Command {
	v := &serviceCommand{shared: s}
	c := &cobra.Command{
		Use:   "status [--system] [--name NAME] [-j]",
		Short: "Say whether the service runs",
		Long: "Say what systemd knows of the service: whether it runs, whether it starts by itself, how it ended. Exit code 1 when\n" +
			"it does not run, or cannot be asked for.",
		Args: s.args(noneOr("argument")),
	}
	c.RunE = s.run(func(c *cobra.Command, _ []string) error { return v.status(c.Context()) })
	v.flags(c)
	return c
}

func (v *serviceCommand) manager() systemd.Manager {
	if v.system {
		return systemd.System
	}
	return systemd.User
}

// unit is the unit's name. The manager would refuse an odd one too, but only after it was written.
func (v *serviceCommand) unit() (string, error) {
	base := strings.TrimSuffix(v.name, ".service")
	for _, r := range base {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
		default:
			return "", usage("--name: %q is no service's name: letters, digits and _ . -", v.name)
		}
	}
	if base == "" || base[0] == '.' || len(base) > 200 {
		return "", usage("--name: %q is no service's name", v.name)
	}
	return base + ".service", nil
}

// unitText is the unit of the loop, with the reasons for what is not a default.
func (v *serviceCommand) unitText(unit string) (string, error) {
	command, err := v.runner()
	if err != nil {
		return "", err
	}
	if passing(command[0]) {
		return "", usage("%s is what `go run` built, and gone when it ends: build %s into a place that stays, and call that", command[0], name)
	}
	home, err := v.env.stateDir(v.home)
	if err != nil {
		return "", &ExitError{Code: CodeUsage, Err: err}
	}
	command = append(command[:len(command):len(command)], "run", "-p", "--follow", "--home", home)
	file, err := v.configFile()
	if err != nil {
		return "", err
	}
	if file != "" {
		command = append(command, "--config", file)
	}
	target, edit := "default.target", "systemctl --user edit "
	if v.system {
		target, edit = "multi-user.target", "systemctl edit "
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by `%s service install`, which replaces it. Changes of your own: %s%s\n", v.program(), edit, unit)
	b.WriteString("[Unit]\nDescription=Mulligan: puts back once what a code update broke\n\n[Service]\nType=exec\n")
	if path := v.env.get("PATH"); path != "" {
		b.WriteString("# The healer asks git and the runtimes; a manager's own PATH may not reach them.\n")
		fmt.Fprintf(&b, "Environment=%s\n", systemd.QuoteEnv("PATH", path))
	}
	fmt.Fprintf(&b, "ExecStart=%s\n", systemd.QuoteCommand(command))
	b.WriteString("# A healer that failed begins anew: what it had begun is in the ledger.\nRestart=on-failure\nRestartSec=5\n" +
		"# 3 is \"switched off or paused\" and, after a drain, \"something survived\": it ended as it was told to.\n" +
		"SuccessExitStatus=3\n" +
		"# 2 is a config with a mistake in it, which starting again does not mend. 4 is a stop that took too long: it stays\n" +
		"# visible as a failure, and what was to stop is not started again.\n" +
		"RestartPreventExitStatus=2 3 4\n" +
		"# The healer alone is told to stop; what is left in its cgroup after it is killed.\nKillMode=mixed\n" +
		"# Longer than a drain takes at most, so that nothing is cut off in the middle of it.\n")
	fmt.Fprintf(&b, "TimeoutStopSec=%d\n\n[Install]\nWantedBy=%s\n", int(stopTimeout.Seconds()), target)
	return b.String(), nil
}

// passing reports whether a program is one that `go run` takes away when it has ended.
func passing(program string) bool {
	work := filepath.Dir(filepath.Dir(filepath.Dir(program)))
	return filepath.Base(filepath.Dir(program)) == "exe" && strings.HasPrefix(filepath.Base(work), "go-build")
}

// configFile is the file that the service is to read, absolute; empty for the defaults. Its mistakes are found now.
func (v *serviceCommand) configFile() (string, error) {
	if _, err := v.loadConfig(); err != nil {
		return "", err
	}
	if file := cmp.Or(v.config, v.env.get(config.EnvFile)); file != "" {
		return v.env.path(file)
	}
	file, err := v.env.path(config.FileName)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(file); err != nil {
		return "", nil //nolint:nilerr // without one there are the defaults, as everywhere
	}
	return file, nil
}

// installView is an installation as JSON.
type installView struct {
	Unit    string `json:"unit"`
	Path    string `json:"path"`
	Text    string `json:"text"`
	Written bool   `json:"written"`
	// Linger is whether a user's service runs without the user being logged in; absent for a service of the system.
	Linger *bool `json:"linger,omitempty"`
}

func (v *serviceCommand) install(ctx context.Context) error {
	if v.yes && v.dry {
		return usage("--yes and -n exclude one another: -n writes nothing")
	}
	if v.json && !v.yes && !v.dry {
		return usage("-j cannot ask: give --yes, or -n to see the unit only")
	}
	unit, err := v.unit()
	if err != nil {
		return err
	}
	text, err := v.unitText(unit)
	if err != nil {
		return err
	}
	dir, err := systemd.UnitDir(v.manager(), v.env.get)
	if err != nil {
		return err
	}
	u := systemd.UnitFile{Name: unit, Dir: dir, Text: text}
	view := installView{Unit: unit, Path: u.Path(), Text: text, Linger: v.linger()}
	if err := v.show(u); err != nil {
		return err
	}
	if v.dry {
		if v.json {
			return printJSON(v.env.Stdout, view)
		}
		return printText(v.env.Stdout, "Dry run: nothing was written.\n"+v.lingerText(view.Linger))
	}
	ctx, cancel := context.WithTimeout(ctx, managerWithin)
	defer cancel()
	// Before anything is written: a file that no manager reads would look installed.
	bus, err := systemd.Connect(ctx, v.manager())
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	defer bus.Close()
	if ok, err := v.confirm(); err != nil || !ok {
		return err
	}
	if err := u.Write(); err != nil {
		return err
	}
	if err := bus.Enable(ctx, unit); err != nil {
		return fmt.Errorf("%s is written, and the service does not run: %w", u.Path(), err)
	}
	view.Written = true
	if v.json {
		return printJSON(v.env.Stdout, view)
	}
	return printText(v.env.Stdout, "Installed and started. To see how it does: "+v.program()+" service status"+v.again()+"\n"+v.lingerText(view.Linger))
}

// again are the flags by which another command means the same service.
func (v *serviceCommand) again() string {
	out := ""
	if v.system {
		out += " --system"
	}
	if v.name != name {
		out += " --name " + notify.Shell(v.name)
	}
	return out
}

// show prints what would be written, and what it would take the place of.
func (v *serviceCommand) show(u systemd.UnitFile) error {
	there, err := u.Present()
	if err != nil {
		return fmt.Errorf("look at %s: %w", u.Path(), err)
	}
	if v.json && v.dry {
		return nil // it is in the document
	}
	text := u.Path() + ":\n\n" + u.Text + "\n"
	switch there {
	case "":
	case u.Text:
		text += "It is there already, word for word.\n"
	default:
		text += "It takes the place of another text that is there.\n"
	}
	if v.json { // the document comes when all is done, and this has to be seen before
		fmt.Fprint(v.env.Stderr, text)
		return nil
	}
	return printText(v.env.Stdout, text)
}

// confirm asks a person. Who is not there cannot have read it.
func (v *serviceCommand) confirm() (bool, error) {
	if v.yes {
		return true, nil
	}
	if !isTerminal(v.env.Stdin) {
		return false, usage("nothing was written: nobody can be asked here. --yes writes it, -n shows it only")
	}
	if err := printText(v.env.Stdout, "Write it, enable it and start it? [y/N] "); err != nil {
		return false, err
	}
	answer, err := bufio.NewReader(v.env.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return true, nil
	}
	if err != nil {
		return false, errors.New("nothing was written: there was no answer")
	}
	return false, printText(v.env.Stdout, "Nothing was written.\n")
}

// linger is whether this user's manager outlives the session; nil where that does not matter or cannot be told.
func (v *serviceCommand) linger() *bool {
	if v.system {
		return nil
	}
	who, err := user.LookupId(strconv.Itoa(os.Getuid()))
	if err != nil {
		return nil
	}
	on, err := systemd.Lingers(filepath.Base(who.Username))
	if err != nil {
		return nil
	}
	return &on
}

func (v *serviceCommand) lingerText(on *bool) string {
	if on == nil || *on {
		return ""
	}
	return fmt.Sprintf("A user's services end when the user logs out. To let them run on: loginctl enable-linger %d\n", os.Getuid())
}

// statusView is the service's state as JSON.
type statusView struct {
	Unit string `json:"unit"`
	systemd.State
	// Result, Exit and Restarts are how its last run ended, and how often systemd restarted it by itself.
	Result   string `json:"result,omitempty"`
	Exit     int    `json:"exit"`
	Restarts int    `json:"restarts"`
	Linger   *bool  `json:"linger,omitempty"`
}

func (v *serviceCommand) status(ctx context.Context) error {
	unit, err := v.unit()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, managerWithin)
	defer cancel()
	bus, err := systemd.Connect(ctx, v.manager())
	if err != nil {
		return err
	}
	defer bus.Close()
	st, err := bus.State(ctx, unit)
	if err != nil {
		return err
	}
	view := statusView{Unit: unit, State: st, Result: st.Result.Result, Exit: st.Result.Status, Restarts: st.Result.Restarts, Linger: v.linger()}
	if v.json {
		err = printJSON(v.env.Stdout, view)
	} else {
		err = printText(v.env.Stdout, v.statusText(view))
	}
	if err == nil && st.Active != "active" {
		err = silent(CodeFailed)
	}
	return err
}

// ends are what the exit codes of the loop mean for whoever looks at its service.
var ends = map[int]string{
	CodeUsage:         "the config has a mistake in it, so it is not started again",
	CodeDisabled:      "the healer was switched off or paused, or something survived its stop: it ended as it was told to",
	drain.ExitOverran: "the stop took too long, so it is not started again",
}

// lastEnd is how the last run ended.
func (s statusView) lastEnd() string {
	text := fmt.Sprintf("%s (%d)", s.Result, s.Exit)
	if why := ends[s.Exit]; why != "" && s.State.Result.Code == 1 { // it exited; what was killed has a signal there
		text = fmt.Sprintf("exit code %d: %s", s.Exit, why)
	}
	return text
}

func (v *serviceCommand) statusText(s statusView) string {
	if s.Load == "not-found" {
		return fmt.Sprintf("%s is not installed. To install it: %s service install%s\n", s.Unit, v.program(), v.again())
	}
	rows := [][]string{{"unit", s.Unit}, {"state", s.Active + " (" + s.Sub + ")"}, {"starts by itself", s.File}}
	if s.PID != 0 {
		rows = append(rows, []string{"process", strconv.Itoa(s.PID)})
	}
	if s.PID == 0 && (s.Result != "" && s.Result != "success" || s.State.Result.Code == 1 && s.Exit != 0) {
		rows = append(rows, []string{"last end", s.lastEnd()})
	}
	if s.Restarts > 0 {
		rows = append(rows, []string{"restarts", strconv.Itoa(s.Restarts)})
	}
	if s.Linger != nil {
		rows = append(rows, []string{"runs when logged out", map[bool]string{true: "yes", false: "no"}[*s.Linger]})
	}
	text := table(rows)
	if s.Active == "failed" {
		logs := "journalctl -u "
		if !v.system {
			logs = "journalctl --user -u "
		}
		text += "What it said: " + logs + s.Unit + "\n"
	}
	return text + v.lingerText(s.Linger)
}
