package memory_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger/run"
)

func ExampleNew() {
	ctx := context.Background()
	home := memory.New(memory.Config{})
	r := run.Run{ID: "r1", Project: "shop", Name: "agent", Lineage: "r1", Instance: home.Instances().Self()}
	fmt.Println(home.Runs().Start(ctx, r, func(*run.Run) error { return nil }))
	holder, err := home.Runs().Holder(ctx, "shop", "agent")
	fmt.Println(holder.ID, err)
	// Output:
	// <nil>
	// r1 <nil>
}
