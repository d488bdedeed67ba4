package update_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/restart/update"
	"github.com/mulligan-dev/mulligan/witness"
)

// An update that the host makes itself: whoever dies meanwhile has a witness, and no healer looks at half a tree.
func ExampleUpdater_Do() {
	ctx := context.Background()
	home := memory.New(memory.Config{})
	code := trees{"acme": "v1"} // stands for a checkout
	u, err := update.New(update.Config{
		Journal: home.Updates(), Lock: home.Writer(), Instances: home.Instances(), Sources: map[string]witness.Source{"git": code},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	row, err := u.Do(ctx, []witness.Root{root("acme")}, "deploy v2", 0, func(context.Context) error {
		code["acme"] = "v2"
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: %s → %s\n", row.Status, row.Roots[0].From, row.Roots[0].To)
	// Output: updated: v1 → v2
}
