package cli_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
)

// keeper is one life of a host that keeps notices: keeper DIR ID DEED [SESSION [REASON | SESSION...]]. Deeds: busy (it ends in the
// middle of a turn), request (the session asks for a restart), deliver (what is pending is delivered, and nobody says that
// they have seen it, and it ends when each SESSION was told).
func keeper() {
	if err := keep(context.Background(), os.Args[1], os.Args[2], os.Args[3], os.Args[4:]...); err != nil {
		fmt.Fprintln(os.Stderr, "keeper:", err)
		os.Exit(1)
	}
}

func keep(ctx context.Context, dir, id, deed string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	k, err := boot.New(ctx, boot.Config{Dir: dir, Instance: ledger.Instance{ID: id}, Deliver: unseen{}, Notice: bootnotice.Config{Wait: -1},
		Startup: []string{"main"}})
	if err != nil {
		return err
	}
	switch deed {
	case "busy":
		_, err = k.Busy(args[0])
	case "request":
		err = k.Outbox().Request(ctx, bootnotice.Request{ID: "ask-1", Session: args[0], Reason: args[1]})
	case "deliver":
		for _, name := range args {
			k.Appeared(name)
		}
		err = k.Run(ctx) // it ends when all were told
	}
	return errors.Join(err, k.Close())
}

// unseen is a host whose sessions do not say that they have seen a notice.
type unseen struct{}

func (unseen) Deliver(context.Context, bootnotice.Delivery) (bool, error) { return false, nil }

func (unseen) Undeliverable(context.Context, bootnotice.Notice) error { return nil }
