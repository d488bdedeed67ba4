package jvm

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// startup parses what the java launcher prints when it cannot start a program.
func (p *parser) startup(i int) (*classify.Failure, int) {
	l := p.lines[i]
	f := &classify.Failure{First: i, Line: i, Message: strings.TrimPrefix(l, "Error: "), Startup: true, Fatal: true}
	next := i + 1
	switch {
	case strings.HasPrefix(l, "Error: Invalid or corrupt jarfile "):
		return jarfile(f, strings.TrimPrefix(l, "Error: Invalid or corrupt jarfile "), classify.KindTorn), next
	case strings.HasPrefix(l, "Error: Unable to access jarfile "):
		return jarfile(f, strings.TrimPrefix(l, "Error: Unable to access jarfile "), classify.KindMissingModule), next
	case strings.HasPrefix(l, "Error: An unexpected error occurred while trying to open file "):
		return jarfile(f, strings.TrimPrefix(l, "Error: An unexpected error occurred while trying to open file "), classify.KindTorn), next
	case strings.HasPrefix(l, "Error opening zip file or JAR manifest missing"):
		_, path, _ := strings.Cut(l, " : ")
		return jarfile(f, path, classify.KindTorn), next
	case strings.HasPrefix(l, "Error: Main method not found in class "), strings.HasPrefix(l, "Error: Main method is not static in class "):
		_, rest, _ := strings.Cut(l, " in class ")
		lack(f, classOf(rest), "main")
		return f, next
	case strings.HasPrefix(l, "Error: Could not find or load main class "):
		missing(f, strings.TrimPrefix(l, "Error: Could not find or load main class "))
	case strings.HasPrefix(l, "Error: Unable to initialize main class "):
		missing(f, "")
		f.Kind, f.Cut = classify.KindOther, true
	case strings.HasPrefix(l, "Error: LinkageError occurred while loading main class "):
		f.Kind = classify.KindOther
	case strings.HasPrefix(l, "Error occurred during initialization of "):
	default:
		return nil, next
	}
	return p.started(f, i+1)
}

// jarfile is an archive that the launcher was told to run.
func jarfile(f *classify.Failure, path string, kind classify.Kind) *classify.Failure {
	path = strings.TrimSpace(path)
	f.Kind, f.File, f.FileIsUnit = kind, path, true
	f.Cut = !strings.HasSuffix(path, ".jar") && !strings.HasSuffix(path, ".war") && !strings.HasSuffix(path, ".jmod")
	return f
}

// started reads the exception behind the launcher's line, which says better what is wrong.
func (p *parser) started(f *classify.Failure, i int) (*classify.Failure, int) {
	if i >= len(p.lines) {
		return f, i
	}
	head := strings.TrimLeft(p.lines[i], " \t")
	caused := causeOf(head) != ""
	if caused {
		head = causeOf(head)
	}
	typ, msg, ok := exception(head)
	if !ok || !caused && !platform(typ) {
		if f.Message == p.lines[i-1] && says(p.lines[i], "Could not reserve", "insufficient memory", "Could not allocate") {
			f.Listed = classify.OOM
			return f, i + 1
		}
		return f, i
	}
	k := link{typ: typ, msg: msg, line: i}
	next := i + 1
	if p.framed(next) || strings.HasSuffix(typ, ".VerifyError") {
		next = p.message(&k, next)
	}
	links, next := p.links(k, next)
	g := chained(links, p.dead)
	if g.Unnamed {
		if _, main, ok := strings.Cut(f.Message, " main class "); ok {
			g.Module, g.Unnamed = classOf(main), false
		}
	}
	g.First, g.Startup, g.Fatal = f.First, true, true
	return g, next
}

// machine parses what the virtual machine prints about itself: a crash, a lack of memory, a handler that died too.
func (p *parser) machine(i int) (*classify.Failure, int) {
	l := p.lines[i]
	f := &classify.Failure{First: i, Line: i, Message: strings.TrimLeft(l, "# "), Fatal: true}
	switch {
	case strings.HasPrefix(l, "# A fatal error has been detected by the Java Runtime Environment"):
		f.Kind = classify.KindCrash
	case strings.HasPrefix(l, "# There is insufficient memory for the Java Runtime Environment"):
		f.Listed = classify.OOM
	case strings.HasPrefix(l, "Exception: ") && strings.Contains(l, " thrown from the UncaughtExceptionHandler in thread "):
		typ, _, _ := strings.Cut(strings.TrimPrefix(l, "Exception: "), " ")
		f.TypeModule, f.Type = splitName(typ)
		read(f)
		return f, i + 1
	default:
		return nil, i + 1
	}
	// The report goes on as long as the lines are marked.
	for i++; i < len(p.lines) && strings.HasPrefix(p.lines[i], "#"); i++ {
	}
	return f, i
}

// says reports whether s holds one of the words.
func says(s string, words ...string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
