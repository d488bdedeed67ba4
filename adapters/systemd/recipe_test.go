package systemd

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	env := []string{"X=old", "X=a  b", "Y=y"}
	for in, want := range map[string][]string{
		"plain": {"plain"}, "$$HOME": {"$HOME"}, "${X}": {"a  b"}, "$X": {"a", "b"}, "$NONE": nil, "${NONE}": {""},
		"p${Y}q${Y}": {"pyqy"}, "a$Y": {"a$Y"}, "$": {"$"}, "${Y": {"${Y"}, "${}": {"${}"}, "$1": {"$1"}, "$$$$": {"$$"}, "": {""},
	} {
		if got := expand([]string{in}, env); !slices.Equal(got, want) {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	for _, c := range []struct {
		dir, want string
		m         Manager
	}{{"", "/", System}, {"", "/home/ada", User}, {"~", "/home/ada", System}, {"!/srv", "/srv", System}, {"/srv", "/srv", User}} {
		if got := workingDir(c.dir, c.m, []string{"HOME=/home/ada"}); got != c.want {
			t.Errorf("%q of the %s manager is %q, want %q", c.dir, c.m, got, c.want)
		}
	}
}

func TestRecipeUnderSystemManager(t *testing.T) {
	t.Parallel()
	if require.Systemd(t, require.SystemManager) {
		recipes(t)
	}
}

// recipes compares what is read with what the manager itself starts.
func recipes(t *testing.T) {
	c := connect(t)
	const environment = "Environment=\"X=a b\" Y=$$y\n"
	out := filepath.Join(t.TempDir(), "out")
	install(t, "recipe.service", "[Service]\n"+environment+"StandardOutput=file:"+out+"\nWorkingDirectory=/run\nExecStart=/bin/echo $$X ${X} $X p${Y}q 'c\"d' $NONE\n")
	r, err := c.Recipe(t.Context(), "recipe.service", []string{"PATH=/bin"}, false)
	want := []string{"/bin/echo", "$X", "a b", "a", "b", "p$$yq", `c"d`}
	if err != nil || !slices.Equal(r.Command, want) || r.Dir != "/run" || strings.Join(r.Env, " ") != "PATH=/bin X=a b Y=$$y" {
		t.Errorf("%+v, %v", r, err)
	}
	systemctl(t, "start", "recipe.service")
	said := ""
	until(t, "what the service says", func() bool {
		b, err := os.ReadFile(out)
		said = string(b)
		return err == nil && strings.HasSuffix(said, "\n")
	})
	if !strings.Contains(said, strings.Join(want[1:], " ")+"\n") {
		t.Errorf("the manager started %q, the recipe is %q", said, want)
	}
	install(t, "plain.service", "[Service]\nExecStart=:/bin/echo ${X} $$\n")
	if r, err = c.Recipe(t.Context(), "plain.service", []string{"X=x"}, true); err != nil || !slices.Equal(r.Command, []string{"/bin/echo", "${X}", "$$"}) || r.Dir != "/" {
		t.Errorf("%+v, %v", r, err)
	}
	install(t, "two.service", "[Service]\nType=oneshot\nExecStart=/bin/true\nExecStart=/bin/true\n")
	if _, err = c.Recipe(t.Context(), "two.service", nil, true); err == nil || !strings.Contains(err.Error(), "it has 2 commands") {
		t.Errorf("two commands: %v", err)
	}
	install(t, "file.service", "[Service]\nEnvironmentFile=-/etc/acme.env\nExecStart=/bin/true\n")
	if _, err = c.Recipe(t.Context(), "file.service", nil, false); err == nil || !strings.Contains(err.Error(), "EnvironmentFile=/etc/acme.env") {
		t.Errorf("an environment file: %v", err)
	}
	if _, err = c.Recipe(t.Context(), "file.service", nil, true); err != nil {
		t.Errorf("inside of it the environment is known: %v", err)
	}
}
