package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// read sets the kind of a failure and the class and member that it names, by its type and message.
func read(f *classify.Failure) {
	if r, ok := listed[f.TypeModule+"."+f.Type]; ok {
		f.Listed = r
		return
	}
	m := f.Message
	first, _, _ := strings.Cut(m, "\n")
	switch f.TypeModule {
	case "java.lang":
		language(f, first)
	case "java.lang.reflect", "java.lang.invoke":
		if f.Type == "WrongMethodTypeException" {
			f.Kind = classify.KindSignature
		}
	case "java.lang.module":
		modules(f, first)
	case "java.io":
		stored(f, first)
	case "java.util":
		if f.Type == "ServiceConfigurationError" {
			// "com.acme.Spi: Provider com.acme.Impl not found"
			if _, rest, ok := strings.Cut(first, ": Provider "); ok && strings.HasSuffix(rest, " not found") {
				missing(f, strings.TrimSuffix(rest, " not found"))
			}
		}
	case "groovy.lang":
		switch f.Type {
		case "MissingMethodException":
			f.Kind = classify.KindSignature
		case "MissingPropertyException":
			f.Kind = classify.KindUndefined
		}
	}
	if archive(f, first) && loading(f.Frames) {
		f.Kind, f.Unnamed, f.Loading = classify.KindTorn, true, true
	}
}

// listed are the types of the platform that are on the never list by their name alone.
var listed = map[string]classify.Reason{
	"java.lang.OutOfMemoryError": classify.OOM,

	"java.net.http.HttpTimeoutException": classify.Timeout, "java.net.http.HttpConnectTimeoutException": classify.Timeout, "java.net.SocketTimeoutException": classify.Timeout,
	"java.util.concurrent.TimeoutException": classify.Timeout, "java.sql.SQLTimeoutException": classify.Timeout, "java.nio.channels.InterruptedByTimeoutException": classify.Timeout,

	"java.lang.InterruptedException": classify.Killed, "java.util.concurrent.CancellationException": classify.Killed, "java.lang.ThreadDeath": classify.Killed,
	"java.nio.channels.ClosedByInterruptException": classify.Killed,

	"java.net.UnknownHostException": classify.ProviderError, "java.net.ConnectException": classify.ProviderError, "java.net.NoRouteToHostException": classify.ProviderError,
	"java.net.HttpRetryException": classify.ProviderError, "javax.net.ssl.SSLException": classify.ProviderError, "javax.net.ssl.SSLHandshakeException": classify.ProviderError,
	"javax.net.ssl.SSLPeerUnverifiedException": classify.ProviderError, "java.nio.channels.UnresolvedAddressException": classify.ProviderError,
}

// language reads the errors of java.lang.
func language(f *classify.Failure, m string) {
	switch f.Type {
	case "NoClassDefFoundError":
		if !strings.HasPrefix(m, couldNot) {
			missing(f, m)
		}
	case "ClassNotFoundException", "ClassCircularityError", "TypeNotPresentException":
		m = strings.TrimSuffix(strings.TrimPrefix(m, "Type "), " not present")
		missing(f, m)
	case "NoSuchMethodError":
		member(f, m)
	case "NoSuchFieldError":
		field(f, m)
	case "AbstractMethodError":
		abstract(f, m)
	case "IncompatibleClassChangeError", "InstantiationError":
		changed(f, m)
	case "IllegalAccessError":
		access(f, m)
	case "VerifyError":
		verify(f)
	case "UnsupportedClassVersionError":
		f.Kind, f.Module = classify.KindBinding, classOf(m)
	case "ClassFormatError":
		torn(f, m)
	case "SecurityException":
		// "SHA-256 digest error for com/acme/Main.class"
		if _, rest, ok := strings.Cut(m, " digest error for "); ok && strings.HasSuffix(rest, ".class") {
			f.Kind, f.Module, f.Loading = classify.KindTorn, classOf(strings.TrimSuffix(rest, ".class")), true
		}
	case "UnsatisfiedLinkError":
		native(f, m)
	case "ClassCastException", "NoSuchMethodException", "NoSuchFieldException", "InstantiationException", "IllegalAccessException":
		// What code looks up or casts by itself fails in every wrong program.
		f.Kind = classify.KindSignature
	case "IllegalArgumentException":
		if m == "wrong number of arguments" || strings.HasPrefix(m, "wrong number of arguments: ") || m == "argument type mismatch" || m == "object is not an instance of declaring class" ||
			strings.HasPrefix(m, "object of type ") && strings.Contains(m, " is not an instance of ") {
			f.Kind = classify.KindSignature
		}
	}
}

