package arch

import (
	"slices"
	"strings"
)

// Layer is the place of one or more packages on the map, and what they may import of ours.
//
// A pattern is a path below the root. With "/..." at its end it means the folder itself and everything below it. The
// first layer whose pattern matches a package is its place.
type Layer struct {
	Packages []string
	// May are the packages of ours that it may import, as patterns. A package may always import what lies in an
	// internal folder below itself.
	May []string
	// Pure marks the core: values in, values out.
	Pure bool
	// Own is set where the package is a module of its own, because of what it depends on.
	Own bool
}

// The runtimes whose failures the classifier reads. One package each, and they know nothing of one another: the family
// rules that they share are in classify.
var runtimes = []string{
	"classify/python", "classify/node", "classify/jvm", "classify/ruby", "classify/perl", "classify/php",
	"classify/beam", "classify/dotnet", "classify/golang", "classify/rust", "classify/lua", "classify/tcl",
	"classify/loader", "classify/shell", "classify/service", "classify/datafmt", "classify/agentcli", "classify/pack",
}

// core is everything that decides without touching the system.
var core = slices.Concat(
	[]string{"classify", "classify/text", "witness", "witness/journal", "witness/culprit", "witness/quiet", "probe", "probe/freshimport"},
	[]string{"ledger", "ledger/stamp", "ledger/run", "ledger/doorbell", "ledger/storm", "ledger/session", "ledger/effect"},
	[]string{"episode", "episode/report", "notify", "notify/bootnotice"}, runtimes)

// engine is the core with the decision on top: what the shells under restart stand on. Each of them asks whether it runs
// inside a canary.
var engine = slices.Concat(core, []string{"restart/policy", "restart/adopt", "probe/canary/inside"})

// public is everything that an adapter may know. It lists no adapter: what two adapters share belongs below both.
var public = slices.Concat(engine, []string{
	"restart", "restart/update", "restart/managed", "restart/handoff", "restart/sessions", "restart/drain", "restart/resume",
	"restart/boot",
	"probe/canary",
})

// system is how the shells and the adapters of the root module reach the machine: one package writes files, one keeps
// logs in them, one reads clock and processes, one reads the files of a code tree. They hold no decision, so nobody
// outside misses them.
var system = []string{"internal/durable", "internal/host", "internal/codetree", "internal/framelog"}

