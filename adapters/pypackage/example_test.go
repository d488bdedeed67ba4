package pypackage_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/pypackage"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
)

func ExampleNew() {
	src, err := pypackage.New(pypackage.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{
		Root: classify.Root{Name: "wire", Dirs: []string{"/nowhere/site-packages"}, Modules: []string{"acme_wire"}},
		Kind: pypackage.Kind, Package: "acme-wire",
	}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false folder /nowhere/site-packages does not exist <nil>
}
