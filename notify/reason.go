package notify

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Severity says how much a reason asks of a person. It does not decide whether a notice is loud; the decision that
// carries the reason does.
type Severity string

// The severities.
const (
	Low    Severity = "low"    // for the record: nothing to do
	Medium Severity = "medium" // worth a look
	High   Severity = "high"   // a person has to act, or nothing more happens
)

// Info is what is said of one reason code wherever it appears: ledger, report, metric label, JSON and notice.
type Info struct {
	Code string `json:"code"`
	// Title is a short phrase that begins in upper case and has no full stop. It contains neither "fail" nor "error".
	Title string `json:"title"`
	// Text is one or two plain sentences.
	Text     string   `json:"text"`
	Severity Severity `json:"severity"`
	// Doc is where the documentation explains the code, relative to the repository.
	Doc string `json:"doc"`
	// Known is false for a code that the catalogue does not have, as from a host's launcher or a newer version.
	Known bool `json:"known"`
}

// docPage is the page that explains every code under a heading of its name.
const docPage = "notify/reasons.md#"

// Reason explains a code. A code that is not in the catalogue is turned into words, so that something readable stands
// wherever a reason does; the empty code gives an empty Info.
func Reason(code string) Info {
	if code == "" {
		return Info{}
	}
	for _, e := range catalogue() {
		if e.code == code {
			return e.info()
		}
	}
	title := humanise(code)
	if !calm(title) {
		title = "Another reason"
	}
	return Info{
		Code: code, Title: title, Severity: Medium, Doc: docPage + "other",
		Text: "The reason given is \"" + Line(code, 80) + "\", which this version has no text for.",
	}
}

// Reasons is the whole catalogue, for documentation and for hosts that translate it.
func Reasons() []Info {
	t := catalogue()
	all := make([]Info, len(t))
	for i, e := range t {
		all[i] = e.info()
	}
	return all
}

// humanise turns a code into words: "third_party-abi" becomes "Third party abi".
func humanise(code string) string {
	// Redacted first: a token is known by the very characters that are replaced here.
	s := Line(strings.NewReplacer("_", " ", "-", " ").Replace(Redact(code)), 60)
	if s == "" {
		return "Another reason"
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
