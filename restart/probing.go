package restart

import (
	"context"
	"sort"
	"strings"

	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/restart/policy"
	"github.com/mulligan-dev/mulligan/witness"
)

// asked is one death's question to a prober.
type asked struct {
	d     *death
	roots []witness.Root
	need  probe.Need
}

// probe answers for all deaths that got this far: one interpreter for each tree and setting, and one for each set of
// modules only where the common one failed.
func (p *pass) probe(ctx context.Context, ds []*death) {
	byRuntime := map[string][]asked{}
	for _, d := range ds {
		a, runtime, err := p.ask(ctx, d)
		if err != nil {
			d.err = err
			continue
		}
		if len(a.need.Modules) == 0 {
			d.facts.Probe = &policy.Probe{Pending: "Nothing of the code that failed is left to be tried."}
			continue
		}
		byRuntime[runtime] = append(byRuntime[runtime], a)
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
}

// ask makes a death's question: what to load, and of which tree.
func (p *pass) ask(ctx context.Context, d *death) (asked, string, error) {
	a := asked{d: d}
	runtime := ""
	var keys []string
	known := true
	for _, r := range d.involved() {
		if rt := p.h.cfg.Runtimes[r.Runtime]; rt.Prober == nil || runtime != "" && runtime != r.Runtime {
			continue
		}
		runtime = r.Runtime
		o, err := p.look(ctx, r)
		if err != nil {
			return a, "", err
		}
		a.roots = append(a.roots, r)
		known = known && o.Identity.Known()
		keys = append(keys, r.Place()+"="+o.Identity.Key())
	}
	plan, ok := p.h.cfg.Runtimes[runtime].Planner.Plan(d.run, d.facts.Signature)
	if !ok {
		return a, runtime, nil
	}
	a.need = probe.Need{Interpreter: plan.Interpreter, Args: plan.Args, Path: plan.Path, Env: plan.Env, Modules: plan.Modules}
	if known {
		sort.Strings(keys)
		a.need.Tree = strings.Join(keys, "\n")
	}
	return a, runtime, nil
}

// probeUnion probes a union, and each of its sets alone when it fails: one broken module says nothing of the others.
func (p *pass) probeUnion(ctx context.Context, prober probe.Prober, as []asked, u probe.Union) {
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
			as[i].d.err = err
			continue
		}
		as[i].d.probed = at
		as[i].d.facts.Probe = &policy.Probe{Result: &res, Modules: as[i].need.Modules}
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
		before := p.seenRoots[r.Place()].Identity.Key()
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
