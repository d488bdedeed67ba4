package resumetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
	"github.com/mulligan-dev/mulligan/restart/sessions"
)

// How a started process learns what it is.
const (
	envRole = "MULLIGAN_RESUMETEST_ROLE"
	envStep = "MULLIGAN_RESUMETEST_STEP"
	envDir  = "MULLIGAN_RESUMETEST_DIR"
)

const (
	roleTurn    = "run a turn"
	roleBusy    = "run turns"
	roleResume  = "resume"
	roleResolve = "resolve and resume"
)

// The files of a case, beside what the store keeps.
const (
	ackFile    = "acknowledged" // a line for each event of which an append said that it is in the log
	effectFile = "effects"      // a line for each call that happened
	reportFile = "report.json"
)

// sessionsN is how many sessions a busy process works on.
const sessionsN = 3

func name(i int) string { return fmt.Sprint("session-", i) }

// report is what a process saw and did.
type report struct {
	Before, After map[string]session.Status
	Outcome       map[string]resume.Outcome
	// Missing are events that were acknowledged and are not there, Gaps sequences that are not what they should be.
	Missing, Gaps []string
	// Effects are the calls that have happened, as often as they did.
	Effects []string
}

func (r report) whole() error {
	if len(r.Missing)+len(r.Gaps) > 0 {
		return fmt.Errorf("broken promise: what was acknowledged is in the log: missing %v, gaps %v", r.Missing, r.Gaps)
	}
	return nil
}

func (r report) once() error {
	seen := map[string]bool{}
	for _, e := range r.Effects {
		if seen[e] {
			return fmt.Errorf("broken promise: no call that changes something runs twice: %v", r.Effects)
		}
		seen[e] = true
	}
	return nil
}

// become makes this process what it was started as, and reports whether it was started as anything: then the test that
// it arrived in is over.
func become(t *testing.T, open Opener) bool {
	t.Helper()
	role := os.Getenv(envRole)
	if role == "" {
		return false
	}
	c := &child{dir: os.Getenv(envDir), step: os.Getenv(envStep)}
	if err := c.live(role, open); err != nil {
		t.Error(err)
	}
	return true
}

// child is a process of the suite.
type child struct {
	dir, step string
	service   *sessions.Service
}

func (c *child) live(role string, open Opener) (err error) {
	ctx := context.Background()
	p, err := open(c.dir)
	if err != nil {
		return err
	}
	if c.service, err = sessions.New(sessions.Config{Store: p.Store, Instances: p.Instances}); err != nil {
		return err
	}
	switch role {
	case roleTurn:
		err = c.turn(ctx, name(0))
	case roleBusy:
		for i := 0; err == nil; i++ {
			err = c.turn(ctx, name(i%sessionsN))
		}
	case roleResume:
		err = c.resume(ctx, false)
	case roleResolve:
		err = c.resume(ctx, true)
	}
	return errors.Join(err, c.service.Close(), p.Close())
}

// at kills this process when it is at its step: as kill -9 does, with nothing said to anybody.
func (c *child) at(step string) {
	if c.step != step {
		return
	}
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until it arrives
}

func killed(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && !exit.Exited()
}

// line appends to a file of the case. It is one write, which a killed process has done or not.
func (c *child) line(file, text string) error {
	f, err := os.OpenFile(filepath.Join(c.dir, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text + "\n")
	return errors.Join(err, f.Close())
}

// lines are those of a file that are complete.
func lines(path string) []string {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil // nothing was written yet
	}
	all := strings.Split(string(b), "\n")
	return all[:len(all)-1]
}

// turn takes a session, runs one turn, and gives the session back.
func (c *child) turn(ctx context.Context, name string) error {
	h, err := c.service.Open(ctx, name)
	if err != nil {
		return err
	}
	c.at("the session is taken")
	turn, err := h.Begin(ctx, sessions.Start{})
	if err != nil {
		return err
	}
	if err := c.agent(ctx, turn); err != nil {
		return err
	}
	return h.Close(ctx)
}

