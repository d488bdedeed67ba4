package boot_test

import (
	"context"
	"fmt"
	"os"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
	"github.com/mulligan-dev/mulligan/restart/boot"
)

// host is a host that prints what its sessions are told.
type host struct{}

func (host) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	fmt.Println("to", d.Session, "by", d.Way)
	return true, nil // it stands where it cannot be lost
}

func (host) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	fmt.Println("given up:", n.ID)
	return nil
}

// Two lives of a service: the first ends in the middle of a turn.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "boot")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	life := func(id string, work func(*boot.Keeper)) {
		keeper, err := boot.New(context.Background(), boot.Config{
			Dir: dir, Instance: ledger.Instance{ID: id}, Deliver: host{}, Startup: []string{"main", "s1"},
			Notice: bootnotice.Config{Wait: -1},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(id, keeper.Boot().Kind)
		work(keeper)
		fmt.Println(keeper.Close())
	}
	life("i1", func(k *boot.Keeper) {
		_, err := k.Busy("s1") // and it never becomes idle
		fmt.Println(err)
	})
	life("i2", func(k *boot.Keeper) { fmt.Println(k.Run(context.Background())) })
	// Output:
	// i1 first_boot
	// <nil>
	// <nil>
	// i2 process_restart
	// to s1 by wake
	// <nil>
	// <nil>
}

// A command line looks at the notices beside the living service.
func ExampleOpenOutbox() {
	dir, err := os.MkdirTemp("", "boot")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	outbox, err := boot.OpenOutbox(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer outbox.Close()
	notices, err := outbox.List(context.Background())
	fmt.Println(len(notices), err)
	fmt.Println(outbox.Ack(context.Background(), "rn-0", "ada"))
	// Output:
	// 0 <nil>
	// acknowledge rn-0: there is no such notice
}
