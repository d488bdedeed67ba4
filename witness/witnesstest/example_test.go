package witnesstest_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/witness/witnesstest"
)

// An adapter's test calls Run; the promises can also be listed, or checked one by one.
func ExampleChecks() {
	for _, c := range witnesstest.Checks()[:3] {
		fmt.Println(c.Name)
	}
	// Output:
	// identity/names_itself
	// identity/same_tree_same_key
	// identity/change_changes_the_key
}
