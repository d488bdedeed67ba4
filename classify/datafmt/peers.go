package datafmt

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// Versions of protocols that everybody speaks say nothing about the product.
var shared = []string{"http", "tls", "ssl", "ssh", "mcp", "lsp", "docker", "git ", "redis", "postgres", "mysql", "kafka", "amqp", "smtp", "websocket", "kernel", "glibc", "api version", "node ", "npm", "python"}

// talk are words for what goes between two peers, known words for what the one that speaks knows of it.
var (
	talk  = []string{"wire", "peer", "proto", "rpc", "ipc", "handshake", "daemon", "frame ", "envelope", "message type", "opcode"}
	known = []string{"this build", "compiled in", "knows", "we know", "understands", "supports", "supported", "expected", "we speak", "this one", "built with", "here "}
)

// peers reads, in lower case, what a program says of a peer of its own: that it sent or announced what this build does not
// know. All three must be there, the peer's words, what was sent, and what is known here.
func peers(m string) classify.Kind {
	if has(m, shared...) {
		return classify.KindOther
	}
	if !has(m, talk...) {
		return classify.KindOther
	}
	sent := has(m, " sent ", "announced", "received", " got ", "offers", "offered", "speaks", "unknown ", "replied", "requires")
	here := has(m, known...)
	if !sent || !here || len(numbers(m)) < 2 {
		return classify.KindOther
	}
	if !has(m, "value", "rev", "version", "schema", "enum", "field", "tag", "type", "opcode", "variant", "proto", "kind") {
		return classify.KindOther
	}
	// Equal numbers disagree about nothing.
	if n := numbers(m); allEqual(n) {
		return classify.KindOther
	}
	return classify.KindWire
}

// numbers are the whole numbers in a text, parts of dotted versions among them.
func numbers(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

func allEqual(n []string) bool {
	for _, x := range n {
		if x != n[0] {
			return false
		}
	}
	return true
}
