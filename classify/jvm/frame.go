package jvm

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// frame parses "\tat module/com.acme.Main.run(Main.java:12) ~[acme.jar:1.2]".
func frame(l string) (classify.Frame, bool) {
	t, ok := strings.CutPrefix(strings.TrimLeft(l, " \t"), "at ")
	if !ok {
		return classify.Frame{}, false
	}
	open := strings.IndexByte(t, '(')
	if open <= 0 {
		return classify.Frame{}, false
	}
	end := strings.IndexByte(t[open:], ')')
	name := t[:open]
	if strings.ContainsAny(name, " \t") {
		return classify.Frame{}, false // a frame of another runtime
	}
	if end < 0 {
		return cutFrame(name)
	}
	src := t[open+1 : open+end]
	if !source(src) {
		return classify.Frame{}, false
	}
	class, method, ok := splitFrame(name)
	if !ok {
		return classify.Frame{}, false
	}
	fr := classify.Frame{Function: method, Unit: outer(class), Origin: origin(class)}
	if at := strings.LastIndexByte(src, ':'); at > 0 {
		if n, err := strconv.Atoi(src[at+1:]); err == nil {
			fr.File, fr.Line = src[:at], n
		}
	}
	if fr.File == "" && strings.Contains(src, ".") {
		fr.File = src
	}
	return fr, true
}

// cutFrame takes a frame whose end the tail has lost, if its class is whole.
func cutFrame(name string) (classify.Frame, bool) {
	class, method, ok := splitFrame(name)
	if !ok {
		return classify.Frame{}, false
	}
	return classify.Frame{Function: method, Unit: outer(class), Origin: origin(class)}, true
}

// source reports what stands in the brackets of a frame. Frames of other runtimes have parameters or paths there.
func source(s string) bool {
	switch s {
	case "Native Method", "Unknown Source", "<generated>", "SourceFile":
		return true
	}
	s = strings.TrimSuffix(s, "(Compiled Code)")
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		at = len(s)
	} else if s[at+1:] == "" || strings.Trim(s[at+1:], "-0123456789") != "" {
		return false
	}
	file := s[:at]
	if file == "SourceFile" || file == "<generated>" || file == "Unknown Source" {
		return true
	}
	for _, ext := range [...]string{".java", ".kt", ".kts", ".scala", ".groovy", ".clj", ".gradle"} {
		if strings.HasSuffix(file, ext) {
			return true
		}
	}
	// Generated code names a source without an ending, always with a line.
	return at < len(s) && file != "" && !strings.ContainsAny(file, "/\\. ,") && file[0] >= 'A' && file[0] <= 'Z'
}

// splitFrame takes loader and module off a frame's name and cuts it into class and method.
func splitFrame(name string) (class, method string, ok bool) {
	// The numbers of hidden classes hold a slash: "Main$$Lambda$14/0x0000000800c03000.run".
	head := name
	if at := strings.Index(name, "/0x"); at > 0 {
		end := strings.IndexByte(name[at+1:], '.')
		if end < 0 {
			return "", "", false
		}
		head = name[:at] + name[at+1+end:]
	}
	head = head[strings.LastIndexByte(head, '/')+1:]
	at := strings.LastIndexByte(head, '.')
	if at <= 0 || at+1 == len(head) {
		return "", "", false
	}
	class, method = head[:at], head[at+1:]
	if !className(class) {
		return "", "", false
	}
	return class, method, true
}

// className reports a dotted name of letters, digits, dollars, dashes and underscores.
func className(s string) bool {
	if s == "" || s[0] == '.' || s[len(s)-1] == '.' || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if c != '.' && c != '_' && c != '$' && c != '-' && c < 0x80 && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return !strings.Contains(s, "..")
}

// outer is a class without its nested parts.
func outer(class string) string {
	simple := strings.LastIndexByte(class, '.') + 1
	if at := strings.IndexByte(class[simple:], '$'); at > 0 {
		return class[:simple+at]
	}
	return class
}

// splitName cuts a class into package and simple name; of a nested class the name is the innermost.
func splitName(class string) (pkg, name string) {
	at := strings.LastIndexByte(class, '.')
	name = class[at+1:]
	if at > 0 {
		pkg = class[:at]
	}
	if d := strings.LastIndexByte(name, '$'); d > 0 && d+1 < len(name) {
		return outer(class), name[d+1:] // the class around it is what defines it
	}
	return pkg, name
}

// The packages of the platform and of the languages that compile to it: transparent for the question who asked.
var platformPackages = []string{"java.", "javax.", "jdk.", "sun.", "com.sun.", "kotlin.", "kotlinx.coroutines.", "scala.", "groovy.lang.", "org.codehaus.groovy.",
	"org.apache.groovy.", "clojure.lang.", "com.ibm.oti.", "org.graalvm."}

// The packages of test runners.
var testPackages = []string{"org.junit.", "junit.framework.", "junit.textui.", "org.testng.", "org.apache.maven.surefire.", "org.gradle.api.internal.tasks.testing.",
	"io.kotest.", "org.spockframework.", "io.cucumber.", "org.scalatest.", "com.intellij.rt.junit.", "com.intellij.junit4.", "worker.org.gradle.process.", "munit."}

// Launchers load the program that they are told to and ask for nothing themselves.
var launcherPackages = []string{"org.springframework.boot.loader.", "org.codehaus.plexus.classworlds.launcher.", "org.tanukisoftware.wrapper.", "org.apache.commons.daemon.",
	"com.simontuffs.onejar.", "org.apache.felix.main.", "org.jboss.modules."}

// platform reports a class of the platform.
func platform(class string) bool { return anyPrefix(class, platformPackages) }

// anyPrefix reports whether s begins with one of the prefixes.
func anyPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// origin tells platform, test runner and installed code apart. A class of the host's own is recognised by its name before.
func origin(class string) classify.Origin {
	switch {
	case anyPrefix(class, testPackages):
		return classify.OriginTest
	case platform(class):
		return classify.OriginRuntime
	case !strings.Contains(class, "."):
		// Libraries have packages. What has none was typed by somebody: a script, a single file.
		return classify.OriginUser
	}
	return classify.OriginPackage
}

// loads reports a frame that loads classes or reads archives for a loader.
func loads(unit string) bool {
	switch unit {
	case "java.lang.ClassLoader", "java.net.URLClassLoader", "java.security.SecureClassLoader", "java.lang.Class":
		return true
	}
	return anyPrefix(unit, []string{"jdk.internal.loader.", "sun.misc.Launcher", "sun.misc.URLClassPath", "jdk.internal.module.", "org.springframework.boot.loader."})
}