// Layers is the package map, the lowest first.
var Layers = []Layer{
	// The leaf: the one kind of time. Nothing of ours is below it.
	{Packages: []string{"ledger/stamp"}, Pure: true},

	// Four roots that know nothing of each other. A host may take any of them alone.
	{Packages: []string{"classify/text"}, Pure: true},
	{Packages: []string{"classify"}, Pure: true, May: []string{"classify/text"}},
	{Packages: []string{"probe"}, Pure: true},
	{Packages: []string{"notify"}, Pure: true},
	{Packages: []string{"ledger"}, Pure: true, May: []string{"ledger/stamp"}},

	{Packages: []string{"classify/internal/scoretest"}, May: []string{"classify", "classify/text"}},
	{Packages: append([]string{"classify/internal/..."}, runtimes...), Pure: true,
		May: []string{"classify", "classify/text", "classify/internal/..."}},
	{Packages: []string{"witness/journal"}, Pure: true, May: []string{"ledger/stamp"}},
	{Packages: []string{"witness"}, Pure: true, May: []string{"classify", "ledger/stamp", "witness/journal"}},
	{Packages: []string{"witness/culprit", "witness/quiet"}, Pure: true,
		May: []string{"classify", "ledger/stamp", "witness", "witness/journal"}},
	{Packages: []string{"probe/freshimport"}, Pure: true, May: []string{"probe", "classify"}},

	{Packages: []string{"ledger/storm"}, Pure: true, May: []string{"ledger/stamp"}},
	{Packages: []string{"ledger/run"}, Pure: true, May: []string{"ledger", "ledger/stamp", "classify", "witness"}},
	{Packages: []string{"ledger/doorbell"}, Pure: true,
		May: []string{"ledger", "ledger/stamp", "ledger/run", "classify", "witness"}},
	{Packages: []string{"ledger/session"}, Pure: true, May: []string{"ledger", "ledger/stamp"}},
	{Packages: []string{"ledger/effect"}, Pure: true, May: []string{"ledger", "ledger/stamp", "ledger/session"}},

	// Telling people: what happened as one story, and to a session that it was restarted.
	{Packages: []string{"episode"}, Pure: true,
		May: []string{"ledger", "ledger/stamp", "ledger/run", "witness", "witness/journal", "classify", "notify"}},
	{Packages: []string{"episode/report"}, Pure: true, May: []string{"episode", "ledger", "ledger/stamp", "ledger/run",
		"ledger/doorbell", "witness", "witness/journal", "classify", "probe", "notify"}},
	{Packages: []string{"notify/bootnotice"}, Pure: true,
		May: []string{"notify", "ledger", "ledger/stamp", "ledger/session"}},

	{Packages: []string{"restart/policy"}, Pure: true, May: core},
	{Packages: []string{"restart/adopt"}, Pure: true, May: []string{"ledger", "ledger/stamp", "ledger/run"}},

	// The shells: they have clocks and goroutines. The engine reads the machine and writes through its stores alone; the
	// run's and the update's side keep small files of their own beside them.
	{Packages: []string{"probe/canary/inside"}},
	{Packages: []string{"probe/canary"}, May: []string{"probe", "probe/canary/inside", "ledger", "ledger/stamp", "internal/host",
		"internal/durable"}},
	{Packages: []string{"restart/update"}, May: slices.Concat(engine, system)},
	{Packages: []string{"restart"}, May: slices.Concat(engine, []string{"restart/update", "internal/host"})},
	{Packages: []string{"restart/managed"}, May: slices.Concat(engine, system, []string{"restart"})},
	// Turns have clocks and goroutines: ledger/session stays pure, and this is its shell.
	{Packages: []string{"restart/sessions"}, May: []string{"ledger", "ledger/stamp", "ledger/session", "ledger/effect",
		"probe/canary/inside", "internal/host"}},
	// The marker, the heartbeat and the outbox are files of its own; its coordinator decides auto-resume before notices.
	{Packages: []string{"restart/boot"}, May: slices.Concat(engine, system, []string{"restart/sessions", "restart/resume"})},
	{Packages: []string{"restart/drain"}, May: slices.Concat(engine, []string{"restart", "restart/sessions", "internal/host"})},
	{Packages: []string{"restart/handoff"}, May: slices.Concat(engine, []string{"restart", "restart/sessions", "restart/drain",
		"restart/boot", "probe/canary", "internal/host", "internal/durable"})},
	{Packages: []string{"restart/resume"}, May: slices.Concat(engine, []string{"restart", "restart/sessions", "restart/drain",
		"internal/host"})},

	// Suites are for a stranger's tests, so they bring along no adapter; the simulated host is made of the one
	// adapter that has no outside.
	{Packages: []string{"restart/restarttest"}, May: slices.Concat(public, suites, []string{"adapters/memory"})},
	{Packages: suites, May: slices.Concat(public, []string{"internal/faultfs"})},

	// An adapter knows what it fulfils, never another adapter. Those of the root module share what reaches the machine.
	{Packages: []string{"adapters/memory/...", "adapters/files/...", "adapters/process/...", "adapters/gitcli/...",
		"adapters/pypackage/...", "adapters/folder/...", "adapters/npm/...", "adapters/gem/...", "adapters/jar/...", "adapters/image/...",
		"adapters/binary/...", "adapters/config/...", "adapters/terminal/...", "adapters/inbox/...",
		"adapters/lognotify/...", "adapters/sessionlog/...", "adapters/web/...", "adapters/webhook/..."}, May: slices.Concat(public, system)},
	{Packages: []string{"adapters/zlog/..."}},
	{Packages: []string{"adapters/sqlite/...", "adapters/postgres/...", "adapters/systemd/...", "adapters/prometheus/...",
		"adapters/desktop/..."}, May: public, Own: true},

	// Wiring. Only here do several adapters meet.
	{Packages: []string{"adapters/cli/..."}, May: slices.Concat(public, []string{"adapters/..."}), Own: true},
	{Packages: []string{"examples/..."}, May: slices.Concat(public, []string{"adapters/...", "examples/..."})},

	// What nobody outside sees.
	{Packages: []string{"internal/durable"}},
	{Packages: []string{"internal/framelog"}, May: []string{"internal/durable"}},
	{Packages: []string{"internal/host"}, May: []string{"ledger", "ledger/stamp"}},
	{Packages: []string{"internal/codetree"}, May: []string{"witness", "ledger/stamp", "internal/host"}},
	{Packages: []string{"internal/faultfs"}, May: []string{"internal/durable"}},
	{Packages: []string{"internal/require"}},
	{Packages: []string{"internal/vectortest"}, May: []string{"classify", "classify/text"}},
	{Packages: []string{"internal/gittest"}, May: []string{"internal/require"}},
	{Packages: []string{"internal/arch"}},
	{Packages: []string{"internal/bench/relaunchtest"}, May: slices.Concat(public, []string{"adapters/...", "internal/require"})},
	{Packages: []string{"internal/e2e", "internal/bench/..."}},
	{Packages: []string{"internal/scenarios"}, May: slices.Concat(public, suites, []string{"adapters/...",
		"restart/restarttest"})},
	{Packages: []string{"internal/tools/..."}, Own: true},
}

