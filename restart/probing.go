package restart

import (
	"cmp"
	"context"
	"errors"
	"sort"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
)

// asked is one death's question to a prober, and what came of it.
type asked struct {
	d     *death
	roots []witness.Root
	need  probe.Need

	facts *policy.Probe
	at    stamp.Time
	err   error
}

// besideLook is how often the doorbells are looked at while a probe runs.
const besideLook = 10 * time.Millisecond

// whileProbing has the deaths probed, and does beside it what else their launch takes: the rest of the witnesses and the
// evidence. The victims of one update die within a moment: those that ring meanwhile are taken up as well, and come back
// as more, so that after the probe nothing is left to be done for them that was not done for the first.
func (p *pass) whileProbing(ctx context.Context, waiting []*death) (more []*death) {
	done := make(chan []*asked, 1)
	go func() { done <- p.probe(ctx, waiting) }()
	for _, d := range waiting {
		d.err = p.beside(ctx, d)
	}
	look := time.NewTimer(besideLook)
	defer look.Stop()
	for {
		select {
		case answers := <-done:
			for _, a := range answers {
				a.d.facts.Probe, a.d.probed, a.d.err = a.facts, a.at, errors.Join(a.d.err, a.err)
			}
			return append(more, p.joining(ctx)...)
		case <-look.C:
		}
		began := time.Now()
		more = append(more, p.joining(ctx)...)
		look.Reset(max(besideLook, 10*time.Since(began))) // a full box is not read all the time
	}
}

// beside does for a death what has to be done before its launch and does not need the probe.
func (p *pass) beside(ctx context.Context, d *death) error {
	if err := p.allWitnesses(ctx, d); err != nil {
		return err
	}
	p.file(ctx, d)
	return nil
}

// joining takes up the deaths that rang since the pass last looked, as far as a probe.
func (p *pass) joining(ctx context.Context) []*death {
	more := p.arrivals(ctx)
	for _, d := range more {
		if d.err = p.advance(ctx, d); d.err == nil && d.decision.Need == policy.NeedProbe {
			d.err = p.beside(ctx, d)
		}
	}
	return more
}

// probe answers for all deaths that got this far: one interpreter for each tree and setting, and one for each set of
// modules only where the common one failed. It changes nothing in the deaths.
func (p *pass) probe(ctx context.Context, ds []*death) (all []*asked) {
	byRuntime := map[string][]*asked{}
	for _, d := range ds {
		a, runtime := p.ask(ctx, d)
		all = append(all, a)
		switch {
		case a.err != nil:
		case len(a.need.Modules) == 0:
			a.facts = &policy.Probe{Pending: "Nothing of the code that failed is left to be tried."}
		default:
			byRuntime[runtime] = append(byRuntime[runtime], a)
		}
	}
	for runtime, as := range byRuntime {
		needs := make([]probe.Need, len(as))
		trees := make([]string, len(as))
		for i, a := range as {
			needs[i], trees[i] = a.need, a.need.Tree
		}
		p.h.memo = p.h.memo.Changed(trees...)
		for _, u := range probe.Group(needs) {
			p.probeUnion(ctx, p.h.cfg.Runtimes[runtime].Prober, as, u)
		}
	}
	return all
}

// tries reports whether the modules of a root can be tried for a run, and if they never can be, why: empty when there is
// no prober.
func (h *Healer) tries(d *death, root witness.Root) (ok bool, why string) {
	rt := h.cfg.Runtimes[root.Runtime]
	if rt.Prober == nil {
		return false, ""
	}
	if r, is := rt.Planner.(Refuser); is {
		why = r.Refuses(d.run)
	}
	return why == "", why
}

// probeable finds the roots that can be tried.
func (p *pass) probeable(d *death) {
	f := &d.facts
	for _, r := range d.involved() {
		ok, why := p.h.tries(d, r)
		if ok {
			f.Probeable = append(f.Probeable, r.Name)
		}
		f.Unprobeable = cmp.Or(f.Unprobeable, why)
	}
}

// ask makes a death's question: what to load, and of which tree.
func (p *pass) ask(ctx context.Context, d *death) (a *asked, runtime string) {
	a = &asked{d: d}
	var keys []string
	known := true
	for _, r := range d.involved() {
		if ok, _ := p.h.tries(d, r); !ok || runtime != "" && runtime != r.Runtime {
			continue
		}
		runtime = r.Runtime
		o, err := p.look(ctx, r)
		if err != nil {
			a.err = err
			return a, ""
		}
		a.roots = append(a.roots, r)
		known = known && o.Identity.Known()
		keys = append(keys, r.Place()+"="+o.Identity.Key())
	}
	plan, ok := p.h.cfg.Runtimes[runtime].Planner.Plan(d.run, d.facts.Signature)
	if !ok {
		return a, runtime
	}
	a.need = probe.Need{Interpreter: plan.Interpreter, Args: plan.Args, Path: plan.Path, Env: plan.Env, Modules: plan.Modules}
	if known {
		sort.Strings(keys)
		a.need.Tree = strings.Join(keys, "\n")
	}
	return a, runtime
}

// probeUnion probes a union, and each of its sets alone when it fails: one broken module says nothing of the others.
func (p *pass) probeUnion(ctx context.Context, prober probe.Prober, as []*asked, u probe.Union) {
	res, err := p.probeOnce(ctx, prober, as[u.Members()[0]].roots, u.Need)
	at := p.h.cfg.Now()
	if alone := u.Alone(); err == nil && res.Outcome != probe.Healthy && len(alone) > 0 {
		for _, v := range alone {
			p.probeUnion(ctx, prober, as, v)
		}
		return
	}
	for _, i := range u.Members() {
		if err != nil {
			as[i].err = err
			continue
		}
		as[i].at = at
		as[i].facts = &policy.Probe{Result: &res, Modules: as[i].need.Modules}
	}
}

// probeOnce answers from memory or runs one probe, and believes it only if the tree is the same before and after.
func (p *pass) probeOnce(ctx context.Context, prober probe.Prober, roots []witness.Root, n probe.Need) (probe.Result, error) {
	now := p.h.cfg.Now().Wall
	if res, ok := p.h.memo.Lookup(n, now); ok {
		return res, nil
	}
	res, err := prober.Probe(ctx, n.Plan(0, p.h.dry))
	if err != nil {
		return res, err
	}
	for _, r := range roots {
		seen, _ := p.looked(r)
		before := seen.Identity.Key()
		o, err := p.observe(ctx, r)
		if err != nil {
			return res, err
		}
		res = probe.Confirm(res, before, o.Identity.Key())
		if o.Identity.Key() == before {
			p.sawRoot(r, o) // the same tree, seen later
		}
	}
	p.h.memo = p.h.memo.Remember(n, res, now)
	return res, nil
}
