package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The exit codes for what is not the program's doing, as shells and env(1) use them.
const (
	CodeInternal      = 125 // the starter's own failure
	CodeNotExecutable = 126
	CodeNotFound      = 127
)

// StartError means that a program could not be started; not a line of it has run.
type StartError struct {
	Command string
	// Code is the exit code a shell would give: 127 not found, 126 not executable, 125 anything else.
	Code int
	Err  error
}

func (e *StartError) Error() string { return fmt.Sprintf("start %s: %v", e.Command, e.Err) }

func (e *StartError) Unwrap() error { return e.Err }

var errNoCommand = errors.New("the command is empty: give a program to start")

// startError gives an error of the start its code.
func startError(command string, err error) *StartError {
	code := CodeInternal
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		code = CodeNotFound
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR),
		errors.Is(err, unix.ETXTBSY), errors.Is(err, unix.ELIBBAD):
		code = CodeNotExecutable
	}
	return &StartError{Command: command, Code: code, Err: err}
}

// defaultPath is searched when an environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// lookPath finds a command as execvp would with the given folder and environment, not the host's own. The result is
// absolute; symlinks in it are left alone.
func lookPath(command, dir string, env []string) (string, error) {
	if command == "" {
		return "", &StartError{Command: `""`, Code: CodeNotFound, Err: errNoCommand}
	}
	if strings.Contains(command, "/") {
		p := command
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		if err := executable(p); err != nil {
			return "", startError(command, err)
		}
		return filepath.Abs(p)
	}
	search, ok := getenv(env, "PATH")
	if !ok {
		search = defaultPath
	}
	var denied error
	for _, d := range strings.Split(search, ":") {
		if !filepath.IsAbs(d) {
			d = filepath.Join(dir, d) // also the empty entry, which means the folder itself
		}
		p := filepath.Join(d, command)
		err := executable(p)
		if err == nil {
			return filepath.Abs(p)
		}
		if errors.Is(err, fs.ErrPermission) && denied == nil {
			denied = err
		}
	}
	if denied != nil {
		return "", startError(command, denied)
	}
	return "", &StartError{Command: command, Code: CodeNotFound,
		Err: fmt.Errorf("no such program in PATH=%s: give its full path or fix PATH in the recipe", search)}
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() {
		return &fs.PathError{Op: "execute", Path: path, Err: unix.EISDIR}
	}
	if err := unix.Access(path, unix.X_OK); err != nil {
		return &fs.PathError{Op: "execute", Path: path, Err: err}
	}
	return nil
}

// checkDir tells a missing working folder from a missing program, which the kernel does not.
func checkDir(command, dir string) error {
	if dir == "" {
		return nil
	}
	st, err := os.Stat(dir)
	if err == nil && !st.IsDir() {
		err = &fs.PathError{Op: "enter", Path: dir, Err: unix.ENOTDIR}
	}
	if err != nil {
		return &StartError{Command: command, Code: CodeInternal, Err: fmt.Errorf("enter its folder: %w", err)}
	}
	return nil
}

// getenv is the last value of a key: of duplicates the last counts, as in os/exec.
func getenv(env []string, key string) (string, bool) {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], key+"="); ok {
			return v, true
		}
	}
	return "", false
}
