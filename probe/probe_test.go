package probe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
)

func TestValidateNamesEveryFault(t *testing.T) {
	t.Parallel()
	good := probe.Plan{Interpreter: "/usr/bin/python3", Path: []string{"/srv/acme"}, Modules: []string{"acme.wire"}}
	if err := good.Validate(); err != nil {
		t.Errorf("a good plan is refused: %v", err)
	}
	tests := []struct {
		name  string
		spoil func(*probe.Plan)
		want  string
	}{
		{"relative interpreter", func(p *probe.Plan) { p.Interpreter = "python3" }, "interpreter"},
		{"no interpreter", func(p *probe.Plan) { p.Interpreter = "" }, "interpreter"},
		{"relative path", func(p *probe.Plan) { p.Path = []string{"lib"} }, "path"},
		{"empty path entry", func(p *probe.Plan) { p.Path = []string{""} }, "path"},
		{"no modules", func(p *probe.Plan) { p.Modules = nil }, "modules"},
		{"empty module", func(p *probe.Plan) { p.Modules = []string{"acme", ""} }, "modules"},
		{"module with NUL", func(p *probe.Plan) { p.Modules = []string{"a\x00b"} }, "modules"},
		{"negative timeout", func(p *probe.Plan) { p.Timeout = -time.Second }, "timeout"},
	}
	all := good
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := good
			tt.spoil(&p)
			if err := p.Validate(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want an error that names %q", err, tt.want)
			}
		})
		tt.spoil(&all)
	}
	err := all.Validate()
	for _, field := range []string{"interpreter", "path", "modules", "timeout"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("all faults at once: %v does not name %q", err, field)
		}
	}
}

func TestConfirmWantsOneKnownIdentity(t *testing.T) {
	t.Parallel()
	r := probe.Result{Outcome: probe.Healthy, Took: time.Second}
	tests := []struct {
		before, after string
		want          probe.Outcome
	}{
		{"a", "a", probe.Healthy},
		{"a", "b", probe.Unknown},
		{"", "", probe.Unknown},
		{"a", "", probe.Unknown},
		{"", "a", probe.Unknown},
	}
	for _, tt := range tests {
		got := probe.Confirm(r, tt.before, tt.after)
		if got.Outcome != tt.want || got.Took != r.Took {
			t.Errorf("Confirm(healthy, %q, %q) = %+v, want %s and the time it took", tt.before, tt.after, got, tt.want)
		}
		if got.Outcome == probe.Unknown && got.Detail == "" {
			t.Errorf("Confirm(healthy, %q, %q) gives no reason", tt.before, tt.after)
		}
	}
}
