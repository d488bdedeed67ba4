package dotnet

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// host parses what the hosts print when they cannot start a program.
func (p *parser) host(i int) (*classify.Failure, int) {
	l := strings.TrimSpace(p.lines[i])
	f := &classify.Failure{First: i, Line: i, Message: l, Startup: true, Fatal: true, FileIsUnit: true}
	switch {
	case strings.HasPrefix(l, "The application to execute does not exist: "):
		f.Kind, f.File = classify.KindMissingModule, strings.Trim(l[len("The application to execute does not exist: "):], "'.")
		return f, i + 1
	case strings.HasPrefix(l, "Cannot open assembly '"):
		f.File, _ = between(l, "Cannot open assembly '", "'")
		f.Kind = classify.KindTorn
		if strings.Contains(l, "No such file or directory") {
			f.Kind = classify.KindMissingModule
		}
		return f, i + 1
	case strings.HasPrefix(l, "A JSON parsing exception occurred in ["):
		f.File, _ = between(l, "[", "]")
		f.Kind = classify.KindTorn
		return f, i + 1
	case strings.HasPrefix(l, "An assembly specified in the application dependencies manifest ("):
		// package: 'Acme.Wire', version: '1.0.0'
		// path: 'lib/net8.0/Acme.Wire.dll'
		f.FileIsUnit, f.Kind = false, classify.KindMissingModule
		for i++; i < len(p.lines); i++ {
			t := strings.TrimSpace(p.lines[i])
			if name, ok := between(t, "package: '", "'"); ok {
				f.Module = name
			} else if path, ok := between(t, "path: '", "'"); ok {
				f.Module = Runtime{}.Module(path)
			} else {
				break
			}
		}
		f.Standard = standard(f.Module)
		return f, i
	}
	return nil, i + 1
}
