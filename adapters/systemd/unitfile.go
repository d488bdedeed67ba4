package systemd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// UnitFile is a unit of one's own that is to be installed.
type UnitFile struct {
	// Name is the unit's, with its ending.
	Name string
	// Dir is where the manager looks for units that were installed by hand; see [UnitDir].
	Dir  string
	Text string
}

// UnitDir is the folder for units that were installed by hand: of the user who has the environment, or of the system.
func UnitDir(m Manager, env func(string) string) (string, error) {
	if m == System {
		return "/etc/systemd/system", nil
	}
	for _, v := range []struct{ name, below string }{{"XDG_CONFIG_HOME", "systemd/user"}, {"HOME", ".config/systemd/user"}} {
		if dir := env(v.name); filepath.IsAbs(dir) {
			return filepath.Join(dir, v.below), nil
		}
	}
	return "", errors.New("there is no folder for a user's units: $HOME is not set to an absolute path")
}

// Path is the file.
func (u UnitFile) Path() string { return filepath.Join(u.Dir, u.Name) }

// Present is the text of the file that is there, empty when there is none.
func (u UnitFile) Present() (string, error) {
	b, err := os.ReadFile(u.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(b), err
}

// Write puts the file in its place as a whole, durably. A manager sees it after [Conn.Enable].
func (u UnitFile) Write() (err error) {
	if err := os.MkdirAll(u.Dir, 0o755); err != nil {
		return fmt.Errorf("write %s: %w", u.Path(), err)
	}
	temp := filepath.Join(u.Dir, "."+u.Name+".new") // no ending of a unit's: a manager that reads now leaves it alone
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", u.Path(), err)
	}
	_, err = f.WriteString(u.Text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(temp, u.Path())
	}
	if err == nil {
		err = syncDir(u.Dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", u.Path(), err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Enable makes the manager read its files again, enables a unit and starts it, or starts it again when it runs. It
// returns when the start has ended.
func (c *Conn) Enable(ctx context.Context, unit string) error {
	if err := c.bus.ReloadContext(ctx); err != nil {
		return fmt.Errorf("make the manager read %s: %w", unit, err)
	}
	if _, _, err := c.bus.EnableUnitFilesContext(ctx, []string{unit}, false, true); err != nil {
		return fmt.Errorf("enable %s: %w", unit, err)
	}
	if err := c.bus.ReloadContext(ctx); err != nil {
		return fmt.Errorf("make the manager read %s: %w", unit, err)
	}
	done := make(chan string, 1)
	if _, err := c.bus.RestartUnitContext(ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("start %s: %w", unit, err)
	}
	if err := await(ctx, unit, done); err != nil {
		return fmt.Errorf("start %s: %w", unit, err)
	}
	return nil
}

// State is what a unit is doing, in the manager's words.
type State struct {
	Load   string `json:"load"`   // "loaded", "not-found", "bad-setting", ...
	Active string `json:"active"` // "active", "inactive", "failed", "activating", ...
	Sub    string `json:"sub"`    // "running", "dead", "auto-restart", ...
	// File is whether it starts by itself: "enabled", "disabled", "static", ...
	File string `json:"file"`
	PID  int    `json:"pid,omitempty"`
	// Result and the rest are how its last run ended.
	Result Result `json:"-"`
}

// State reads what a service is doing. A unit that is not there is no error: Load says so.
func (c *Conn) State(ctx context.Context, unit string) (s State, err error) {
	for name, to := range map[string]*string{"LoadState": &s.Load, "ActiveState": &s.Active, "SubState": &s.Sub, "UnitFileState": &s.File} {
		if *to, err = property[string](ctx, c, unit, "Unit", name); err != nil {
			return s, err
		}
	}
	if s.Load != "loaded" {
		return s, nil
	}
	pid, err := property[uint32](ctx, c, unit, "Service", "MainPID")
	if err != nil {
		return s, err
	}
	s.PID = int(pid)
	s.Result, err = c.Result(ctx, unit)
	return s, err
}

// lingering is where the login manager keeps for whom it does.
const lingering = "/var/lib/systemd/linger"

// Lingers reports whether a user's manager runs without the user being logged in.
func Lingers(user string) (bool, error) {
	if user == "" || strings.ContainsRune(user, '/') || user == "." || user == ".." {
		return false, fmt.Errorf("look whether user %q lingers: this is no user's name", user)
	}
	_, err := os.Lstat(filepath.Join(lingering, user))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// quoter writes a word of a unit file: quotes, backslashes and control characters as the manager reads them, and what it
// would take for a specifier doubled.
var quoter = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\r", `\r`, "%", "%%")

// QuoteCommand is a command line for ExecStart=, which reaches the program as it is given here.
func QuoteCommand(words []string) string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = quote(strings.ReplaceAll(w, "$", "$$"))
	}
	return strings.Join(out, " ")
}

// QuoteEnv is an assignment for Environment=.
func QuoteEnv(key, value string) string { return quote(key + "=" + value) }

// quote puts quotes round a word that needs them.
func quote(w string) string {
	q := quoter.Replace(w)
	if q == w && w != "" && !strings.ContainsAny(w, " ';") {
		return w
	}
	return `"` + q + `"`
}
