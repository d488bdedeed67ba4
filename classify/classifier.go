package classify

import (
	"errors"
	"fmt"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// TailLimit is how much of a failure text is read, from its end. What ended a process stands there, and the cost of a
// verdict must not depend on how much a run has printed.
const TailLimit = 64 << 10

// Config configures a [Classifier].
type Config struct {
	// Runtimes read failure texts. At least one is needed. Where several find a failure, the one that was printed last
	// counts.
	Runtimes []Runtime
}

// Classifier judges failure texts. It holds no state: it may be used from several goroutines at once if its runtimes
// may.
type Classifier struct {
	runtimes []Runtime
	ears     *ears
}

// New returns a classifier. It reports everything that is wrong with the config in one error.
func New(cfg Config) (*Classifier, error) {
	var bad []error
	if len(cfg.Runtimes) == 0 {
		bad = append(bad, errors.New("no runtime: at least one is needed"))
	}
	seen := map[string]int{}
	for i, r := range cfg.Runtimes {
		if r == nil {
			bad = append(bad, fmt.Errorf("runtime %d is nil", i))
			continue
		}
		name := r.Name()
		if name == "" {
			bad = append(bad, fmt.Errorf("runtime %d has no name", i))
			continue
		}
		if first, ok := seen[name]; ok {
			bad = append(bad, fmt.Errorf("runtimes %d and %d are both named %q", first, i, name))
			continue
		}
		seen[name] = i
	}
	if len(bad) > 0 {
		return nil, fmt.Errorf("new classifier: %w", errors.Join(bad...))
	}
	c := &Classifier{runtimes: append([]Runtime(nil), cfg.Runtimes...)}
	var err error
	if c.ears, err = newEars(c.runtimes); err != nil {
		return nil, fmt.Errorf("new classifier: %w", err)
	}
	return c, nil
}

// Classify judges one death. It never fails: what it cannot read is [Unknown] with a reason.
func (c *Classifier) Classify(in Input) Verdict {
	var t course
	return c.judged(in, &t)
}

// course is what happened on the way to a verdict.
type course struct {
	log *text.Log
	// failure is the one that was looked at, and by the runtime that found it.
	failure *Failure
	by      Runtime
	asked   uint64
	// left are those of them that were not asked, since no failure could be nearer to the death.
	left uint64
	// decided is how the verdict came about; from and to are the lines of the log that hold what decided, to behind the last.
	decided  Decision
	from, to int
}

// settle notes what decided.
func (t *course) settle(d Decision, from, to int) { t.decided, t.from, t.to = d, from, to }

// judged is Classify with its course.
func (c *Classifier) judged(in Input, t *course) Verdict {
	v := c.classify(in, t)
	if v.ManagedModules == nil {
		v.ManagedModules = []string{}
	}
	if v.Family == "" {
		v.Family = NoFamily
	}
	if v.Disposition == Never && refused(v.Reason) && t.to > t.from {
		f := t.failure
		if t.decided != ByFailure {
			f = nil
		}
		c.askRest(t)
		v.Refusal = refusalOf(t.log, f, t.from, t.to-1)
	}
	return v
}

// classify asks, in this order: the host's typed cause, an exit status that only something outside can cause, the last
// failure in the text unless the text goes on behind it, the run's last statement. The first that answers decides.
func (c *Classifier) classify(in Input, t *course) Verdict {
	if in.Cause != "" {
		t.settle(ByCause, 0, 0)
		return typedCause(in.Cause)
	}
	tail := in.Text[max(0, len(in.Text)-TailLimit):]
	seen, quiet := c.nearest(tail)
	if !seen.serves(in.Exit) {
		seen = c.look(in, tail, quiet)
	}
	if seen.log == nil {
		return Verdict{Disposition: Unknown, Reason: NoUpdateSignature}
	}
	log, f, rt := seen.log, seen.f, seen.by
	t.log, t.failure, t.by, t.asked, t.left = log, f, rt, seen.asked, seen.left
	if byStatus(in.Exit) {
		c.askRest(t)
	}
	if v, ok := exitVerdict(in.Exit, log, f); ok {
		t.settle(ByExit, 0, 0)
		return v
	}
	s := newScope(in, rt)
	if f != nil && f.Listed == "" && quoted(log, f) {
		f.Survived = true
	}
	if f == nil || f.Survived {
		if f != nil {
			log.Ignore(f.First, f.Last+1)
		}
		return c.terminal(in, t, s, f != nil)
	}
	switch fate, r, line := c.after(log, f.Last+1, f.Fatal); fate {
	case endedOtherwise:
		t.settle(ByStatement, line, line+1)
		return Verdict{Disposition: Never, Family: NoFamily, Reason: r, Exception: f.Type}
	case wentOn:
		log.Ignore(f.First, f.Last+1)
		v := c.terminal(in, t, s, true)
		v.Exception = f.Type
		return v
	}
	t.settle(ByFailure, f.First, f.Last+1)
	// Only lines in front of the failure count: what was full before could tear a file, what fills up later could not.
	j := &judge{scope: s, log: &evidence{before: log.Lines[:min(max(f.First, 0), len(log.Lines))]}}
	v := j.decide(f, true, 0)
	if v.Disposition == Skew && f.Line < f.Last {
		// The lines taken for the rest of the message may be what the run said after it.
		switch fate, r, line := c.after(log, f.Line+1, f.Fatal); fate {
		case endedOtherwise:
			t.settle(ByStatement, line, line+1)
			return never(v, r)
		case wentOn:
			return unknown(v, v.Family, SurvivedFailure)
		}
	}
	v.Runtime = rt.Name()
	return v
}

// look reads as much of a tail as is needed, and nothing where its words say that there is no failure in it and no statement;
// then there is no log.
func (c *Classifier) look(in Input, tail []byte, quiet int) sighting {
	heard := c.listen(tail, quiet)
	if s := c.near(tail, heard.asked); s.serves(in.Exit) {
		return s
	}
	if len(tail) > nearBytes {
		c.further(&heard, before(tail))
	}
	limit := TailLimit
	if heard.asked == 0 {
		if !heard.stated && c.quiet(in, tail) {
			return sighting{}
		}
		limit = statementBytes // no failure is in it, so only the last statement counts
	}
	s := sighting{log: text.Read(in.Text, limit), asked: heard.asked}
	s.f, s.by, s.left = c.parse(s.log, heard.asked)
	return s
}

// statementBytes holds the run's last statement, with room for the dress.
const statementBytes = 8 << 10

// parse asks the runtimes of a mask and keeps the failure that was printed last. left are those that it did not ask, since
// theirs could not be it.
func (c *Classifier) parse(log *text.Log, asked uint64) (best *Failure, by Runtime, left uint64) {
	// A runtime that embeds another one prints the inner failure first and its own around it, so the later one is nearer
	// to the death.
	for i, r := range c.runtimes {
		if !asks(asked, i) {
			continue
		}
		if last(best, log) && len(c.runtimes) <= maxSpeakers {
			left |= 1 << i
			continue
		}
		if f := r.Parse(log); f != nil && (best == nil || nearer(f, best)) {
			best, by = f, r
		}
	}
	return best, by, left
}

// last reports a failure that nothing can be nearer to the death than: its message ends the log, and it has a stack.
func last(f *Failure, log *text.Log) bool {
	return f != nil && len(f.Frames) > 0 && !f.Survived && f.Line == f.Last && f.Last == len(log.Lines)-1
}

// askRest asks the runtimes that parse has left. They find no failure that counts, but mark lines as noise, which is of
// interest where lines around the failure are read for what else they say.
func (c *Classifier) askRest(t *course) {
	for i, r := range c.runtimes {
		if t.left&(1<<i) != 0 {
			r.Parse(t.log)
		}
	}
	t.left = 0
}

// nearer reports whether a failure is nearer to the death than the best one so far. Of two readings of the same lines the one
// that found a stack has understood them.
func nearer(f, best *Failure) bool {
	if f.First <= best.Last && best.First <= f.Last && (len(f.Frames) > 0) != (len(best.Frames) > 0) {
		return len(f.Frames) > 0
	}
	return f.Last > best.Last
}

// typedCause turns what the host knows for certain into a verdict.
func typedCause(r Reason) Verdict {
	v := Verdict{Disposition: Never, Family: NoFamily, Reason: r}
	switch r {
	case NameError, SignatureMismatch:
		v.Disposition = Annotate
	case ProviderError, RateLimit, Auth, Killed, OOM, Timeout, DiskFull, DirectiveError, ToolFailure, TestFailure,
		ThirdPartyImport, WorkspaceImport, WorkspaceError:
	default:
		// A cause that this package does not know is not on the list, and no signature either.
		v.Disposition = Unknown
	}
	return v
}
