package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// chained builds the failure of a printed chain, its outermost exception first. Exceptions that only carry another one are
// left out: what they carry decides.
func chained(links []link, dead map[string]*classify.Failure) *classify.Failure {
	stacks := complete(links)
	at := 0
	carried := "" // the class whose loading or initialising a left out link was about
	for at+1 < len(links) {
		named, open := envelope(links, at)
		if !open {
			break
		}
		if named != "" {
			carried = named
		}
		stacks[at+1] = joined(stacks[at], stacks[at+1])
		at++
	}
	root := failure(links[at], stacks[at], carried)
	if root.Message == initialised(links[at].msg) && root.Kind == classify.KindOther && at+1 == len(links) {
		if f := dead[outer(classOf(strings.TrimPrefix(root.Message, couldNot)))]; f != nil {
			return echo(root, f)
		}
	}
	if root.FileIsUnit && at+1 < len(links) && strings.HasPrefix(links[at+1].msg, "Unsupported major.minor version") {
		root.Kind, root.Object = classify.KindBinding, root.File // a whole one, of another release
	}
	f := root
	for i := at + 1; i < len(links) && !f.FileIsUnit; i++ {
		if sameClass(links[i-1], links[i]) {
			continue // the loader's own word for the same
		}
		c := failure(links[i], stacks[i], "")
		f.Cause = c
		f = c
	}
	return root
}

// couldNot begins what the JVM says of a class whose initialiser has failed before.
const couldNot = "Could not initialize class "

// initialised is the message if it is that one.
func initialised(msg string) string {
	if strings.HasPrefix(msg, couldNot) {
		return msg
	}
	return "\x00"
}

// echo is the failure of an initialiser with the frames of the one who asked for its class later.
func echo(late, first *classify.Failure) *classify.Failure {
	f := *first
	f.Line, f.Survived = late.Line, false
	return &f
}

// complete gives every link its whole stack, outermost first. A cause prints only the frames that its wrapper has not.
func complete(links []link) [][]classify.Frame {
	out := make([][]classify.Frame, len(links))
	for i, k := range links {
		n := 0
		if i > 0 {
			n = min(k.more, len(out[i-1]))
		}
		st := make([]classify.Frame, 0, n+len(k.frames))
		if n > 0 {
			st = append(st, out[i-1][:n]...)
		}
		for j := len(k.frames) - 1; j >= 0; j-- {
			st = append(st, k.frames[j])
		}
		out[i] = st
	}
	return out
}

// joined puts the frames that lead to a wrapper in front of those of what it carries.
func joined(wrapper, inner []classify.Frame) []classify.Frame {
	n := 0
	for n < len(wrapper) && n < len(inner) && wrapper[n] == inner[n] {
		n++
	}
	if n == len(wrapper) || n > 0 {
		return inner // the same thread: what the wrapper has besides is where it was thrown again
	}
	return append(append(make([]classify.Frame, 0, len(wrapper)+len(inner)), wrapper...), inner...)
}

// envelope reports whether the exception at i says nothing that the one below it does not say better. named is the class
// that it was about.
func envelope(links []link, i int) (named string, open bool) {
	k, in := links[i], links[i+1]
	if _, ok := listed[k.typ]; ok {
		return "", false
	}
	simple := k.typ[strings.LastIndexByte(k.typ, '.')+1:]
	switch simple {
	case "", "InvocationTargetException", "UndeclaredThrowableException", "ExecutionException", "CompletionException", "ExceptionInInitializerError",
		"BootstrapMethodError", "PrivilegedActionException", "ClassNotFoundException", "NoClassDefFoundError":
		named = classOf(k.msg)
		if simple == "NoClassDefFoundError" && strings.HasPrefix(k.msg, couldNot) {
			return "", true
		}
		if simple == "ClassNotFoundException" || simple == "NoClassDefFoundError" {
			// A class that is not there, because it is not there. Anything else below is the reason.
			deepest := ""
			for _, d := range links[i+1:] {
				if s := d.typ[strings.LastIndexByte(d.typ, '.')+1:]; s != "ClassNotFoundException" && s != "NoClassDefFoundError" || classOf(d.msg) != named {
					deepest = s
				}
			}
			return named, deepest != ""
		}
		return "", true
	case "ServiceConfigurationError":
		return "", linkage(in.typ)
	}
	if k.msg == "" || k.msg == strings.TrimSuffix(in.typ+": "+in.msg, ": ") || strings.HasSuffix(k.msg, "nested exception is "+strings.TrimSuffix(in.typ+": "+in.msg, ": ")) {
		return "", true
	}
	// The virtual machine itself raises these, so no wrapper of anybody outweighs them.
	for _, d := range links[i+1:] {
		if linkage(d.typ) && !strings.HasPrefix(d.msg, couldNot) {
			return "", true
		}
	}
	return "", false
}

// linkage reports the errors of the virtual machine's linker.
func linkage(typ string) bool {
	switch typ {
	case "java.lang.NoClassDefFoundError", "java.lang.NoSuchMethodError", "java.lang.NoSuchFieldError", "java.lang.AbstractMethodError", "java.lang.IllegalAccessError",
		"java.lang.IncompatibleClassChangeError", "java.lang.UnsupportedClassVersionError", "java.lang.ClassFormatError", "java.lang.VerifyError",
		"java.lang.UnsatisfiedLinkError", "java.lang.ClassCircularityError", "java.lang.InstantiationError":
		return true
	}
	return false
}

// sameClass reports a pair that says twice that one class is not there.
func sameClass(a, b link) bool {
	return strings.HasSuffix(b.typ, ".ClassNotFoundException") && (strings.HasSuffix(a.typ, ".NoClassDefFoundError") || strings.HasSuffix(a.typ, ".ClassNotFoundException")) &&
		classOf(a.msg) == classOf(b.msg)
}

// failure is one exception as the rules know it.
func failure(k link, frames []classify.Frame, carried string) *classify.Failure {
	f := &classify.Failure{Message: k.msg, Frames: frames, First: k.line, Line: k.line, Last: k.line}
	f.TypeModule, f.Type = splitName(k.typ)
	// The note that the JVM keeps of an initialiser's failure: "Exception some.Type: message [in thread "main"]".
	if rest, ok := strings.CutPrefix(k.msg, "Exception "); ok && f.Type == "ExceptionInInitializerError" {
		if at := strings.LastIndex(rest, " [in thread "); at > 0 {
			rest = rest[:at]
		}
		if typ, msg, ok := exception(rest); ok {
			f.TypeModule, f.Type = splitName(typ)
			f.Message = msg
		}
	}
	read(f)
	if f.Kind == classify.KindOther && carried != "" && archive(f, f.Message) {
		f.Kind, f.Unnamed, f.Loading = classify.KindTorn, true, true // whoever reads, it was for that class
	}
	if f.Unnamed && carried != "" {
		f.Module, f.Unnamed = carried, false
	}
	return f
}
