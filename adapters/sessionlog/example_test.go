package sessionlog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/adapters/sessionlog"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func Example() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	store, err := sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "sessions.log"), Holder: "the agent's host"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	receipt, err := store.Append(context.Background(), "s1", []session.Draft{session.Say(stamp.Time{}, "hello", []byte(`"hello"`))})
	fmt.Println(receipt.Outcomes[0].Seq, err)
	_, err = sessionlog.Open(sessionlog.Config{Path: filepath.Join(dir, "sessions.log")})
	fmt.Println(err != nil)
	// Output:
	// 1 <nil>
	// true
}