// missing is a class that is not there.
func missing(f *classify.Failure, m string) {
	f.Kind, f.Module, f.Loading = classify.KindMissingModule, classOf(m), true
	f.Standard = platform(f.Module)
	for i := len(f.Frames) - 1; i >= 0; i-- {
		fr := &f.Frames[i]
		if fr.Unit == "java.io.ObjectInputStream" {
			f.ByData = true
		}
		if fr.Origin != classify.OriginRuntime {
			f.Dynamic = anyPrefix(fr.Unit, launcherPackages)
			break
		}
	}
}

// lack is a member that a class does not have. Without a class it is the one that asked.
func lack(f *classify.Failure, class, symbol string) {
	f.Kind, f.Module, f.Symbol = classify.KindMissingName, class, symbol
	f.Standard = platform(class)
}

// member reads "'int com.acme.Frames.open(java.lang.String)'", and the older "com.acme.Frames.open(Ljava/lang/String;)I".
func member(f *classify.Failure, m string) {
	class, name := signature(m)
	lack(f, class, name)
}

// signature finds class and method in a printed signature of either age.
func signature(m string) (class, name string) {
	m = strings.Trim(strings.TrimSpace(m), "'\"")
	if at := strings.IndexByte(m, '('); at >= 0 {
		m = m[:at]
	}
	m = strings.TrimSpace(m)
	m = m[strings.LastIndexByte(m, ' ')+1:]
	at := strings.LastIndexByte(m, '.')
	if at <= 0 {
		return "", ""
	}
	return classOf(m[:at]), m[at+1:]
}

// field reads "Class com.acme.Frames does not have member field 'int MAX'", and the older "MAX".
func field(f *classify.Failure, m string) {
	if rest, ok := strings.CutPrefix(m, "Class "); ok && strings.Contains(rest, " does not have member field ") {
		lack(f, classOf(rest), lastName(rest))
		return
	}
	if strings.Contains(m, ".") && !strings.ContainsAny(m, " '") { // OpenJ9: "com/acme/Frames.MAX"
		at := strings.LastIndexByte(m, '.')
		lack(f, classOf(m[:at]), m[at+1:])
		return
	}
	lack(f, "", strings.Trim(m, "'"))
}

// lastName is the last word of a quoted signature at the end of a message.
func lastName(m string) string {
	m = strings.TrimRight(strings.TrimSpace(m), "'")
	return m[strings.LastIndexAny(m, " '")+1:]
}

// abstract reads which class lacks the method that its interface has got.
func abstract(f *classify.Failure, m string) {
	_, quoted, ok := strings.Cut(m, "'")
	if !ok {
		class, name := signature(m)
		lack(f, class, name)
		return
	}
	quoted, tail, _ := strings.Cut(quoted, "'")
	name, _, _ := strings.Cut(quoted, "(")
	name = name[strings.LastIndexByte(name, ' ')+1:]
	var class string
	if rest, ok := strings.CutPrefix(m, "Receiver class "); ok {
		class = hidden(rest)
	} else if at := strings.LastIndex(tail, " class "); at >= 0 { // "Missing implementation of resolved method '...' of abstract class X."
		class = classOf(tail[at+len(" class "):])
	} else if at := strings.LastIndex(tail, " interface "); at >= 0 {
		class = classOf(tail[at+len(" interface "):])
	} else {
		class, name = signature(quoted)
	}
	lack(f, class, name)
}

// hidden is the class at the beginning of a message; of a lambda's made-up class it is the one that wrote it.
func hidden(m string) string {
	c := classOf(m)
	if at := strings.Index(c, "$$"); at > 0 {
		c = c[:at]
	}
	return c
}

