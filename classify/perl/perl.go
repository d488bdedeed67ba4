// Package perl reads the failure texts of Perl programs: modules that are gone or of another version, compiled objects of
// another build, source that stops in the middle. Call [New] and give the result to [classify.New].
//
// It refuses to take a warning for a death where Perl's own wording tells them apart. It promises that the lines with which
// Perl repeats a failure on its way out ("Compilation failed in require") are read as the places that asked.
package perl

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/text"
)

// Runtime is the Perl runtime. It has no state.
type Runtime struct{}

// New returns the Perl runtime.
func New() Runtime { return Runtime{} }

var (
	_ classify.Runtime   = Runtime{}
	_ classify.PathUnits = Runtime{}
	_ classify.Hinter    = Runtime{}
	_ classify.Speaker   = Runtime{}
)

// Name is "perl".
func (Runtime) Name() string { return "perl" }

// Vocabulary implements [classify.Speaker].
func (Runtime) Vocabulary() classify.Vocabulary {
	return classify.Vocabulary{Exact: []string{" line ", "Can't open perl script", mismatched}}
}

// Hint implements [classify.Hinter]: every death but one has a place.
func (Runtime) Hint(tail []byte) bool {
	return bytes.Contains(tail, []byte(" line ")) && bytes.Contains(tail, []byte(" at ")) || bytes.Contains(tail, []byte("Can't open perl script")) || bytes.Contains(tail, []byte(mismatched))
}

// Module implements [classify.Runtime]: "Acme/Wire.pm" is Acme::Wire.
func (Runtime) Module(path string) string {
	if stem, ok := strings.CutSuffix(path, ".pm"); ok {
		return strings.ReplaceAll(stem, "/", "::")
	}
	return ""
}

// Package implements [classify.PathUnits]: what lies in a folder that CPAN installs into is named by its path there.
func (r Runtime) Package(path string) string {
	for _, d := range [...]string{"/lib/perl5/", "/share/perl5/", "/site_perl/", "/vendor_perl/"} {
		at := strings.LastIndex("/"+path, d)
		if at < 0 {
			continue
		}
		rest := path[at+len(d)-1:]
		// An architecture or a version may stand in front of the module.
		for {
			first, more, ok := strings.Cut(rest, "/")
			if !ok || first == "" || first[0] >= 'A' && first[0] <= 'Z' {
				break
			}
			if !strings.Contains(first, "-linux") && !strings.Contains(first, "darwin") && (first[0] < '0' || first[0] > '9') && first != "auto" {
				break
			}
			rest = more
		}
		if m := r.Module(rest); m != "" {
			return m
		}
		return rest
	}
	return ""
}

// origin is what a path says about a file.
func origin(path string) classify.Origin {
	if strings.HasPrefix(path, "(eval ") {
		return classify.OriginRuntime
	}
	if path == "-e" || path == "-" {
		return classify.OriginLauncher
	}
	for _, f := range [...]string{"/XSLoader.pm", "/DynaLoader.pm", "/Carp.pm", "/base.pm", "/parent.pm", "/Exporter.pm", "/Exporter/Heavy.pm", "/Module/Runtime.pm", "/Class/Load.pm", "/Module/Load.pm", "/AutoLoader.pm"} {
		if strings.HasSuffix(path, f) {
			return classify.OriginRuntime
		}
	}
	for _, d := range [...]string{"/perl-base/", "/perl/5.", "/lib/perl5/5.", "/lib/perl5/core_perl/", "/share/perl5/core_perl/"} {
		if strings.Contains(path, d) && !strings.Contains(path, "/site_perl/") && !strings.HasPrefix(path, "/usr/local/") {
			return classify.OriginRuntime
		}
	}
	for _, d := range [...]string{"/perl5/", "/site_perl/", "/vendor_perl/", "/usr/local/share/perl/", "/usr/local/lib/"} {
		if strings.Contains(path, d) {
			return classify.OriginPackage
		}
	}
	return classify.OriginUnknown
}

// Parse implements [classify.Runtime].
func (Runtime) Parse(log *text.Log) *classify.Failure {
	var found *classify.Failure
	for i := 0; i < len(log.Lines); {
		if f := block(log, i); f != nil {
			found = f
			i = f.Last + 1
			continue
		}
		i++
	}
	return found
}
