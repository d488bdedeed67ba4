package config

import (
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v4"
)

// SelfRestartBlock is the name of the block about `mulligan self-restart`. It may be absent.
const SelfRestartBlock = "self_restart"

// SelfRestart is what the block self_restart says.
type SelfRestart struct {
	// Unit is what is restarted (unit); empty is the unit that the command runs in.
	Unit string
	// Manager is "system" or "user" (manager); empty is that of the command's own unit.
	Manager string
	// Canary is how new code is tried first.
	Canary Canary
}

// Canary is the block self_restart.canary: how a candidate is booted beside the living service.
type Canary struct {
	// Always tries every restart (always), not only those that ask for it.
	Always bool
	// Command boots it (command); empty is the unit's ExecStart.
	Command []string
	// Preflight has to succeed first (preflight); empty for none.
	Preflight []string
	// Path is what it is asked for (path); empty is the default of package probe/canary. So is zero of Port (port), where
	// it listens, and an empty PortVar (port_variable), which tells it the port.
	Path    string
	Port    int
	PortVar string
	// Live are the files and folders that it must not reach (live), absolute and resolved.
	Live []string
	// State are variables for its state folders (state): a value that is empty or relative lies in the canary's own folder.
	State []StateVar
}

// StateVar is a variable that tells a state folder.
type StateVar struct{ Var, Path string }

func selfRestartKeys() []string { return []string{"unit", "manager", "canary"} }

func canaryKeys() []string {
	return []string{"always", "command", "preflight", "path", "port", "port_variable", "live", "state"}
}

// selfRestart reads the block.
func (p *parser) selfRestart(c *SelfRestart, n *yaml.Node) {
	pairs, ok := p.mapping(n, SelfRestartBlock)
	if !ok {
		return
	}
	for _, kv := range pairs {
		key := SelfRestartBlock + "." + kv.key
		switch kv.key {
		case "unit":
			p.text(&c.Unit, kv.value, key)
		case "manager":
			p.choice(&c.Manager, kv.value, key, []string{"system", "user"})
		case "canary":
			p.canary(&c.Canary, kv.value, key)
		default:
			p.problem(kv.line, key, "no such key, want one of %s", strings.Join(selfRestartKeys(), ", "))
		}
	}
}

func (p *parser) canary(c *Canary, n *yaml.Node, block string) {
	pairs, ok := p.mapping(n, block)
	if !ok {
		return
	}
	for _, kv := range pairs {
		key := block + "." + kv.key
		switch kv.key {
		case "always":
			p.boolean(&c.Always, kv.value, key)
		case "command":
			c.Command = p.texts(kv.value, key)
		case "preflight":
			c.Preflight = p.texts(kv.value, key)
		case "path":
			if p.text(&c.Path, kv.value, key) && c.Path[0] != '/' {
				p.problem(kv.value.Line, key, "%q, want a path of a URL that begins with /", c.Path)
			}
		case "port":
			if v, ok := p.integer(kv.value, key, "a port, or 0 for a free one,", 0, 65535); ok {
				c.Port = int(v)
			}
		case "port_variable":
			p.variable(&c.PortVar, kv.value, key)
		case "live":
			c.Live = p.folders(kv.value, key, 0, p.future)
		case "state":
			c.State = p.state(kv.value, key)
		default:
			p.problem(kv.line, key, "no such key, want one of %s", strings.Join(canaryKeys(), ", "))
		}
	}
}

// state reads variables with their folders, of which an empty one is allowed.
func (p *parser) state(n *yaml.Node, block string) (out []StateVar) {
	pairs, ok := p.mapping(n, block)
	if !ok {
		return nil
	}
	for _, kv := range pairs {
		key, v := block+"."+kv.key, deref(kv.value)
		s := StateVar{Var: kv.key}
		switch {
		case !variable(kv.key):
			p.problem(kv.line, key, "%q is no name of a variable", kv.key)
		case v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" && v.Value == "":
		case !p.text(&s.Path, kv.value, key):
		case !filepath.IsAbs(s.Path) && !filepath.IsLocal(s.Path):
			p.problem(kv.value.Line, key, "%q leads out of the canary's folder, want a relative path in it, an absolute one, or \"\"", s.Path)
		}
		out = append(out, s)
	}
	return out
}

func (p *parser) variable(out *string, n *yaml.Node, key string) {
	if p.text(out, n, key) && !variable(*out) {
		p.problem(n.Line, key, "%q is no name of a variable", *out)
	}
}

func variable(s string) bool { return s != "" && !strings.ContainsAny(s, "=\x00") }
