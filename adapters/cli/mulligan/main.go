// Command mulligan gives a run that a code update broke its one free do-over, and shows every other failure with its
// reason. `mulligan --help` lists the commands; package cli says what the exit codes mean.
package main

import (
	"context"
	"os"

	"github.com/mulligan-dev/mulligan/adapters/cli"
)

func main() {
	err := cli.New(cli.Env{}).ExecuteContext(context.Background())
	os.Exit(cli.ExitCode(err))
}
