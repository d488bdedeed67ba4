package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger/doorbell"
)

func Example() {
	dir, err := os.MkdirTemp("", "mulligan")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	home, err := files.Open(files.Config{Dir: filepath.Join(dir, "state")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer home.Close()

	ctx := context.Background()
	fmt.Println(home.Doorbell().Ring(ctx, doorbell.Note{Run: "run-1", Text: doorbell.Text("ImportError")}))
	items, err := home.Doorbell().Pending(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, i := range items {
		fmt.Println(i.Note.Run, string(i.Note.Text), i.Err)
	}
	// Output:
	// <nil>
	// run-1 ImportError <nil>
}
