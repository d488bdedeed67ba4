package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/postgres"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// An operator's tool stops a session from any machine.
func Example() {
	ctx := context.Background()
	db, err := postgres.Open(ctx, postgres.Config{DSN: os.Getenv("DATABASE_URL")})
	var setting *postgres.SettingError
	if errors.As(err, &setting) {
		fmt.Println("ask whoever runs the database to turn it on:", setting.Name)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	abort := session.NewAbort(stamp.Wall(time.Now(), 0), "event-1", "the operator said stop")
	receipt, err := db.Sessions().Append(ctx, "s1", []session.Draft{abort})
	if errors.Is(err, session.ErrOutcomeUnknown) {
		receipt, err = db.Sessions().Append(ctx, "s1", []session.Draft{abort}) // its id makes that safe
	}
	if err == nil {
		err = receipt.Err()
	}
	fmt.Println(err)
}
