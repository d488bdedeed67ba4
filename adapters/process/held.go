package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// ErrHeldGone means that a held child ended before it was released; its program never ran.
var ErrHeldGone = errors.New("the held child is gone, its program did not run")

// errSettled is a second decision about a held child.
var errSettled = errors.New("it was released or abandoned before")

// HeldChild is a process that waits, with the pid its program will have, until it is released. Exactly one of Release
// and Abandon settles it. When the host dies, or drops the handle, before that, the child ends and its program has not
// run a line.
type HeldChild struct {
	*Child
	command string

	mu   sync.Mutex
	gate *os.File // nil once settled
}

// StartHeld starts a child that is held on a pipe. A shell waits on the pipe and then becomes the program, which keeps
// the pid; the host is not executed again. The program gets exactly Env: what a shell would add or change is put right
// before it starts.
//
// Variables whose names a shell cannot hold (they are rare: exported shell functions, npm settings) pass through the
// arguments of env(1) for the instant before the program starts.
func StartHeld(s Spec) (*HeldChild, error) {
	path, err := s.resolve()
	if err != nil {
		return nil, err
	}
	command := s.Command
	if strings.HasPrefix(command[0], "-") {
		command = append([]string{path}, command[1:]...) // some shells would take it for an option of exec
	}
	argv, env, err := trampoline(command, dedupe(s.Env))
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, startError(s.Command[0], err)
	}
	defer r.Close()
	c, err := s.launch(shell, argv, env, r)
	if err != nil {
		w.Close()
		return nil, err
	}
	return &HeldChild{Child: c, command: s.Command[0], gate: w}, nil
}

// Release lets the program start. It returns [ErrHeldGone] when the child has ended while it was held.
func (h *HeldChild) Release() error {
	gate, err := h.settle("release")
	if err != nil {
		return err
	}
	defer gate.Close()
	select {
	case <-h.Done():
		return fmt.Errorf("release %s: %w", h.command, ErrHeldGone)
	default:
	}
	if _, err := gate.WriteString(goWord + "\n"); err != nil {
		return fmt.Errorf("release %s: %w: %w", h.command, ErrHeldGone, err)
	}
	return nil
}

// Abandon ends the child without running its program, and returns when it is gone. After Release it is an error and
// does nothing: a program that may have begun is not this handle's to end.
func (h *HeldChild) Abandon() error {
	gate, err := h.settle("abandon")
	if err != nil {
		return err
	}
	gate.Close()
	// The shell reads the end of the file and exits. It runs nothing that could keep it, unless it was stopped by
	// somebody; so it is also killed; the handle of
	// os.Process never reaches another process of that pid.
	_ = h.proc.Kill()
	<-h.Done()
	return nil
}

func (h *HeldChild) settle(doing string) (*os.File, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.gate == nil {
		return nil, fmt.Errorf("%s %s: %w", doing, h.command, errSettled)
	}
	gate := h.gate
	h.gate = nil
	return gate, nil
}

const (
	shell  = "/bin/sh"
	goWord = "go"
	envBin = "/usr/bin/env"
	// own begins every shell variable of the trampoline; none of them reaches the program.
	own = "_mulligan_"
)

// trampoline is the shell's command line and environment for a held program.
//
// Shells change the environment on the way: dash sets PWD and resets IFS, OPTIND and PPID, bash adds SHLVL and _, and
// every shell drops or rejects names that are no identifiers. Such variables travel under a name of our own. PWD is put
// right by the shell itself, because nearly every environment has it; for the rest, and under bash, env(1) does it.
func trampoline(command, env []string) (argv, shellEnv []string, err error) {
	var carried []string
	needEnv := false
	pwd := "unset PWD"
	for _, kv := range env {
		key, _, ok := cut(kv)
		switch {
		case !ok:
			continue // not a variable; no exec function would show it to a program
		case key == "PWD":
			pwd = `PWD="${` + own + strconv.Itoa(len(carried)) + `#PWD=}"; export PWD`
		case key == "SHLVL" || key == "_" || key == "OLDPWD":
			// Only bash changes these, and there env(1) puts them right.
			shellEnv = append(shellEnv, kv)
		case shellOwned(key):
			needEnv = true
		default:
			shellEnv = append(shellEnv, kv)
			continue
		}
		shellEnv = append(shellEnv, own+strconv.Itoa(len(carried))+"="+kv)
		carried = append(carried, kv)
	}
	if strings.Contains(command[0], "=") && needEnv {
		return nil, nil, &StartError{Command: command[0], Code: CodeInternal, Err: errors.New(
			"a program with '=' in its path cannot be held together with variables that a shell cannot carry: " +
				"link it to another name")}
	}

	var b strings.Builder
	b.WriteString("IFS= read -r " + own + "go <&3 && [ \"$" + own + "go\" = " + goWord + " ] || exit 125\nexec 3<&-\n")
	viaEnv := "set --"
	for i := range carried {
		viaEnv += ` "$` + own + strconv.Itoa(i) + `"`
	}
	viaEnv += ` "$@"`
	drop := ":"
	for i := range carried {
		drop += "; unset " + own + strconv.Itoa(i)
	}
	execEnv := "exec " + envBin + ` -u PWD -u OLDPWD -u SHLVL -u _ "$@"`
	switch {
	case needEnv:
		b.WriteString(viaEnv + "\n" + drop + "\n" + execEnv + "\n")
	default:
		if !strings.Contains(command[0], "=") {
			b.WriteString("if [ \"${BASH_VERSION:-}\" ]; then\n" + viaEnv + "\n" + drop + "\n" + execEnv + "\nfi\n")
		}
		b.WriteString(pwd + "\n" + drop + "\nexec \"$@\"\n")
	}
	return append([]string{"sh", "-c", b.String(), "sh"}, command...), shellEnv, nil
}

// shellOwned reports whether some shell drops the variable or gives it a value of its own.
func shellOwned(key string) bool {
	for i, r := range key {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return true
		}
	}
	switch key {
	case "", "IFS", "OPTIND", "OPTARG", "PPID", "LINENO", "UID", "EUID", "GROUPS", "RANDOM", "SRANDOM", "SECONDS",
		"EPOCHSECONDS", "EPOCHREALTIME", "HISTCMD", "DIRSTACK", "FUNCNAME", "PIPESTATUS", "SHELLOPTS", "POSIXLY_CORRECT",
		"MAILCHECK", "PS1", "PS2", "PS4":
		return true
	}
	return strings.HasPrefix(key, "BASH") || strings.HasPrefix(key, own)
}

// cut splits "KEY=value".
func cut(kv string) (key, value string, ok bool) { return strings.Cut(kv, "=") }
