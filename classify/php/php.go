// Package php reads the failure texts of PHP processes, PHP 7 and 8 with Composer, phars and extensions. Call [New] and give
// the result to [classify.New].
//
// It refuses to take a warning or a notice for a death; they only explain the fatal error that follows. It promises that an
// exception is read with its chain, and that parsing is linear in the text it is given.
package php

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the PHP runtime. It has no state.
type Runtime struct{}

// New returns the PHP runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime   = Runtime{}
	_ classify.PathUnits = Runtime{}
	_ classify.Hinter    = Runtime{}
	_ classify.Speaker   = Runtime{}
)

// Name is "php".
func (Runtime) Name() string { return "php" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Exact: []string{"Fatal error", "Parse error", "PHP ", "input file: ", attached}, Starts: []string{"#0 "}}
}

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	return bytes.Contains(tail, []byte("Fatal error")) || bytes.Contains(tail, []byte("Parse error")) || bytes.Contains(tail, []byte("PHP ")) || bytes.Contains(tail, []byte("#0 ")) || bytes.Contains(tail, []byte("input file: ")) || bytes.Contains(tail, []byte(attached))
}

// Module implements [classify.Runtime]: "Acme/Wire/Frame.php" would hold `Acme\Wire\Frame`.
func (Runtime) Module(path string) string {
	if stem, ok := strings.CutSuffix(path, ".php"); ok {
		return strings.ReplaceAll(stem, "/", `\`)
	}
	return ""
}

// Package implements [classify.PathUnits]: a file below vendor/NAME/PACKAGE belongs to that package, which is written here
// as a namespace would be, so that a pattern can own it.
func (Runtime) Package(path string) string {
	at := strings.LastIndex("/"+path, "/vendor/")
	if at < 0 {
		return ""
	}
	parts := strings.Split(path[at+len("vendor/"):], "/")
	if len(parts) < 3 {
		return "" // the autoloader's own files
	}
	return studly(parts[0]) + `\` + studly(parts[1])
}

// studly turns a package's name into the form of a namespace: "acme-http" is "AcmeHttp".
func studly(s string) string {
	var b strings.Builder
	up := true
	for _, c := range []byte(s) {
		switch {
		case c == '-' || c == '_' || c == '.':
			up = true
			continue
		case up && c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		}
		up = false
		b.WriteByte(c)
	}
	return b.String()
}

// file is the path that counts for a printed one: of a file in a phar the phar, of evaluated code the file around it.
func file(p string) string {
	p = strings.TrimSpace(p)
	if at := strings.Index(p, " : eval()'d code"); at > 0 {
		p = p[:at]
	}
	if at := strings.IndexByte(p, '('); at > 0 && strings.HasSuffix(p, "eval()'d code") {
		p = p[:at]
	}
	if rest, ok := strings.CutPrefix(p, "phar://"); ok {
		if at := strings.Index(rest, ".phar/"); at >= 0 {
			return rest[:at+len(".phar")]
		}
		return rest
	}
	return p
}

// origin is what a path says about a file.
func origin(path string) classify.Origin {
	switch {
	case strings.Contains(path, "/vendor/composer/"), strings.HasSuffix(path, "/vendor/autoload.php"):
		return classify.OriginRuntime
	case strings.Contains(path, "/vendor/"), strings.HasPrefix(path, "/usr/share/php/"):
		return classify.OriginPackage
	case path == "Command line code" || path == "Standard input code" || path == "php shell code":
		return classify.OriginLauncher
	}
	return classify.OriginUnknown
}

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log}
	return p.last()
}
