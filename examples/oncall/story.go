package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// patience bounds every wait of the story.
const patience = time.Minute

// teller starts the parts of the story as processes of their own.
type teller struct {
	ctx context.Context
	exe string
	dir string
}

func story(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "oncall")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	t := &teller{ctx: ctx, exe: exe, dir: dir}
	if err := t.parked(); err != nil {
		return fmt.Errorf("the story of the parked session: %w", err)
	}
	if err := t.torn(); err != nil {
		return fmt.Errorf("the story of the crash in an effect: %w", err)
	}
	return nil
}

// parked is the first half: a question outlives the process that asked it.
func (t *teller) parked() error {
	say("== A question outlives the process that asked it")
	if err := t.run(0, "inject", "incident-1", "p99 of web is 4 s"); err != nil {
		return err
	}
	host, err := t.host()
	if err != nil {
		return err
	}
	defer host.kill()
	if err := host.until("incident-1: asks"); err != nil {
		return err
	}
	say("kill -9 host")
	host.kill()
	if err := t.run(0, "sessions", "show", "incident-1"); err != nil {
		return err
	}
	say("The host is started again. It takes nothing up: the session waits for a person.")
	if host, err = t.host(); err != nil {
		return err
	}
	defer host.kill()
	if err := host.until("host: ready"); err != nil {
		return err
	}
	if err := t.run(0, "sessions", "answer", "incident-1", approval, "--text", "yes"); err != nil {
		return err
	}
	if err := host.until("incident-1: done"); err != nil {
		return err
	}
	host.kill()
	return t.scaled(1)
}

// torn is the second half: the process dies when the effect has happened and the log does not know it.
func (t *teller) torn() error {
	say("\n== A crash between an effect and its completion")
	if err := t.run(0, "inject", "incident-2", "p99 of web is 5 s"); err != nil {
		return err
	}
	host, err := t.host("ONCALL_DIES=1")
	if err != nil {
		return err
	}
	defer host.kill()
	if err := host.until("incident-2: asks"); err != nil {
		return err
	}
	if err := t.run(0, "sessions", "answer", "incident-2", approval, "--text", "yes"); err != nil {
		return err
	}
	if err := host.gone(); err != nil {
		return err
	}
	if err := t.scaled(2); err != nil {
		return err
	}
	say("The host is started again. Nobody knows whether the call happened, so auto-resume leaves the session alone.")
	if host, err = t.host(); err != nil {
		return err
	}
	defer host.kill()
	if err := host.until("incident-2: auto-resume: skipped_ambiguous"); err != nil {
		return err
	}
	host.kill()
	say("Resumed by hand all the same, the session may look, and not change anything.")
	if err := t.run(4, "sessions", "resume", "incident-2"); err != nil {
		return err
	}
	if err := t.run(0, "sessions", "show", "incident-2"); err != nil {
		return err
	}
	seq, err := t.unresolved("incident-2")
	if err != nil {
		return err
	}
	say("The operator looks at the deployment, sees that it happened, and says so.")
	if err := t.run(0, "sessions", "resolve", "incident-2", seq, "happened", "--value", `{"replicas":6}`); err != nil {
		return err
	}
	if err := t.run(0, "sessions", "resume", "incident-2"); err != nil {
		return err
	}
	if err := t.run(0, "sessions", "list"); err != nil {
		return err
	}
	return t.scaled(2)
}

// scaled says how often the deployment was scaled: once for each incident.
func (t *teller) scaled(want int) error {
	lines, err := newAgent(t.dir, io.Discard).scalings()
	if err != nil {
		return err
	}
	say("Incidents: %d. Scalings of the deployment: %d.", want, len(lines))
	if len(lines) != want {
		return errors.New("that is wrong")
	}
	return nil
}

func (t *teller) command(args ...string) *exec.Cmd {
	c := exec.CommandContext(t.ctx, t.exe, args...)
	c.Env = append(os.Environ(), "ONCALL_DIR="+t.dir, "ONCALL_DIES=", "USER=operator")
	return c
}

// run runs one part to its end, and shows it.
func (t *teller) run(want int, args ...string) error {
	say("$ oncall %s", shown(args))
	var out bytes.Buffer
	c := t.command(args...)
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	for line := range strings.Lines(out.String()) {
		say("  %s", line)
	}
	if code := c.ProcessState.ExitCode(); code != want {
		return fmt.Errorf("oncall %s: exit code %d, want %d: %w", shown(args), code, want, err)
	}
	return nil
}

func shown(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsAny(a, " {}") {
			out[i] = "'" + a + "'"
		}
	}
	return strings.Join(out, " ")
}

// unresolved is the sequence of the call of which nobody knows.
func (t *teller) unresolved(name string) (string, error) {
	out, err := t.command("sessions", "show", name, "-j").Output()
	if err != nil {
		return "", err
	}
	var view struct {
		Calls []struct {
			Seq uint64 `json:"seq"`
		} `json:"calls"`
	}
	if err := json.Unmarshal(out, &view); err != nil {
		return "", err
	}
	if len(view.Calls) != 1 {
		return "", fmt.Errorf("session %s has %d unresolved calls, want 1", name, len(view.Calls))
	}
	return strconv.FormatUint(view.Calls[0].Seq, 10), nil
}

// process is a host that runs beside the story.
type process struct {
	cmd   *exec.Cmd
	lines chan string
}

func (t *teller) host(env ...string) (*process, error) {
	say("$ oncall host &")
	c := t.command("host")
	c.Env = append(c.Env, env...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: c, lines: make(chan string)}
	go p.read(out)
	return p, nil
}

func (p *process) read(out io.Reader) {
	defer close(p.lines)
	for s := bufio.NewScanner(out); s.Scan(); {
		p.lines <- s.Text()
	}
}

// until shows what the host says, up to a line that holds a text.
func (p *process) until(text string) error {
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				return fmt.Errorf("the host has ended before it said %q", text)
			}
			say("  %s", line)
			if strings.Contains(line, text) {
				return nil
			}
		case <-timeout:
			return fmt.Errorf("the host has not said %q in %v", text, patience)
		}
	}
}

// gone shows what the host says up to its death, which must be by kill -9.
func (p *process) gone() error {
	timeout := time.After(patience)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				err := p.cmd.Wait()
				if p.cmd.ProcessState.String() != "signal: killed" {
					return fmt.Errorf("the host has not been killed: %s, %w", p.cmd.ProcessState, err)
				}
				return nil
			}
			say("  %s", line)
		case <-timeout:
			return fmt.Errorf("the host has not died in %v", patience)
		}
	}
}

// kill ends the host without giving it a chance to say so anywhere.
func (p *process) kill() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill() // a process that has ended already is as good
	for range p.lines {
		// what it said after the line that the story waited for
	}
	_ = p.cmd.Wait() // it was killed, and says so
}
