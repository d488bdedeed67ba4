package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// pair is one key of a mapping with its value.
type pair struct {
	key   string
	line  int
	value *yaml.Node
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

// describe says what a value is, for problems.
func describe(n *yaml.Node) string {
	n = deref(n)
	switch n.Kind {
	case yaml.MappingNode:
		return "a block of keys"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		if n.ShortTag() == "!!null" {
			return "nothing"
		}
		v := n.Value
		if len(v) > 60 {
			v = strings.ToValidUTF8(v[:60], "") + "..."
		}
		if n.ShortTag() == "!!str" {
			return strconv.Quote(v)
		}
		return v
	}
	return "something that is no value"
}

// pairs are the keys of a mapping, each once. A key that stands there twice is a problem: which of the two counts, a
// reader cannot tell.
func (p *parser) pairs(n *yaml.Node, key string) []pair {
	n = deref(n)
	var out []pair
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if key != "" && k.ShortTag() == "!!merge" {
			p.problem(k.Line, key, "merge keys (<<) are not read here: write the keys out")
			continue
		}
		if k.Kind != yaml.ScalarNode {
			if key != "" {
				p.problem(k.Line, key, "%s as a key, want a name", describe(k))
			}
			continue
		}
		if line, dup := first[k.Value]; dup {
			if key != "" || k.Value == Block || k.Value == NoticeBlock || k.Value == SelfRestartBlock || k.Value == SessionsBlock {
				p.problem(k.Line, join(key, k.Value), "it is there twice, first on line %d", line)
			}
			continue
		}
		first[k.Value] = k.Line
		out = append(out, pair{key: k.Value, line: k.Line, value: v})
	}
	return out
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

// mapping wants a block of keys.
func (p *parser) mapping(n *yaml.Node, key string) ([]pair, bool) {
	if deref(n).Kind != yaml.MappingNode {
		p.problem(n.Line, key, "%s, want a block of keys", describe(n))
		return nil, false
	}
	return p.pairs(n, key), true
}

func (p *parser) list(n *yaml.Node, key, want string) ([]*yaml.Node, bool) {
	if deref(n).Kind != yaml.SequenceNode {
		p.problem(n.Line, key, "%s, want %s", describe(n), want)
		return nil, false
	}
	return deref(n).Content, true
}

func (p *parser) boolean(out *bool, n *yaml.Node, key string) {
	v := deref(n)
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!bool" {
		switch strings.ToLower(v.Value) {
		case "true":
			*out = true
			return
		case "false":
			*out = false
			return
		}
	}
	p.problem(n.Line, key, "%s, want true or false", describe(n))
}

// integer wants a plain decimal number: what looks like one in another notation reads differently to different people.
func (p *parser) integer(n *yaml.Node, key, want string, least, most int64) (int64, bool) {
	v := deref(n)
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!int" {
		i, err := strconv.ParseInt(v.Value, 10, 64)
		plain := err == nil && strconv.FormatInt(i, 10) == v.Value
		if plain && i >= least && i <= most {
			return i, true
		}
	}
	p.problem(n.Line, key, "%s, want %s from %d to %d", describe(n), want, least, most)
	return 0, false
}

// text wants text that is not empty.
func (p *parser) text(out *string, n *yaml.Node, key string) bool {
	v := deref(n)
	if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" {
		p.problem(n.Line, key, "%s, want text", describe(n))
		return false
	}
	if strings.TrimSpace(v.Value) == "" || strings.ContainsRune(v.Value, 0) {
		p.problem(n.Line, key, "%s, want text that is not empty", describe(n))
		return false
	}
	*out = v.Value
	return true
}

func (p *parser) texts(n *yaml.Node, key string) []string {
	items, ok := p.list(n, key, "a list of texts")
	if !ok {
		return nil
	}
	if len(items) == 0 {
		p.problem(n.Line, key, "an empty list, want at least one entry")
	}
	var out []string
	for i, item := range items {
		var s string
		if p.text(&s, item, key+"["+strconv.Itoa(i)+"]") {
			out = append(out, s)
		}
	}
	return out
}

// choice wants one of a few words.
func (p *parser) choice(out *string, n *yaml.Node, key string, allowed []string) {
	v := deref(n)
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
		for _, a := range allowed {
			if v.Value == a {
				*out = a
				return
			}
		}
	}
	p.problem(n.Line, key, "%s, want %s", describe(n), alternatives(allowed))
}

func alternatives(allowed []string) string {
	if len(allowed) == 1 {
		return allowed[0]
	}
	return "one of " + strings.Join(allowed, ", ")
}

func (p *parser) folders(n *yaml.Node, key string, least int, find func(base, dir string) (string, error)) []string {
	items, ok := p.list(n, key, "a list of folders")
	if !ok {
		return nil
	}
	if len(items) < least {
		p.problem(n.Line, key, "an empty list, want at least one folder")
	}
	var out []string
	for i, item := range items {
		at := key + "[" + strconv.Itoa(i) + "]"
		var s string
		if !p.text(&s, item, at) {
			continue
		}
		if dir := p.resolved(s, item.Line, at, find); dir != "" {
			out = append(out, dir)
		}
	}
	return out
}

// resolved finds a folder; "" after a problem. A root of "/" would own every file there is.
func (p *parser) resolved(dir string, line int, key string, find func(base, dir string) (string, error)) string {
	found, err := find(p.base, dir)
	switch {
	case err != nil:
		p.problem(line, key, "%v", err)
		return ""
	case found == "/":
		p.problem(line, key, "%q is the whole file system, want a folder below it", dir)
		return ""
	}
	return found
}