// suites are the exported conformance suites.
var suites = []string{"ledger/ledgertest", "ledger/session/sessiontest", "restart/resume/resumetest", "probe/probetest", "notify/notifytest",
	"witness/witnesstest", "classify/classifytest"}

// layerOf finds a package's place.
func layerOf(dir string) (Layer, bool) {
	for _, l := range Layers {
		if matchAny(l.Packages, dir) {
			return l, true
		}
	}
	return Layer{}, false
}

func matchAny(patterns []string, dir string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, dir) })
}

func match(pattern, dir string) bool {
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(dir, root)
	}
	return pattern == dir
}

// packageMap finds packages that have no place.
func packageMap(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		if _, ok := layerOf(p.Path); !ok {
			out = append(out, findingf(p.Path, "package %s is not on the map", p.Name))
		}
	}
	return out
}

// layers finds imports that point the wrong way. Tests are free: they wire what they need, and only the test binary
// pays for it.
func layers(t *Tree) (out []Finding) {
	for _, p := range t.Packages {
		layer, ok := layerOf(p.Path)
		if !ok {
			continue // said by packageMap
		}
		for _, f := range p.shipped() {
			for imported, spec := range f.imports() {
				dir, own := t.own(imported)
				if own && !may(p.Path, layer, dir) {
					out = append(out, findingf(t.pos(spec), "%s imports %s; %s", p.Path, dir, allowance(layer)))
				}
			}
		}
	}
	return sorted(out)
}

func may(from string, layer Layer, dir string) bool {
	if below(dir, from) && internal(strings.TrimPrefix(dir, from)) {
		return true
	}
	if adapter := adapterOf(from); adapter != "" && below(dir, adapter) {
		return true
	}
	return matchAny(layer.May, dir)
}

// adapterOf is the folder of the adapter that a package is part of: an adapter may be made of several packages.
func adapterOf(dir string) string {
	rest, ok := strings.CutPrefix(dir, "adapters/")
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "/")
	return "adapters/" + name
}

func allowance(l Layer) string {
	switch n := len(l.May); {
	case n == 0:
		return "it may import no package of ours"
	case n > 10:
		return "its place in Layers says what it may import"
	}
	return "of ours it may import " + strings.Join(l.May, ", ")
}
