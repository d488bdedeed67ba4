package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// native reads what loaders and compiled modules say inside an ImportError, and reports whether it was that.
func native(f *classify.Failure) bool {
	m := f.Message
	switch {
	case strings.HasPrefix(m, "dynamic module does not define "):
		// "module export function (PyInit_x)", "init function (initx)"
		f.Kind = classify.KindBinding
		if at := strings.IndexByte(m, '('); at >= 0 {
			f.Symbol, _, _ = strings.Cut(m[at+1:], ")")
		}
		f.Module = strings.TrimPrefix(f.Symbol, "PyInit_")
		if m, place := sourceTarget(f, true); m != "" || place != "" {
			f.Module, f.Place = m, place
		}
		return true
	case strings.HasPrefix(m, "Python version mismatch: "), strings.HasPrefix(m, "dynamic module not initialized properly"), strings.HasPrefix(m, "Module use of python"):
		f.Kind = classify.KindBinding
		f.Module, f.Place = sourceTarget(f, true)
		return true
	case strings.Contains(m, " does not export expected C "):
		f.Kind = classify.KindBinding
		f.Module = firstWord(m)
		f.Symbol = lastWord(firstLine(m))
		if topLevel(f.Module) == "numpy" {
			f.Kind = classify.KindForeignABI
		}
		return true
	}
	n, ok := classify.ReadLoader(m)
	if !ok {
		return false
	}
	f.Kind, f.Object, f.Needs, f.Symbol = n.Kind, n.Object, n.Needs, n.Symbol
	if n.Kind == classify.KindOther {
		return true
	}
	// A library without a folder is known to the loader only. Which of ours wanted it is in the statement.
	if n.Object == "" || !strings.ContainsAny(n.Object, `/\`) || n.Needs != "" {
		// The message does not say which module was being loaded. The statement does.
		f.Module, f.Place = sourceTarget(f, true)
	}
	return true
}

// firstLine is s up to its first line feed.
func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}

// lastWord is the word at the end of s.
func lastWord(s string) string {
	s = strings.TrimRight(s, " .")
	return s[strings.LastIndexByte(s, ' ')+1:]
}
