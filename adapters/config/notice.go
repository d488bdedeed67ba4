package config

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// NoticeBlock is the name of the block that says how sessions are told of a restart. It may be absent.
const NoticeBlock = "restart_notice"

// noticeDefaults are the defaults of the block, as they would be written.
func noticeDefaults() bootnotice.Config {
	return bootnotice.Config{
		Target: bootnotice.Primary, Mode: bootnotice.Wake, Grace: bootnotice.DefaultGrace, Wait: bootnotice.DefaultWait,
		Ignore: bootnotice.DefaultIgnore(),
	}
}

// noticeKeys are the keys of the block, in the order in which they are documented.
func noticeKeys() []string {
	return []string{"enabled", "target", "mode", "grace_seconds", "wait_seconds", "ignored_prefixes", "text", "dir"}
}

// notice reads the block.
func (p *parser) notice(c *bootnotice.Config, dir *string, n *yaml.Node) {
	pairs, ok := p.mapping(n, NoticeBlock)
	if !ok {
		return
	}
	for _, kv := range pairs {
		key := NoticeBlock + "." + kv.key
		switch kv.key {
		case "enabled":
			on := true
			p.boolean(&on, kv.value, key)
			c.Disabled = !on
		case "target":
			p.target(&c.Target, kv.value, key)
		case "mode":
			mode := string(c.Mode)
			p.choice(&mode, kv.value, key, []string{string(bootnotice.Wake), string(bootnotice.Inject)})
			c.Mode = bootnotice.Mode(mode)
		case "grace_seconds":
			p.orNone(&c.Grace, kv.value, key)
		case "wait_seconds":
			p.orNone(&c.Wait, kv.value, key)
		case "ignored_prefixes":
			c.Ignore = p.prefixes(kv.value, key)
		case "text":
			p.text(&c.Text, kv.value, key)
		case "dir":
			var text string
			if p.text(&text, kv.value, key) {
				*dir = p.resolved(text, kv.value.Line, key, p.future)
			}
		default:
			p.problem(kv.line, key, "no such key, want one of %s", strings.Join(noticeKeys(), ", "))
		}
	}
}

// target is one of two words, or a session's id.
func (p *parser) target(out *string, n *yaml.Node, key string) {
	v := deref(n)
	if v.Kind != yaml.ScalarNode || v.ShortTag() != "!!str" || session.CheckName(v.Value) != nil {
		p.problem(n.Line, key, "%s, want %s, %s or the id of a session", describe(n), bootnotice.Primary, bootnotice.All)
		return
	}
	*out = v.Value
}

// orNone reads seconds of which zero means not at all: bootnotice takes its own zero for the default.
func (p *parser) orNone(out *time.Duration, n *yaml.Node, key string) {
	p.seconds(out, n, key, 0)
	if *out == 0 {
		*out = -1
	}
}

// prefixes are texts of which there may be none.
func (p *parser) prefixes(n *yaml.Node, key string) []string {
	if v := deref(n); v.Kind == yaml.SequenceNode && len(v.Content) == 0 {
		return []string{}
	}
	return p.texts(n, key)
}
