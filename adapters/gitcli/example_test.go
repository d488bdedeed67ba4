package gitcli_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/gitcli"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/witness"
)

func ExampleNew() {
	src, err := gitcli.New(gitcli.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	root := witness.Root{Root: classify.Root{Name: "acme", Dirs: []string{"/nowhere/acme"}, Modules: []string{"acme"}}, Kind: gitcli.Kind}
	id, err := src.Identify(context.Background(), root)
	fmt.Println(id.Known(), id.Unknown, err)
	// Output: false folder /nowhere/acme does not exist <nil>
}