// acknowledging notes every event of which it was said that it is in the log.
type acknowledging struct {
	*sessions.Turn
	c *child
}

func (a acknowledging) Append(ctx context.Context, batch ...session.Draft) (session.Receipt, error) {
	r, err := a.Turn.Append(ctx, batch...)
	if err != nil {
		return r, err
	}
	for _, d := range batch {
		if err := a.c.line(ackFile, a.Session()+" "+d.ID); err != nil {
			return r, err
		}
	}
	return r, nil
}

// agent is a turn: the model speaks, there are four calls, and the model is done.
func (c *child) agent(ctx context.Context, turn *sessions.Turn) error {
	if err := c.line(ackFile, turn.Session()+" begin/"+turn.ID()); err != nil {
		return err
	}
	c.at("the turn has begun")
	if c.step == "the turn is marked" {
		if err := c.service.Mark(ctx, turn.Session(), turn.ID(), "drain"); err != nil {
			return err
		}
		c.at("the turn is marked")
	}
	t := acknowledging{turn, c}
	speak := func(id string, calls ...string) error {
		_, err := t.Append(ctx, session.Reply(c.service.Now(), id+"/"+turn.ID(), session.ModelTurn{Calls: calls}))
		return err
	}
	if err := speak("plan", "read-1", "write-1", "read-2", "write-2"); err != nil {
		return err
	}
	c.at("the model has spoken")
	guard, err := effect.New(effect.Config{Turn: t, Tools: effect.Tools{"read": session.ReadOnly}, Now: c.service.Now})
	if err != nil {
		return err
	}
	for _, n := range []string{"1", "2"} {
		if err := errors.Join(c.read(ctx, guard, n), c.write(ctx, guard, turn, n)); err != nil {
			return err
		}
	}
	if err := speak("done"); err != nil {
		return err
	}
	c.at("the model has finished")
	if err := turn.End(ctx, session.TurnEnded{End: session.EndDone}); err != nil {
		return err
	}
	c.at("the turn has ended")
	return c.line(ackFile, turn.Session()+" end/"+turn.ID())
}

func (c *child) read(ctx context.Context, guard *effect.Guard, n string) error {
	_, err := guard.Do(ctx, effect.Call{ID: "read-" + n, Tool: "read"}, func(context.Context) (effect.Result, error) {
		c.at("read " + n + " is under way")
		return effect.Result{}, nil
	})
	c.at("read " + n + " is done")
	return err
}

func (c *child) write(ctx context.Context, guard *effect.Guard, turn *sessions.Turn, n string) error {
	ticket, err := guard.Begin(ctx, effect.Call{ID: "write-" + n, Tool: "write"})
	if err != nil || ticket.Done {
		return err
	}
	c.at("write " + n + " is intended")
	if err := c.line(effectFile, effectOf(turn.Session(), turn.Invocation(), n)); err != nil {
		return err
	}
	c.at("write " + n + " has happened")
	if err := guard.Complete(ctx, ticket, effect.Result{Value: json.RawMessage(`true`)}); err != nil {
		return err
	}
	c.at("write " + n + " is completed")
	return nil
}

func effectOf(name, invocation, n string) string { return name + " " + invocation + " write-" + n }

// Workload implements resume.Resumer.
func (c *child) Workload(session.Status) (string, string) { return "agent", "" }

// Resume implements resume.Resumer.
func (c *child) Resume(ctx context.Context, turn *sessions.Turn) error {
	return c.agent(context.WithoutCancel(ctx), turn)
}

