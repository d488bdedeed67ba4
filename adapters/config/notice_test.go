package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// TestNotice pins what each key of restart_notice does, alone, and that every other one stays what users know.
func TestNotice(t *testing.T) {
	t.Parallel()
	custom := "  Back again: {x} 50% \"quoted\" $HOME ↻\n\n\tsecond line\n"
	for name, c := range map[string]struct {
		block  string
		change func(*bootnotice.Config)
	}{
		"no block at all":      {"sessions: {}", nil},
		"an empty block":       {"restart_notice: {}", nil},
		"enabled":              {"restart_notice: {enabled: true}", nil},
		"disabled":             {"restart_notice: {enabled: false}", func(c *bootnotice.Config) { c.Disabled = true }},
		"target primary":       {"restart_notice: {target: primary}", nil},
		"target all":           {"restart_notice: {target: all}", func(c *bootnotice.Config) { c.Target = bootnotice.All }},
		"target an id":         {"restart_notice: {target: agent-7}", func(c *bootnotice.Config) { c.Target = "agent-7" }},
		"mode wake":            {"restart_notice: {mode: wake}", nil},
		"mode inject":          {"restart_notice: {mode: inject}", func(c *bootnotice.Config) { c.Mode = bootnotice.Inject }},
		"grace as it is":       {"restart_notice: {grace_seconds: 600}", nil},
		"another grace":        {"restart_notice: {grace_seconds: 30}", func(c *bootnotice.Config) { c.Grace = 30 * time.Second }},
		"no grace":             {"restart_notice: {grace_seconds: 0}", func(c *bootnotice.Config) { c.Grace = 0 }},
		"wait as it is":        {"restart_notice: {wait_seconds: 15}", nil},
		"another wait":         {"restart_notice: {wait_seconds: 1}", func(c *bootnotice.Config) { c.Wait = time.Second }},
		"no wait":              {"restart_notice: {wait_seconds: 0}", func(c *bootnotice.Config) { c.Wait = 0 }},
		"prefix as it is":      {"restart_notice: {ignored_prefixes: [head-]}", nil},
		"other prefixes":       {"restart_notice: {ignored_prefixes: [a-, b]}", func(c *bootnotice.Config) { c.Ignore = []string{"a-", "b"} }},
		"no prefix is ignored": {"restart_notice: {ignored_prefixes: []}", func(c *bootnotice.Config) { c.Ignore = []string{} }},
		"a text in quotes":     {"restart_notice: {text: \"" + strings.NewReplacer("\"", "\\\"", "\n", "\\n", "\t", "\\t").Replace(custom) + "\"}", func(c *bootnotice.Config) { c.Text = custom }},
		"a text as a block":    {"restart_notice:\n  text: |\n    Back {x} 50%.\n      $HOME: \"a\"\n", func(c *bootnotice.Config) { c.Text = "Back {x} 50%.\n  $HOME: \"a\"\n" }},
	} {
		// Written out, and not taken from bootnotice: these are the numbers of the contract.
		want := bootnotice.Config{Target: "primary", Mode: "wake", Grace: 600 * time.Second, Wait: 15 * time.Second, Ignore: []string{"head-"}}
		if c.change != nil {
			c.change(&want)
		}
		got, err := Parse("acme.yaml", []byte(c.block+"\n"), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		effective, err := got.Notice.WithDefaults() // as the keeper takes it
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(want, effective); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		if text := effective.Text; text != "" {
			shown := bootnotice.Text([]bootnotice.Notice{{ID: "rn-1", Session: "a"}}, bootnotice.Ruling{}, effective)
			if shown != "[Mulligan restart notice rn-1]\n"+text {
				t.Errorf("%s: the session is told %q", name, shown)
			}
		}
	}
}

func TestNoticeDir(t *testing.T) {
	t.Parallel()
	dir := resolvedTemp(t)
	got, err := Parse(filepath.Join(dir, "acme.yaml"), []byte("restart_notice: {dir: state/boot}"), Options{})
	if err != nil || got.NoticeDir != filepath.Join(dir, "state/boot") {
		t.Errorf("%q, %v: want it counted from the file", got.NoticeDir, err)
	}
}
