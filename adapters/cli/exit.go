package cli

import (
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/adapters/process"
)

// The exit codes of every command but exec and swap, whose codes are those of the program that they run.
const (
	CodeDone     = 0
	CodeFailed   = 1 // a target ended in an error, or the command could not be carried out
	CodeUsage    = 2 // wrong arguments or config
	CodeDisabled = 3 // disabled or paused: nothing was decided
)

// The exit codes that only the commands about sessions have.
const (
	CodeRefused  = 4 // the log refuses it; the JSON has its code as "reason"
	CodeNoHost   = 5 // nothing here can run a turn: *NoHostError
	CodeReadOnly = 6 // only the host writes this store: *ReadOnlyError
)

// ExitError is how every command of this package ends badly. Its message, if it has one, was printed when the command
// returned: a caller only has to exit with Code.
type ExitError struct {
	Code int
	// Err is what went wrong; nil where the output says it all, as for the exit code of a program that was run.
	Err error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// ExitCode is the exit code for what executing the command tree returned.
func ExitCode(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return CodeDone
	case errors.As(err, &exit):
		return exit.Code
	}
	return CodeUsage // all that a command tree finds by itself is in the arguments
}

// usage is an error in the arguments or the config: nothing was done.
func usage(format string, args ...any) error {
	return &ExitError{Code: CodeUsage, Err: fmt.Errorf(format, args...)}
}

// silent ends a command whose output says already how it went.
func silent(code int) error {
	if code == CodeDone {
		return nil
	}
	return &ExitError{Code: code}
}

// ownFailure gives an error of exec or swap itself the code that env(1) and shells use.
func ownFailure(err error) error {
	if err == nil {
		return nil
	}
	code := process.CodeInternal
	var start *process.StartError
	if errors.As(err, &start) {
		code = start.Code
	}
	return &ExitError{Code: code, Err: err}
}