// resume looks at everything, has a person decide first if there is one, makes a pass, and looks again.
func (c *child) resume(ctx context.Context, person bool) error {
	r := report{Outcome: map[string]resume.Outcome{}}
	var err error
	if r.Before, err = c.look(ctx, &r); err != nil {
		return err
	}
	if person {
		if err := c.resolve(ctx, r.Before); err != nil {
			return err
		}
	}
	runner, err := resume.New(resume.Config{Sessions: c.service, Resumer: c})
	if err != nil {
		return err
	}
	dry, err := runner.DryRun(ctx)
	if err != nil {
		return err
	}
	items, err := runner.Pass(ctx)
	if err != nil {
		return err
	}
	for i, item := range items {
		// Only a turn that fails is more than a dry run can know.
		if item.Outcome != dry[i].Outcome && item.Outcome != resume.Failed {
			return fmt.Errorf("session %s: the dry run said %s (%s), and the pass %s (%s)", item.Session, dry[i].Outcome, dry[i].Text,
				item.Outcome, item.Text)
		}
		r.Outcome[item.Session] = item.Outcome
	}
	if r.After, err = c.look(ctx, &r); err != nil {
		return err
	}
	r.Effects = lines(filepath.Join(c.dir, effectFile))
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.dir, reportFile), b, 0o600)
}

// resolve is the person: who knows what happened says so.
func (c *child) resolve(ctx context.Context, all map[string]session.Status) error {
	happened := lines(filepath.Join(c.dir, effectFile))
	for name, st := range all {
		if err := c.doubt(ctx, name, st); err != nil {
			return err
		}
		for _, d := range st.Head.Calls {
			e, _, err := c.service.Store.Find(ctx, name, d.ID)
			var call session.Call
			if err = errors.Join(err, e.Into(&call)); err != nil {
				return err
			}
			did := session.DidNotHappen
			if slices.Contains(happened, effectOf(name, call.Invocation, strings.TrimPrefix(call.Call, "write-"))) {
				did = session.Happened
			}
			if err := c.service.Resolve(ctx, name, d.Seq, session.Resolve{Outcome: did, By: "ada"}); err != nil {
				return err
			}
		}
	}
	return nil
}

// doubt is a turn that somebody runs by hand in spite of the doubt: it may read, and changes nothing.
func (c *child) doubt(ctx context.Context, name string, st session.Status) error {
	if !st.Ambiguous {
		return nil
	}
	h, err := c.service.Open(ctx, name)
	if err != nil {
		return err
	}
	turn, err := h.Begin(ctx, sessions.Start{})
	if err != nil {
		return err
	}
	guard, err := effect.New(effect.Config{Turn: turn, Tools: effect.Tools{"read": session.ReadOnly}, Now: c.service.Now})
	if err != nil {
		return err
	}
	nothing := func(context.Context) (effect.Result, error) { return effect.Result{}, nil }
	if _, err := guard.Do(ctx, effect.Call{ID: "look", Tool: "read"}, nothing); err != nil {
		return err
	}
	if _, err := guard.Do(ctx, effect.Call{ID: "change", Tool: "write"}, nothing); session.CodeOf(err) != session.ErrAmbiguous {
		return fmt.Errorf("broken promise: while an effect is unknown nothing is changed: a call was answered by %v", err)
	}
	if err := turn.End(ctx, session.TurnEnded{End: session.EndFailed, Why: "there is a doubt"}); err != nil {
		return err
	}
	return h.Close(ctx)
}

// look reads every log, holds it against what was acknowledged, and returns the states.
func (c *child) look(ctx context.Context, r *report) (map[string]session.Status, error) {
	found := map[string]bool{}
	states := map[string]session.Status{}
	for i := range sessionsN {
		n := name(i)
		var after uint64
		for {
			page, err := c.service.Store.Read(ctx, n, after, 0)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, e := range page {
				if e.Seq != after+1 {
					r.Gaps = append(r.Gaps, fmt.Sprint(n, " ", after, " is followed by ", e.Seq))
				}
				after = e.Seq
				found[n+" "+e.ID] = true
			}
		}
		if after == 0 {
			continue // it was not used
		}
		st, err := c.service.Status(ctx, n)
		if err != nil {
			return nil, err
		}
		states[n] = st
	}
	for _, id := range lines(filepath.Join(c.dir, ackFile)) {
		if !found[id] {
			r.Missing = append(r.Missing, id)
		}
	}
	return states, nil
}
