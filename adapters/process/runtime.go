package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// Program is what a recipe comes to when it starts an interpreter: Python, Node.js, Ruby, PHP or a JVM.
type Program struct {
	Runtime run.Runtime
	// Entry is the program that the command line names, a script's file filled in. A probe never runs it.
	Entry freshimport.Entry
}

// Runtime is the interpreter that a recipe starts, nil when the command starts none that is known. Call it at the run's boot: an
// update may change what the names lead to.
func Runtime(r run.Recipe) (*run.Runtime, error) {
	p, err := Resolve(r)
	if p == nil || err != nil {
		return nil, err
	}
	return &p.Runtime, nil
}

// Resolve is [Runtime] together with the program that the command line names. A command behind env(1) or another
// wrapper that [freshimport.Unwrap] knows and a script whose first line names an interpreter are followed; a shell or
// another wrapper is not, and has no runtime. An interpreter in a virtual environment is a symlink that must stay one: it
// is not resolved.
func Resolve(r run.Recipe) (*Program, error) {
	if len(r.Command) == 0 {
		return nil, nil
	}
	dir := r.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, fmt.Errorf("find the runtime of %s: %w", r.Command[0], err)
		}
	}
	prog, err := resolve(r.Command, dir, r.Env)
	if prog == nil && err == nil {
		prog, err = resolveScript(r.Command, dir, r.Env)
	}
	if err != nil {
		return nil, fmt.Errorf("find the runtime of %s: %w", r.Command[0], err)
	}
	return prog, nil
}

// resolveScript is resolve for a script that is started by its own path.
func resolveScript(argv []string, dir string, env []string) (*Program, error) {
	around, command, ok := freshimport.Unwrap(argv)
	if !ok {
		return nil, nil
	}
	env = around.Over(env)
	path, err := lookPath(command[0], dir, env)
	if err != nil {
		return nil, nil // it will not start, so it has no runtime either; the start says why
	}
	head, err := readHead(path)
	if err != nil {
		return nil, err
	}
	// The kernel gives the interpreter the path that the script was found by.
	if command, ok = freshimport.Shebang(head, path, command); !ok {
		return nil, nil
	}
	return resolve(command, dir, env)
}

// resolve reads a command line that names an interpreter, nil when it names none that is known.
func resolve(argv []string, dir string, env []string) (*Program, error) {
	if c, ok := freshimport.Parse(argv); ok {
		env = c.Over(env)
		interpreter, err := findInterpreter(c.Interpreter, dir, env, []string{"-E", "-S", "-c", "import sys; print(sys.executable)"})
		if err != nil {
			return nil, err
		}
		place := freshimport.Place{Dir: dir}
		if c.Entry.Kind == freshimport.Script {
			place.Script, place.ScriptIsTree = locate(dir, c.Entry.Name)
			c.Entry.File = place.Script
		}
		return program(freshimport.Name, c.Runtime(interpreter, env, place), c.Entry), nil
	}
	for _, d := range freshimport.Dialects() {
		c, ok := d.Parse(argv)
		if !ok {
			continue
		}
		env = c.Over(env)
		interpreter, err := findInterpreter(c.Interpreter, dir, env, d.Ask)
		if err != nil {
			return nil, err
		}
		if c.Entry.Kind == freshimport.Script {
			script := c.Entry.Name
			if d.Name == freshimport.Node.Name {
				if !filepath.IsAbs(script) {
					script = filepath.Join(dir, script)
				}
				script = nodeMain(script)
			}
			c.Entry.File, _ = locate(dir, script)
		}
		return program(d.Name, d.Runtime(c, interpreter, env, dir), c.Entry), nil
	}
	return nil, nil
}

func program(name string, rt freshimport.Runtime, e freshimport.Entry) *Program {
	return &Program{Runtime: run.Runtime{Name: name, Interpreter: rt.Interpreter, Args: rt.Args, Path: rt.Path}, Entry: e}
}

// findInterpreter is an interpreter's absolute path, also behind a version manager's script.
func findInterpreter(name, dir string, env, ask []string) (string, error) {
	found, err := lookPath(name, dir, env)
	if err != nil {
		return "", err
	}
	return throughShim(found, dir, env, ask)
}

// locate is a script's real path, as Python computes sys.path from it, and whether it is a folder or an archive.
func locate(dir, script string) (path string, tree bool) {
	if !filepath.IsAbs(script) {
		script = filepath.Join(dir, script)
	}
	if real, err := filepath.EvalSymlinks(script); err == nil {
		script = real
	}
	st, err := os.Stat(script)
	if err != nil {
		return script, false
	}
	if st.IsDir() {
		return script, true
	}
	return script, isArchive(script, st.Size())
}

// isArchive looks for the end record of a zip file without a comment, as zipapp writes it.
func isArchive(path string, size int64) bool {
	const record = 22
	if size < record {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var b [4]byte
	_, err = f.ReadAt(b[:], size-record)
	return err == nil && bytes.Equal(b[:], []byte("PK\x05\x06"))
}

// readHead is the first line of a file, or what the kernel reads of it.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrPermission) {
		return nil, nil // a program may be executed without being readable; a script may not
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	head := make([]byte, 256)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}

// shimWait bounds the question to a version manager's shim.
const shimWait = 10 * time.Second

// throughShim asks an interpreter that is a script (pyenv, asdf) which one it starts. What it answers depends on
// the folder and the environment, and a probe has neither.
func throughShim(interpreter, dir string, env, ask []string) (string, error) {
	head, err := readHead(interpreter)
	if err != nil || !bytes.HasPrefix(head, []byte("#!")) {
		return interpreter, err
	}
	if len(ask) == 0 {
		return "", fmt.Errorf("%s is a script that cannot be asked which interpreter it starts", interpreter)
	}
	ctx, cancel := context.WithTimeout(context.Background(), shimWait)
	defer cancel()
	cmd := exec.CommandContext(ctx, interpreter, ask...)
	cmd.Dir, cmd.Env = dir, env
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("ask %s which interpreter it starts: %w", interpreter, err)
	}
	found := strings.TrimSpace(string(out))
	if !filepath.IsAbs(found) {
		return "", fmt.Errorf("ask %s which interpreter it starts: it says %q: name the interpreter itself in the recipe",
			interpreter, found)
	}
	return found, nil
}
