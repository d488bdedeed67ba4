package config

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/witness"
)

// parser walks the node tree instead of decoding it into structs: a node has its line, and the walk goes on after a
// problem, so that all are reported at once.
type parser struct {
	file    string
	base    string
	options Options
	// How folders are looked up; tests and fuzzing bring their own.
	folder, future func(base, dir string) (string, error)
	detect         func(dir, pkg string) string

	problems []Problem
}

func (p *parser) problem(line int, key, format string, args ...any) {
	p.problems = append(p.problems, Problem{File: p.file, Line: line, Key: key, Text: fmt.Sprintf(format, args...)})
}

func (p *parser) err() error {
	slices.SortStableFunc(p.problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	return &Error{Problems: p.problems}
}

// document reads a whole file.
func (p *parser) document(data []byte) Config {
	c := Default()
	var doc yaml.Node
	if strings.TrimSpace(string(data)) == "" {
		p.problem(0, "", "the file is empty, want the block %s: write \"%s: {}\" for the defaults", Block, Block)
		return c
	}
	if err := yaml.Load(data, &doc); err != nil {
		p.syntax(err)
		return c
	}
	top := &doc
	if doc.Kind == yaml.DocumentNode && len(doc.Content) == 1 {
		top = doc.Content[0]
	}
	if top.Kind != yaml.MappingNode {
		p.problem(top.Line, "", "%s, want blocks by name, %s among them", describe(top), Block)
		return c
	}
	var block, sessions, notice, self *yaml.Node
	var others []pair
	for _, kv := range p.pairs(top, "") {
		switch kv.key {
		case Block:
			block = kv.value
		case NoticeBlock:
			notice = kv.value
			p.notice(&c.Notice, &c.NoticeDir, notice)
		case SelfRestartBlock:
			self = kv.value
			p.selfRestart(&c.SelfRestart, self)
		case SessionsBlock:
			sessions = kv.value
		default:
			others = append(others, kv)
		}
	}
	if block == nil && sessions == nil && notice == nil && self == nil {
		p.problem(0, "", "there is no block %s: write \"%s: {}\" for the defaults, or name another file", Block, Block)
	}
	var present, presentSessions map[string]bool
	if block != nil {
		present = p.block(&c, block)
	}
	if sessions != nil {
		presentSessions = p.sessions(&c.Sessions, sessions)
	}
	p.slipped(others, Block, blockKeys(), present)
	p.slipped(others, SessionsBlock, slippedSessionKeys(), presentSessions)
	return c
}

// syntax reports a file that is no YAML.
func (p *parser) syntax(err error) {
	var one *yaml.LoadError
	var many *yaml.LoadErrors
	switch {
	case errors.As(err, &many):
		for _, e := range many.Errors {
			p.problem(e.Mark.Line, "", "not YAML: %s", strings.TrimPrefix(e.Message, "yaml: "))
		}
	case errors.As(err, &one):
		p.problem(one.Mark.Line, "", "not YAML: %s", strings.TrimPrefix(one.Message, "yaml: "))
	default:
		p.problem(0, "", "not YAML: %v", err)
	}
}

// slipped finds keys of ours beside their block.
func (p *parser) slipped(others []pair, block string, keys []string, present map[string]bool) {
	for _, kv := range others {
		if slices.Contains(keys, kv.key) && !present[kv.key] {
			p.problem(kv.line, kv.key, "it stands beside the block: move it into %s; if it belongs to another program, set it in %s as well", block, block)
		}
	}
}

// blockKeys are the keys of the block, in the order in which they are documented.
func blockKeys() []string {
	return []string{"enabled", "quiescence_seconds", "max_defer_seconds", "pending_resurface_seconds", "retention_days",
		"storm_max_per_episode", "storm_max_per_30m", "project", "workspaces", "roots", "probe_command", "notifiers", "packs"}
}

// block reads our block into c, and says which keys it has.
func (p *parser) block(c *Config, n *yaml.Node) map[string]bool {
	present := map[string]bool{}
	pairs, ok := p.mapping(n, Block)
	if !ok {
		return present
	}
	for _, kv := range pairs {
		present[kv.key] = true
		key := Block + "." + kv.key
		switch kv.key {
		case "enabled":
			p.boolean(&c.Enabled, kv.value, key)
		case "quiescence_seconds":
			p.seconds(&c.Quiescence, kv.value, key, 0)
		case "max_defer_seconds":
			p.seconds(&c.MaxDefer, kv.value, key, 1)
		case "pending_resurface_seconds":
			p.seconds(&c.Resurface, kv.value, key, 1)
		case "retention_days":
			p.days(&c.Retention, kv.value, key)
		case "storm_max_per_episode":
			p.count(&c.StormPerEpisode, kv.value, key)
		case "storm_max_per_30m":
			p.count(&c.StormPer30m, kv.value, key)
		case "project":
			p.text(&c.Project, kv.value, key)
		case "workspaces":
			c.Workspaces = p.folders(kv.value, key, 0, p.future)
		case "roots":
			c.Roots = p.roots(kv.value, key)
		case "probe_command":
			c.ProbeCommand = p.texts(kv.value, key)
		case "notifiers":
			c.Notifiers = p.notifiers(kv.value, key)
		case "packs":
			c.Packs = p.packs(kv.value, key)
		default:
			p.problem(kv.line, key, "no such key, want one of %s", strings.Join(blockKeys(), ", "))
		}
	}
	for i, r := range c.Roots {
		if r.Runtime == RuntimeCommand && len(c.ProbeCommand) == 0 {
			p.problem(n.Line, fmt.Sprintf("%s.roots[%d].runtime", Block, i), "%q needs probe_command, the command that tries a file given as its last argument", RuntimeCommand)
		}
	}
	return present
}

// packs reads a list of files, which may be empty. A relative one lies beside the config file.
func (p *parser) packs(n *yaml.Node, key string) []string {
	items, _ := p.list(n, key, "a list of files")
	var out []string
	for i, item := range items {
		var file string
		if !p.text(&file, item, fmt.Sprintf("%s[%d]", key, i)) {
			continue
		}
		if !filepath.IsAbs(file) {
			file = filepath.Join(p.base, file)
		}
		out = append(out, file)
	}
	return out
}

func (p *parser) seconds(out *time.Duration, n *yaml.Node, key string, least int64) {
	// A year is longer than any of these may sensibly be, and far from an overflow.
	const most = 365 * 24 * 3600
	if v, ok := p.integer(n, key, "a whole number of seconds", least, most); ok {
		*out = time.Duration(v) * time.Second
	}
}

func (p *parser) days(out *time.Duration, n *yaml.Node, key string) {
	if v, ok := p.integer(n, key, "a whole number of days", 0, 36500); ok {
		*out = time.Duration(v) * day
	}
}

func (p *parser) count(out *int, n *yaml.Node, key string) {
	if v, ok := p.integer(n, key, "a whole number", 1, 1_000_000); ok {
		*out = int(v)
	}
}

// roots reads the list of roots. Every root is looked at, also after a bad one.
func (p *parser) roots(n *yaml.Node, key string) []witness.Root {
	items, ok := p.list(n, key, "a list of roots")
	if !ok {
		return nil
	}
	var out []witness.Root
	lines := map[string]int{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", key, i)
		r := p.root(item, at)
		if first, dup := lines[r.Name]; dup && r.Name != "" {
			p.problem(item.Line, at+".name", "%q is the name of the root on line %d, want another", r.Name, first)
		} else {
			lines[r.Name] = item.Line
		}
		out = append(out, r)
	}
	return out
}

func (p *parser) root(n *yaml.Node, key string) witness.Root {
	var r witness.Root
	pairs, ok := p.mapping(n, key)
	if !ok {
		return r
	}
	lines := map[string]int{}
	for _, kv := range pairs {
		lines[kv.key] = kv.line
		at := key + "." + kv.key
		switch kv.key {
		case "name":
			p.text(&r.Name, kv.value, at)
		case "kind":
			p.choice(&r.Kind, kv.value, at, p.options.kinds())
		case "dirs":
			var declared []string
			r.Dirs = p.folders(kv.value, at, 1, func(base, dir string) (string, error) {
				declared = append(declared, dir)
				return p.folder(base, dir)
			})
			r.Declared = Declared(p.base, declared, r.Dirs)
		case "modules":
			r.Modules = p.texts(kv.value, at)
		case "bindings":
			r.Bindings = p.texts(kv.value, at)
		case "package":
			p.text(&r.Package, kv.value, at)
		case "runtime":
			p.choice(&r.Runtime, kv.value, at, p.options.runtimes())
		case "third_party":
			p.boolean(&r.ThirdParty, kv.value, at)
		default:
			p.problem(kv.line, at, "no such key, want one of name, kind, dirs, modules, bindings, package, runtime, third_party")
		}
	}
	p.complete(&r, n.Line, key, lines)
	return r
}

// complete checks what a root must have, and finds the kind of one that declares none. lines tells which keys stand in
// the file: one that is there and wrong was reported already.
func (p *parser) complete(r *witness.Root, line int, key string, lines map[string]int) {
	missing := func(field, want string) {
		if lines[field] == 0 {
			p.problem(line, key+"."+field, "missing, want %s", want)
		}
	}
	missing("name", "a name for the root")
	if lines["kind"] == 0 {
		switch {
		case len(r.Dirs) > 0:
			r.Kind = p.detect(r.Dirs[0], r.Package)
		case lines["package"] > 0:
			r.Kind = KindPackage
		}
	}
	switch want := NeedsPackage(r.Kind); {
	case want != "":
		missing("package", want)
	case lines["package"] > 0 && r.Kind != "" && !TakesPackage(r.Kind):
		p.problem(lines["package"], key+".package", "only roots of the kinds %s have one, this one is of kind %s", PackageKinds(), r.Kind)
	}
	// Without folders and modules no file and no name can ever be the root's own.
	missing("dirs", "the folders of the tree")
	if lines["modules"] == 0 && lines["bindings"] == 0 {
		p.problem(line, key+".modules", "missing, want the names of its modules (\"acme\" owns acme and all below it), or bindings")
	}
}

func (p *parser) notifiers(n *yaml.Node, key string) []Notifier {
	items, ok := p.list(n, key, "a list of notifiers")
	if !ok {
		return nil
	}
	kinds := []string{string(Terminal), string(Log), string(Inbox)}
	out := []Notifier{}
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", key, i)
		var kind, dir string
		line := item.Line
		if deref(item).Kind == yaml.ScalarNode {
			p.choice(&kind, item, at, kinds)
		} else if pairs, ok := p.mapping(item, at); ok {
			for _, kv := range pairs {
				switch kv.key {
				case "kind":
					p.choice(&kind, kv.value, at+".kind", kinds)
				case "dir":
					var text string
					if p.text(&text, kv.value, at+".dir") {
						dir = p.resolved(text, kv.value.Line, at+".dir", p.future)
					}
					line = kv.line
				default:
					p.problem(kv.line, at+"."+kv.key, "no such key, want kind or dir")
				}
			}
			if !slices.ContainsFunc(pairs, func(kv pair) bool { return kv.key == "kind" }) {
				p.problem(item.Line, at+".kind", "missing, want one of %s", strings.Join(kinds, ", "))
			}
		}
		switch {
		case kind == string(Inbox) && dir == "":
			p.problem(item.Line, at+".dir", "missing, want the folder of the inbox: {kind: inbox, dir: DIR}")
		case kind != "" && kind != string(Inbox) && dir != "":
			p.problem(line, at+".dir", "only an inbox has one, this one is %s", kind)
		}
		out = append(out, Notifier{Kind: NotifierKind(kind), Dir: dir})
	}
	return out
}
