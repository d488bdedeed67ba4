package dotnet

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// frame parses "   at Acme.Host.Program.Main(String[] args) in /src/Program.cs:line 31" and Mono's
// "  at Acme.Host.Program.Main (System.String[] args) [0x0000f] in <hash>:0".
func frame(l string) (classify.Frame, bool) {
	t, ok := strings.CutPrefix(strings.TrimLeft(l, " \t"), "at ")
	if !ok {
		return classify.Frame{}, false
	}
	// "(wrapper managed-to-native) Acme.Native.open(int)"
	if strings.HasPrefix(t, "(wrapper ") {
		_, t, _ = strings.Cut(t, ") ")
	}
	open := strings.IndexByte(t, '(')
	if open <= 0 {
		return classify.Frame{}, false
	}
	name, rest := strings.TrimSpace(t[:open]), t[open+1:]
	end := strings.IndexByte(rest, ')')
	if end < 0 || foreign(rest[:end]) {
		return classify.Frame{}, false
	}
	class, method, ok := splitFrame(name)
	if !ok {
		return classify.Frame{}, false
	}
	fr := classify.Frame{Function: method, Unit: class, Origin: origin(class), Built: true}
	if at := strings.LastIndex(rest, " in "); at >= end {
		place(&fr, strings.TrimSpace(rest[at+len(" in "):]))
	}
	return fr, true
}

// foreign reports what frames of other runtimes have in their brackets: files and lines.
func foreign(s string) bool {
	return strings.ContainsAny(s, ":/") || s == "Native Method" || s == "Unknown Source" || strings.HasSuffix(s, ".java") || strings.HasSuffix(s, ".kt") || strings.HasPrefix(s, "index ")
}

// place reads "/src/Program.cs:line 31", and "/src/Program.cs:31" of Mono.
func place(fr *classify.Frame, s string) {
	if strings.HasPrefix(s, "<") {
		return
	}
	at := strings.LastIndex(s, ":line ")
	skip := len(":line ")
	if at < 0 {
		at, skip = strings.LastIndexByte(s, ':'), 1
	}
	if at <= 0 {
		return
	}
	if n, err := strconv.Atoi(s[at+skip:]); err == nil {
		fr.File, fr.Line = s[:at], n
	}
}

// entry is the class that the compiler makes of a program without one, outside of every namespace.
const entry = "Program"

// splitFrame cuts the name of a frame into class and method. What the compiler made up belongs to the class around it.
func splitFrame(name string) (class, method string, ok bool) {
	if strings.ContainsAny(name, " \t") && !strings.Contains(name, "[") {
		return "", "", false
	}
	switch {
	case strings.Contains(name, ".<"):
		at := strings.Index(name, ".<")
		class, method = name[:at], name[at+1:]
	case strings.HasPrefix(name, "<"):
		return "", "", false
	case strings.HasSuffix(name, "..ctor"), strings.HasSuffix(name, "..cctor"):
		at := strings.LastIndex(name, "..")
		class, method = name[:at], name[at+1:]
	default:
		// Type arguments of the method: "Run[T]".
		head := name
		if strings.HasSuffix(head, "]") {
			if at := strings.LastIndexByte(head, '['); at > 0 {
				head = strings.TrimSpace(head[:at])
			}
		}
		at := strings.LastIndexByte(head, '.')
		if at <= 0 {
			return entry, head, head == name
		}
		class, method = head[:at], head[at+1:]
	}
	class = outer(class)
	return class, method, class != "" && method != ""
}

// outer is a class without nested parts and type arguments.
func outer(class string) string {
	if at := strings.IndexAny(class, "+`[<"); at >= 0 {
		class = class[:at]
	}
	return strings.Trim(class, ". ")
}

// origin tells the runtime, test runners and installed code apart.
func origin(class string) classify.Origin {
	for _, p := range [...]string{"Xunit.", "NUnit.", "Microsoft.VisualStudio.TestPlatform.", "Microsoft.TestPlatform.", "TechTalk.SpecFlow.", "Reqnroll."} {
		if strings.HasPrefix(class, p) {
			return classify.OriginTest
		}
	}
	for _, p := range [...]string{"System.", "Interop.", "Internal.", "Mono.", "Microsoft.Win32.", "Microsoft.CSharp.", "Microsoft.VisualBasic.", "Microsoft.FSharp."} {
		if strings.HasPrefix(class, p) || class == strings.TrimSuffix(p, ".") {
			return classify.OriginRuntime
		}
	}
	if class == entry {
		return classify.OriginUnknown // at the foot of a stack it is what the process was started as
	}
	return classify.OriginPackage
}

// standard reports an assembly or a type of the framework.
func standard(name string) bool {
	return strings.HasPrefix(name, "System.") || name == "System" || name == "mscorlib" || name == "netstandard" || strings.HasPrefix(name, "Microsoft.NETCore.") ||
		strings.HasPrefix(name, "Microsoft.AspNetCore.") || strings.HasPrefix(name, "Microsoft.Win32.") || name == "Microsoft.CSharp"
}
