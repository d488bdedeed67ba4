package cli_test

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mulligan-dev/mulligan/adapters/cli"
)

// A host mounts the tree under its own root, under a name of its choice, and exits with the code of the error.
func ExampleNew() {
	home, err := os.MkdirTemp("", "acme")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)

	root := &cobra.Command{Use: "acme"}
	heal := cli.New(cli.Env{Stdout: os.Stdout, Stderr: os.Stderr, Environ: []string{"MULLIGAN_HOME=" + home}})
	heal.Use = "heal"
	root.AddCommand(heal)

	root.SetArgs([]string{"heal", "list"})
	fmt.Println("exit code", cli.ExitCode(root.Execute()))
	// Output:
	// Nothing has needed a do-over.
	// exit code 0
}

// Every failure of the tree carries the exit code that the command line would end with.
func ExampleExitCode() {
	c := cli.New(cli.Env{Stderr: os.Stdout, Environ: []string{"MULLIGAN_HOME=relative"}})
	c.SetArgs([]string{"list"})
	fmt.Println("exit code", cli.ExitCode(c.Execute()))
	// Output:
	// mulligan list: $MULLIGAN_HOME is "relative", want an absolute path
	// exit code 2
}
