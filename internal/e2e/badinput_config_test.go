package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/config"
)

// TestBadConfig: a config that cannot be read, or says what this version does not know, is an error that names the file.
// It is never taken for the defaults, for nobody would see that the healer does what they had switched off.
func TestBadConfig(t *testing.T) {
	t.Parallel()
	whole := "agent_auto_restart:\n  enabled: false\n  quiescence_seconds: 45\n"
	bomb := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range 12 {
		bomb += fmt.Sprintf("a%d: &a%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i), 10), ", "))
	}
	for name, c := range map[string]struct {
		do   func(path string, whole []byte) error
		want string
	}{
		"cut":         {put(whole[:len(whole)-8]), ":4: not YAML"},
		"no text":     {put("\x00\xff\xfe{]"), ""},
		"a newer one": {put(whole + "  a_later_setting: 1\n"), "a_later_setting"},
		"a folder":    {spoils[4].do, "directory"},
		"a gigabyte":  {spoils[7].do, "which no config needs"},
		"a symlink to itself": {func(path string, _ []byte) error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink(path, path)
		}, "symbolic"},
		"a bomb": {put(bomb + whole + "  roots: *a12\n"), "roots"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, config.FileName)
			if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := config.Load("", "", dir, config.Options{}); err != nil || got.Enabled {
				t.Fatalf("whole: %+v, %v", got, err)
			}
			if err := c.do(path, []byte(whole)); err != nil {
				t.Fatal(err)
			}
			for _, explicit := range []string{"", path} {
				got, err := config.Load(explicit, "", dir, config.Options{})
				if err == nil {
					t.Errorf("it is taken as %+v", got)
				} else if !strings.Contains(err.Error(), config.FileName) || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 4000 {
					t.Errorf("%.500v, want the file and %q", err, c.want)
				}
			}
		})
	}
}
