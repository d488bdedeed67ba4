package classify

// maxDepth bounds chains and nested groups. No runtime prints a deeper one that a tail could hold.
const maxDepth = 64

// decide judges a failure with everything that led to it.
func (j *judge) decide(f *Failure, outer bool, depth int) Verdict {
	if depth > maxDepth {
		return unknown(j.base(f, &stack{}), NoFamily, ChainTooDeep)
	}
	if len(f.Group) > 0 {
		return j.group(f, outer, depth)
	}
	v := j.single(f, outer)
	switch {
	case f.Cause != nil:
		return j.caused(f, v, j.decide(f.Cause, false, depth+1), outer)
	case f.Context != nil:
		return handled(v, j.decide(f.Context, false, depth+1))
	}
	return v
}

// caused weighs a failure against the one it was raised from. The cause decides when it is a failure of a family, or a
// bug of the kind that is annotated, raised by managed code, and managed code wrapped it; else the wrapper does.
func (j *judge) caused(f *Failure, v, cause Verdict, outer bool) Verdict {
	// Whose the wrapper is: raised in managed code or in its launcher, or of a type that managed code defines. A wrapper
	// of somebody else's is a statement of its own and no envelope.
	st := j.stackOf(f, outer)
	at := st.seat()
	own := at.holder == managed || at.holder == launcher
	if !own {
		r, _ := j.pattern(f.TypeModule)
		own = r >= 0
	}
	// The wrapper's frames lead to the place where the cause was caught, so they are the outer ones.
	if own && v.Disposition != Skew && j.deciding(f.Cause, cause) {
		cause.Frames = append(append([]Frame{}, v.Frames...), cause.Frames[shared(v.Frames, cause.Frames):]...)
		j.summarize(&cause)
		return cause
	}
	if v.Disposition == Unknown && v.Family == NoFamily && cause.Disposition == Never {
		// The wrapper says nothing of its own; what it wraps is on the list.
		return never(v, cause.Reason)
	}
	return v
}

// shared counts the outermost frames that two stacks have in common. Some runtimes print them for wrapper and cause.
func shared(a, b []Frame) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// deciding reports whether a cause is one that its wrapper does not outweigh.
func (j *judge) deciding(f *Failure, v Verdict) bool {
	if v.Disposition == Skew || v.Disposition == Annotate {
		return true
	}
	if v.Disposition != Unknown {
		return false
	}
	// A candidate family (a missing third-party module, unclear syntax) outweighs the wrapper too: the case stays open,
	// and the wrapper's own words must not close it.
	if v.Family != NoFamily {
		return true
	}
	st := j.stackOf(f, false)
	return f.Kind != KindOther && st.seat().holder == managed
}

// handled weighs a failure against the one that was being handled when it came up. The later one decides, but a bug
// that hides a signature leaves the case open.
func handled(v, earlier Verdict) Verdict {
	if earlier.Disposition != Skew || v.Disposition == Skew {
		return v
	}
	// never() has blanked the unit; an open case names the one that the signature was about.
	if v.Disposition == Never {
		v.Module, v.Symbol = earlier.Module, earlier.Symbol
	}
	return unknown(v, earlier.Family, BugWhileHandlingSkew)
}

// group judges failures that ended the process together: they must agree.
func (j *judge) group(f *Failure, outer bool, depth int) Verdict {
	st := j.stackOf(f, outer)
	var v, lead Verdict
	mixed := false
	frames := st.frames
	// Every leaf is judged alone and with its own chain. Equal verdicts are agreement even if the names differ: one
	// update tears several modules at once.
	for i, leaf := range f.Group {
		l := j.decide(leaf, false, depth+1)
		frames = append(frames, l.Frames...)
		switch {
		case i == 0:
			v, lead = l, l
		case l.Disposition != v.Disposition, l.Family != v.Family:
			mixed = true
		case v.Disposition == Unknown && l.Reason != v.Reason:
			mixed = true
		}
		// Of a mixed group the first signature is shown, since that is what a person has to look at.
		if l.Disposition == Skew && lead.Disposition != Skew {
			lead = l
		}
	}
	if f.Cut && v.Disposition == Skew {
		mixed = true // leaves that are not shown cannot agree
	}
	if mixed {
		v = unknown(lead, lead.Family, MixedExceptionGroup)
	}
	v.Frames = frames
	j.summarize(&v)
	switch {
	case f.Cause != nil:
		return j.caused(f, v, j.decide(f.Cause, false, depth+1), outer)
	case f.Context != nil:
		return handled(v, j.decide(f.Context, false, depth+1))
	}
	return v
}
