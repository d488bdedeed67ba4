// Selfrestart is a small service under systemd whose agent updates it: a new release is put in place, the agent asks to be
// restarted, a canary tries the new release first, systemd restarts the unit, and the session that asked is told and goes
// on. Then a broken release comes: the canary stops it, and the service stays up. The model is a script; systemd, the
// releases, the canary and the restarts are real.
//
//	.ci/with-systemd -- go run ./examples/selfrestart
//
// tells the story inside a systemd of its own. On a machine with systemd `go run ./examples/selfrestart` does: it puts a unit
// into the folder of the manager that lasts until the next boot, and takes it away at the end. The unit runs
//
//	selfrestart serve            the service (service.go is how a host is wired)
//
// with its release in the folder of its program and its state in $SELFRESTART_STATE.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		code, err := serve(context.Background())
		if err != nil {
			say("%v", err)
		}
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := story(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "selfrestart:", err)
		os.Exit(1)
	}
}

// say prints one line of the service or of the story.
func say(format string, args ...any) {
	fmt.Println(strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}