// changed reads what an incompatible change of a class says: the class that is not what its user was compiled for.
func changed(f *classify.Failure, m string) {
	f.Kind = classify.KindMissingName
	switch {
	case strings.HasPrefix(m, "Found class "), strings.HasPrefix(m, "Found interface "):
		_, rest, _ := strings.Cut(m[len("Found "):], " ")
		lack(f, classOf(rest), "")
	case strings.HasPrefix(m, "Class ") && strings.Contains(m, " does not implement the requested interface "):
		lack(f, hidden(m[len("Class "):]), "")
	case strings.HasPrefix(m, "Expected ") || strings.HasPrefix(m, "Method '"):
		class, name := signature(between(m))
		lack(f, class, name)
	case strings.Contains(m, " can not implement "), strings.Contains(m, " cannot implement "):
		_, rest, _ := strings.Cut(m, " implement ")
		lack(f, classOf(rest), "")
	case strings.Contains(m, " has interface ") && strings.Contains(m, " as super class"):
		_, rest, _ := strings.Cut(m, " has interface ")
		lack(f, classOf(rest), "")
	case strings.Contains(m, " cannot inherit from final class "):
		_, rest, _ := strings.Cut(m, " cannot inherit from final class ")
		lack(f, classOf(rest), "")
	case strings.Contains(m, " disagree on InnerClasses attribute"):
		lack(f, classOf(m), "")
	case f.Type == "InstantiationError":
		lack(f, classOf(m), "")
	default:
		lack(f, "", "")
	}
}

// between is the quoted part of a message, or what stands behind its last word for a kind of member.
func between(m string) string {
	if _, q, ok := strings.Cut(m, "'"); ok {
		q, _, _ = strings.Cut(q, "'")
		return q
	}
	for _, w := range [...]string{" method ", " field "} {
		if at := strings.LastIndex(m, w); at >= 0 {
			return m[at+len(w):]
		}
	}
	return m
}

// access reads which class or member is no longer open to its user.
func access(f *classify.Failure, m string) {
	// What stands in brackets behind it is about modules and loaders.
	if at := strings.LastIndex(m, " ("); at > 0 && strings.HasSuffix(m, ")") {
		m = m[:at]
	}
	switch {
	case strings.Contains(m, " because module "), strings.Contains(m, "does not export"):
		// The module graph of the command line, and no member.
		return
	case strings.Contains(m, " method ") || strings.Contains(m, " field "):
		q := between(m)
		if at := strings.Index(q, " from class "); at >= 0 {
			q = q[:at]
		}
		class, name := signature(q)
		lack(f, class, name)
	case strings.Contains(m, " access class ") || strings.Contains(m, " superclass ") || strings.Contains(m, " superinterface "):
		for _, w := range [...]string{" access class ", " superclass ", " superinterface "} {
			if _, rest, ok := strings.Cut(m, w); ok {
				lack(f, classOf(rest), "")
				return
			}
		}
	}
}

// verify finds the class whose code no longer fits the classes that it was compiled against.
func verify(f *classify.Failure) {
	for line := range strings.SplitSeq(f.Message, "\n") {
		t := strings.TrimSpace(line)
		at := strings.IndexByte(t, '(')
		if at > 0 && strings.Contains(t, "@") && strings.Contains(t[:at], ".") && !strings.ContainsAny(t[:at], " ") {
			class, _ := signature(t)
			lack(f, class, "")
			return
		}
	}
	// "(class: com/acme/Main, method: run signature: ()V) ..."
	if _, rest, ok := strings.Cut(f.Message, "(class: "); ok {
		lack(f, classOf(rest), "")
	}
}

// torn reads a class file that is no whole one.
func torn(f *classify.Failure, m string) {
	f.Kind, f.Loading = classify.KindTorn, true
	if _, rest, ok := strings.Cut(m, "class file "); ok && rest != "" {
		f.Module = classOf(rest)
		return
	}
	if c := classOf(m); strings.Contains(c, ".") && strings.Contains(m, "/") { // OpenJ9 names the class first
		f.Module = c
		return
	}
	f.Unnamed = true
}

// classOf is the class that a message begins with, with dots.
func classOf(m string) string {
	m = strings.TrimSpace(m)
	for _, w := range [...]string{"class ", "interface ", "'"} {
		m = strings.TrimPrefix(m, w)
	}
	if end := strings.IndexAny(m, " ,;:()'\n\t"); end >= 0 && !strings.HasPrefix(m, "[") {
		m = m[:end]
	}
	m = strings.TrimRight(m, ".")
	for strings.HasPrefix(m, "[") { // an array of the class
		m = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(m, "["), "L"), ";")
	}
	// The number of a hidden class stands behind a slash.
	if at := strings.Index(m, "/0x"); at > 0 {
		m = m[:at]
	}
	return strings.ReplaceAll(m, "/", ".")
}
