package logline_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify/internal/logline"
)

func TestEntries(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line                        string
		entry, introduces, isQuoted bool
	}{
		{"WARN  [main] renderer", true, true, false},
		{"[12:00:01 WRN] plugin", true, true, false},
		{"INFO  [main] phase=booting", true, false, false},
		{"INFO  [main] could not load the renderer", true, true, false},
		{"ERROR [main] cannot start", true, false, false},
		{"ERROR [main] cannot load, falling back to plain", true, true, false},
		{"level=warning msg=x", true, true, false},
		{"tool `java App` exited 1:", false, false, true},
		{"stderr of hook:", false, false, true},
		{"a command is a command:", false, false, false},
		{"phase=booting", false, false, false},
	} {
		if got := logline.Entry(c.line); got != c.entry {
			t.Errorf("Entry(%q) is %v", c.line, got)
		}
		if got := logline.Introduces(c.line); got != c.introduces {
			t.Errorf("Introduces(%q) is %v", c.line, got)
		}
		if got := logline.Quoted(c.line); got != c.isQuoted {
			t.Errorf("Quoted(%q) is %v", c.line, got)
		}
	}
}
