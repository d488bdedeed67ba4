package systemd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

func TestUnitDir(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		m    Manager
		env  map[string]string
		want string
	}{
		{System, nil, "/etc/systemd/system"},
		{User, map[string]string{"HOME": "/h"}, "/h/.config/systemd/user"},
		{User, map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/systemd/user"},
		{User, map[string]string{"HOME": "/h", "XDG_CONFIG_HOME": "rel"}, "/h/.config/systemd/user"},
		{User, nil, ""},
	} {
		got, err := UnitDir(c.m, func(k string) string { return c.env[k] })
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
}

func TestUnitFileIsWrittenAsAWhole(t *testing.T) {
	t.Parallel()
	u := UnitFile{Name: "a.service", Dir: filepath.Join(t.TempDir(), "deep", "er"), Text: "one\n"}
	if got, err := u.Present(); got != "" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, text := range []string{"one\n", "two\n"} {
		u.Text = text
		if err := u.Write(); err != nil {
			t.Fatal(err)
		}
		if got, err := u.Present(); got != text || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	if left, err := os.ReadDir(u.Dir); err != nil || len(left) != 1 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
	// A link that somebody put in the way of the new file is not followed.
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(victim, filepath.Join(u.Dir, ".a.service.new")); err != nil {
		t.Fatal(err)
	}
	if err := u.Write(); err == nil {
		t.Error("it wrote through a link")
	}
}

func TestLingers(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "..", "a/b"} {
		if _, err := Lingers(bad); err == nil {
			t.Errorf("%q passes", bad)
		}
	}
	if on, err := Lingers("nobody-of-that-name"); on || err != nil {
		t.Errorf("%t, %v", on, err)
	}
}

func TestUnitFilesUnderSystemManager(t *testing.T) {
	t.Parallel()
	if !require.Systemd(t, require.SystemManager) {
		return
	}
	c := connect(t)
	if s, err := c.State(t.Context(), "quoted.service"); err != nil || s.Load != "not-found" {
		t.Errorf("a unit that is not there: %+v, %v", s, err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	dir, err := UnitDir(System, os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	u := UnitFile{Name: "quoted.service", Dir: dir, Text: "[Service]\nEnvironment=" + QuoteEnv(role, "print") + " " + QuoteEnv("OUT", out) +
		" " + QuoteEnv("STAY", "1") + " " + QuoteEnv("X", `a $X ${X} %n "b"`) + "\nExecStart=" + QuoteCommand(append([]string{self}, odd...)) +
		"\n[Install]\nWantedBy=multi-user.target\n"}
	if err := u.Write(); err != nil {
		t.Fatal(err)
	}
	if err := c.Enable(t.Context(), u.Name); err != nil {
		t.Fatal(err)
	}
	p := read(t, out)
	if fmt.Sprintf("%q", p.Args) != fmt.Sprintf("%q", odd) || p.X != `a $X ${X} %n "b"` {
		t.Errorf("it was given %q and X=%q", p.Args, p.X)
	}
	s, err := c.State(t.Context(), u.Name)
	if err != nil || s.Load != "loaded" || s.Active != "active" || s.Sub != "running" || s.File != "enabled" || s.PID != p.PID {
		t.Errorf("%+v, %v", s, err)
	}
	systemctl(t, "stop", u.Name)
	broken := UnitFile{Name: "broken.service", Dir: dir, Text: "[Service]\nType=exec\nExecStart=/nowhere/program\n[Install]\nWantedBy=multi-user.target\n"}
	if err := broken.Write(); err != nil {
		t.Fatal(err)
	}
	if err := c.Enable(t.Context(), broken.Name); err == nil || !strings.Contains(err.Error(), "failed") {
		t.Errorf("a unit that cannot start: %v", err)
	}
}
