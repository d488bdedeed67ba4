package ledger_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// A healer claims a lineage, begins its one launch, and the replacement passes the gate. A second process that was
// started under the same launch id is turned away.
func Example() {
	ctx := context.Background()
	home := memory.New(memory.Config{})
	store, self := home.Ledger(), home.Instances().Self()
	k := ledger.Key{Project: "shop", Lineage: "run-1"}

	rec, err := ledger.New(k, ledger.Change{Event: ledger.Claim, Now: stamp.Wall(time.Now(), 0), Actor: self})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("first claim: ", store.Create(ctx, rec))
	fmt.Println("second claim:", errors.Is(store.Create(ctx, rec), ledger.ErrExists))

	apply := func(c ledger.Change) error {
		_, err := store.Update(ctx, k, func(cur ledger.Record, now stamp.Time) (ledger.Record, error) {
			c.Now = now
			return ledger.Apply(cur, c)
		})
		return err
	}
	fmt.Println("begin:       ", apply(ledger.Change{
		Event: ledger.BeginLaunch, Actor: self, Launch: "launch-1", Episode: "9fd8a08", Evidence: "evidence/shop__run-1",
	}))
	first, second := home.Spawn(), home.Spawn()
	fmt.Println("first bind:  ", apply(ledger.Change{Event: ledger.Bind, Actor: first, Launch: "launch-1", Run: "run-2"}))
	fmt.Println("second bind: ", errors.Is(apply(ledger.Change{Event: ledger.Bind, Actor: second, Launch: "launch-1", Run: "run-3"}), ledger.ErrBound))
	fmt.Println("problems:    ", len(ledger.Check(store.List(ctx))))
	// Output:
	// first claim:  <nil>
	// second claim: true
	// begin:        <nil>
	// first bind:   <nil>
	// second bind:  true
	// problems:     0
}
