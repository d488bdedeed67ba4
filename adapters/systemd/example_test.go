package systemd_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/systemd"
	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// A service that restarts itself. Where there is no bus the host decides whether the programs will do: nothing falls back
// by itself.
func ExampleNewRestarter() {
	ctx := context.Background()
	var way systemd.Way
	way, err := systemd.Connect(ctx, systemd.System)
	var bus *systemd.BusError
	if errors.As(err, &bus) {
		way, err = bus.Programs(ctx)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := systemd.NewRestarter(way)
	if err != nil {
		fmt.Println(err)
		return
	}
	budget, err := handoff.OpenHistory("/var/lib/acme/boot") // the keeper's folder, where the command line looks too
	if err != nil {
		fmt.Println(err)
		return
	}
	defer budget.Close()
	h, err := handoff.New(handoff.Config{Restarter: r, Own: r, History: budget})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close()
	fmt.Println(h.Ask(ctx, handoff.Asker{}, handoff.Request{Reason: "a new build is in place", Wait: true}).OK)
}

func ExampleQuoteCommand() {
	fmt.Println("ExecStart=" + systemd.QuoteCommand([]string{"/usr/bin/acme", "--home", "/srv/a b", "$HOME", "100%"}))
	// Output:
	// ExecStart=/usr/bin/acme --home "/srv/a b" $$HOME "100%%"
}
