package config_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/config"
)

// A host keeps the block in its own file; everything that is wrong with it is said at once.
func ExampleParse() {
	_, err := config.Parse("acme.yaml", []byte(`
server: {port: 8080}
agent_auto_restart:
  quiescence_seconds: 30s
  max_defers: 10
`), config.Options{})
	fmt.Println(err)

	c, err := config.Parse("acme.yaml", []byte("agent_auto_restart: {quiescence_seconds: 0}"), config.Options{})
	fmt.Println(c.Quiescence, c.MaxDefer, c.Enabled, err)
	// Output:
	// acme.yaml:4: agent_auto_restart.quiescence_seconds: "30s", want a whole number of seconds from 0 to 31536000
	// acme.yaml:5: agent_auto_restart.max_defers: no such key, want one of enabled, quiescence_seconds, max_defer_seconds, pending_resurface_seconds, retention_days, storm_max_per_episode, storm_max_per_30m, project, workspaces, roots, probe_command, notifiers, packs
	// 0s 30m0s true <nil>
}

// Without any file the defaults count.
func ExampleLoad() {
	c, err := config.Load("", "", "/nonexistent", config.Options{})
	fmt.Println(c.Project, c.StormPerEpisode, c.StormPer30m, err)
	// Output: default 12 20 <nil>
}
