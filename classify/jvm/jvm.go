// Package jvm reads the failure texts of Java virtual machines: stack traces of HotSpot and OpenJ9, 8 to 25, and what the
// java launcher prints when it cannot start a program. Call [New] and give the result to [classify.New].
//
// It refuses nothing: text without a JVM's failure gives none. It promises that a trace which a log reports as handled,
// that a tool printed, or that stands in a test report never counts as a signature, and that parsing is linear.
package jvm

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the JVM. It has no state.
type Runtime struct{}

// New returns the JVM's runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime         = Runtime{}
	_ classify.Hinter          = Runtime{}
	_ classify.Speaker         = Runtime{}
	_ classify.StatementReader = Runtime{}
)

// Name is "jvm".
func (Runtime) Name() string { return "jvm" }

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	p := parser{log: log, lines: log.Lines}
	return p.last()
}

// hints are literals of which every text that Parse finds a failure in holds one.
var hints = [][]byte{
	[]byte("at "), []byte("Exception in thread "), []byte("Error: "), []byte("Error occurred during"), []byte("Java Runtime Environment"),
	[]byte("UncaughtExceptionHandler"), []byte("Error opening zip file"),
	[]byte(springFailed),
}

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Starts: []string{"at "}, Exact: []string{
		"Exception in thread ", "Error: ", "Error occurred during", "Java Runtime Environment", "UncaughtExceptionHandler", "Error opening zip file",
		springFailed,
	}}
}

// Hint implements [classify.Hinter].
func (Runtime) Hint(tail []byte) bool {
	for i, h := range hints {
		at := bytes.Index(tail, h)
		if at < 0 {
			continue
		}
		// "at " is a word of many sentences; a frame has a bracket somewhere behind it.
		if i > 0 || bytes.Contains(tail[at:], []byte(".java:")) || bytes.Contains(tail[at:], []byte("(Native Method)")) || bytes.Contains(tail[at:], []byte("(Unknown Source)")) ||
			frameInside(tail[at:]) {
			return true
		}
	}
	return false
}

// frameInside reports "(Name.ext:12)" of any language.
func frameInside(b []byte) bool {
	for from := 0; ; {
		at := bytes.IndexByte(b[from:], '(')
		if at < 0 {
			return false
		}
		from += at + 1
		end := bytes.IndexByte(b[from:min(len(b), from+200)], ')')
		if end > 0 && source(string(b[from:from+end])) {
			return true
		}
	}
}

// Statement implements [classify.StatementReader]: it finds the JVM's own error in a line that a program printed about
// itself.
func (Runtime) Statement(line string) *classify.Failure {
	at := inline(line)
	if at < 0 {
		return nil
	}
	typ, msg, ok := exception(line[at:])
	if !ok || !platform(typ) {
		return nil
	}
	f := &classify.Failure{Message: msg}
	f.TypeModule, f.Type = splitName(typ)
	read(f)
	if f.Kind == classify.KindOther {
		return nil
	}
	return f
}

// Module implements [classify.Runtime]: "com/acme/Main.class" is "com.acme.Main".
func (Runtime) Module(path string) string {
	path = strings.ReplaceAll(path, `\`, "/")
	for _, ext := range [...]string{".class", ".java", ".kt", ".scala", ".groovy"} {
		if stem, ok := strings.CutSuffix(path, ext); ok {
			return outer(strings.ReplaceAll(stem, "/", "."))
		}
	}
	return ""
}

// Files are the paths below a folder of classes, or in an archive, that may hold a class, the likeliest first.
func (Runtime) Files(module string) []string {
	path := strings.ReplaceAll(module, ".", "/")
	source := strings.ReplaceAll(outer(module), ".", "/")
	return []string{path + ".class", source + ".java", source + ".kt", source + ".scala", source + ".groovy"}
}
