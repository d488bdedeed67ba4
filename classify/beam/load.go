package beam

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// refuse keeps why a module was not loaded.
func (p *parser) refuse(f *classify.Failure) {
	if p.refused == nil {
		p.refused = map[string]*classify.Failure{}
	}
	if p.refused[f.Module] == nil {
		p.refused[f.Module] = f
	}
}

// loading parses "beam/beam_load.c(144): Error loading module acme_wire:" and the reason below it.
func (p *parser) loading(i int) (*classify.Failure, int) {
	_, name, _ := strings.Cut(p.lines[i], "Error loading module ")
	name, reason, _ := strings.Cut(name, ":")
	f := &classify.Failure{Module: moduleName(name), Kind: classify.KindTorn, Loading: true}
	next := i + 1
	for ; next < len(p.lines) && next < i+4 && strings.HasPrefix(p.lines[next], " "); next++ {
		reason += "\n" + strings.TrimSpace(p.lines[next])
	}
	f.Message = strings.TrimSpace(reason)
	// A whole file that another release has written.
	for _, w := range [...]string{"compiled for a later version", "compiled for an old version", "re-compile this module", "supports only up to", "use of opcode", "opcode number"} {
		if strings.Contains(f.Message, w) {
			f.Kind = classify.KindBinding
		}
	}
	p.refuse(f)
	return f, next
}

// loadFailed parses "Loading of /srv/acme/ebin/acme_wire.beam failed: badfile".
func (p *parser) loadFailed(i int) (*classify.Failure, int) {
	path, why, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(p.lines[i]), "Loading of "), " failed: ")
	module := Runtime{}.Module(path)
	if r := p.refused[module]; r != nil {
		f := *r
		f.File = path
		return &f, i + 1
	}
	if module == "" || !strings.HasPrefix(why, "badfile") {
		return nil, i + 1
	}
	f := &classify.Failure{Module: module, File: path, Kind: classify.KindTorn, Type: "badfile", Message: why, Loading: true}
	p.refuse(f)
	return f, i + 1
}

// onLoad parses what a module's own loader of native code has returned. The module is gone from then on; whoever calls it
// finds nothing.
func (p *parser) onLoad(i int) (*classify.Failure, int) {
	_, name, _ := strings.Cut(p.lines[i], "The on_load function for module ")
	name, rest, _ := strings.Cut(name, " returned")
	s, next := p.joined(i, len(p.lines[i]))
	if at := strings.IndexByte(rest, '{'); at >= 0 {
		s, next = p.joined(i, strings.LastIndex(p.lines[i], rest)+at)
	} else if i+1 < len(p.lines) {
		s, next = p.joined(i+1, 0)
	}
	f := &classify.Failure{Module: moduleName(name), Message: s, Kind: classify.KindOther, Loading: true}
	nif(f, s)
	if f.Kind == classify.KindOther {
		return nil, next
	}
	p.refuse(f)
	// The warning alone is no death: modules do without their native half.
	f.Survived = true
	for k := next; k < len(p.lines) && k < next+8; k++ {
		if strings.Contains(p.lines[k], f.Module) && (strings.Contains(p.lines[k], "load")) {
			f.Survived = false
		}
	}
	if !f.Survived {
		return f, next
	}
	return nil, next
}

// nif reads the reason with which native code was refused.
func nif(f *classify.Failure, s string) {
	switch {
	case strings.Contains(s, "bad_lib,"), strings.Contains(s, "bad_lib:"):
		f.Kind, f.Type = classify.KindBinding, "bad_lib"
		if _, fn, ok := strings.Cut(s, "Function not found "); ok {
			if _, sym, ok := strings.Cut(fn, ":"); ok {
				end := strings.IndexAny(sym, "\"'} ,")
				if end < 0 {
					end = len(sym)
				}
				f.Symbol = strings.TrimRight(sym[:end], ".")
			}
		}
	case strings.Contains(s, "load_failed,"):
		f.Type = "load_failed"
		// "Failed to load NIF library: '/srv/acme/priv/acme_nif.so: undefined symbol: acme_open2'"
		_, m, ok := strings.Cut(s, "Failed to load NIF library: '")
		if !ok {
			_, m, ok = strings.Cut(s, "Failed to load NIF library ")
		}
		if !ok {
			return
		}
		m, _, _ = strings.Cut(strings.Trim(m, "'\""), "'\"")
		if at := strings.Index(m, ": '"); at >= 0 {
			m = m[at+3:]
		}
		n, ok := classify.ReadLoader(m)
		if !ok {
			return
		}
		f.Kind, f.Symbol = n.Kind, n.Symbol
		// The library that the module asked for is missing with it; any other one is somebody else's.
		if n.Object == "" && n.Needs != "" && !strings.Contains(n.Needs, "/") {
			f.Needs = n.Needs
		}
	case strings.Contains(s, "{upgrade,"), strings.Contains(s, "{reload,"):
		f.Kind, f.Type = classify.KindBinding, "upgrade"
	}
}
