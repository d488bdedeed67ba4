package config

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// FuzzParse holds any text to the package's promise: a config that is whole, or problems with words; never a panic, and
// never a default in the place of something wrong.
func FuzzParse(f *testing.F) {
	for _, glob := range []string{"testdata/errors/*.yaml"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte("agent_auto_restart: {}"))
	f.Add([]byte("sessions: {driver: postgres, dsn: 'postgres://a@b/c', auto_resume_window: 1h}"))
	f.Add([]byte("a: &a {enabled: true}\nagent_auto_restart: *a"))
	f.Add([]byte("agent_auto_restart: &x {roots: [*x]}"))
	f.Add([]byte("? [a]\n: b\nagent_auto_restart: {roots: [{name: a, dirs: [d], modules: [m], kind: git}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p := &parser{file: "f", base: "/base", folder: standIn, future: standIn, detect: func(string, string) string { return KindGit }}
		c := p.document(data)
		if len(p.problems) > 0 {
			var all *Error
			if err := p.err(); !errors.As(err, &all) || err.Error() == "" {
				t.Fatalf("problems without words: %v", err)
			}
			return
		}
		if _, err := c.Notice.WithDefaults(); err != nil || c.Notice.Grace == 0 || c.Notice.Wait == 0 || c.Notice.Target == "" {
			t.Fatalf("a notice that is not whole: %+v, %v", c.Notice, err)
		}
		set := c.Settings()
		if set.MaxDefer <= 0 || set.Resurface <= 0 || set.StormPerEpisode <= 0 || set.StormPer30m <= 0 || c.Project == "" {
			t.Fatalf("settings that the healer would take for defaults: %+v", c)
		}
		if l := c.Sessions.Limits(); l.Window < time.Second || l.Attempts <= 0 || l.PerBoot <= 0 {
			t.Fatalf("limits that auto-resume would take for defaults: %+v", c.Sessions)
		}
		if s := c.Sessions; s.Driver == DriverPostgres && !postgresURL(s.DSN) || s.Driver != DriverPostgres && s.DSN != "" && !filepath.IsAbs(s.DSN) {
			t.Fatalf("driver %s has dsn %q", s.Driver, s.DSN)
		}
		names := map[string]bool{}
		for _, r := range c.Roots {
			if r.Name == "" || names[r.Name] || r.Kind == "" || len(r.Dirs) == 0 {
				t.Fatalf("a root that is not whole: %+v", r)
			}
			names[r.Name] = true
			for _, d := range r.Dirs {
				if !filepath.IsAbs(d) || d == "/" {
					t.Fatalf("root %s has folder %q", r.Name, d)
				}
			}
		}
	})
}
