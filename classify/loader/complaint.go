package loader

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// read reads the complaint that begins in a line.
func read(lines []string, i int) *classify.Failure {
	l := strings.TrimSpace(lines[i])
	if len(l) > 1<<13 {
		return nil
	}
	for _, r := range [...]func(string) *classify.Failure{glibc, musl, kernel} {
		if f := r(l); f != nil {
			f.Message = l
			return f
		}
	}
	if strings.HasPrefix(l, "dyld") {
		return mac(lines, i)
	}
	return nil
}

// by is the frame of the program that asks.
func by(program string) []classify.Frame {
	if program == "" {
		return nil
	}
	return []classify.Frame{{File: program, Unit: program}}
}

// glibc reads "program: error while loading shared libraries: object: why" and its relatives.
func glibc(l string) *classify.Failure {
	for _, mark := range [...]string{": error while loading shared libraries: ", ": symbol lookup error: "} {
		prog, rest, ok := strings.Cut(l, mark)
		if !ok {
			continue
		}
		f := &classify.Failure{Frames: by(program(prog))}
		if n, ok := classify.ReadLoader(rest); ok {
			n.Apply(f)
		} else {
			f.Kind = classify.KindBinding
			f.Object, _, _ = strings.Cut(rest, ": ")
			if strings.Contains(rest, "cannot open shared object file") {
				f.Kind, f.File, f.Object, f.Code = classify.KindFile, f.Object, "", "13" // there, and may not be read
			}
		}
		return f
	}
	if prog, rest, ok := strings.Cut(l, ": relocation error: "); ok {
		return relocation(program(prog), rest)
	}
	if at := strings.Index(l, ": version `"); at > 0 && strings.Contains(l[at:], "' not found (required by ") {
		f := &classify.Failure{}
		prog, object, ok := cutLast(l[:at])
		if !ok {
			object = l[:at]
		}
		n, ok := classify.ReadLoader(object + l[at:])
		if !ok {
			return nil
		}
		f.Frames = by(program(prog))
		// The one that wants the version may be another object than the program.
		if n.Object != "" && n.Object != program(prog) {
			f.Frames = append(f.Frames, by(n.Object)...)
		}
		n.Apply(f)
		return f
	}
	return nil
}

// cutLast cuts "program: object" at the last colon and blank.
func cutLast(s string) (before, after string, ok bool) {
	at := strings.LastIndex(s, ": ")
	if at < 0 {
		return "", "", false
	}
	return s[:at], s[at+2:], true
}

// relocation reads "object: symbol NAME[,] version V not defined in file F with link time reference".
func relocation(prog, rest string) *classify.Failure {
	object, why, ok := strings.Cut(rest, ": symbol ")
	if !ok {
		return nil
	}
	f := &classify.Failure{Kind: classify.KindBinding, Frames: by(prog), Object: object}
	if object != prog {
		f.Frames = append(f.Frames, by(object)...)
	}
	f.Symbol = strings.TrimRight(why[:strings.IndexByte(why+" ", ' ')], ",")
	if _, in, ok := strings.Cut(why, " not defined in file "); ok {
		f.Object, _, _ = strings.Cut(in, " ")
	}
	return f
}

// program is the last path or name in front of a complaint: a shell may put its own name and a line number before it.
func program(s string) string {
	if _, after, ok := cutLast(s); ok {
		s = after
	}
	return strings.TrimSpace(s)
}

// musl reads the linker of small distributions.
func musl(l string) *classify.Failure {
	if rest, ok := cutAfter(l, "Error loading shared library "); ok {
		object, why, ok := strings.Cut(rest, ": ")
		if !ok {
			return nil
		}
		f := &classify.Failure{Kind: classify.KindBinding, Object: object}
		if _, who, ok := strings.Cut(why, "(needed by "); ok {
			f.Frames = by(strings.TrimSuffix(who, ")"))
		}
		if strings.HasPrefix(why, "Exec format error") {
			f.Kind = classify.KindTorn
		}
		return f
	}
	if rest, ok := cutAfter(l, "Error relocating "); ok {
		object, why, ok := strings.Cut(rest, ": ")
		if !ok {
			return nil
		}
		symbol, _, ok := strings.Cut(why, ": symbol not found")
		if !ok {
			return nil
		}
		return &classify.Failure{Kind: classify.KindBinding, Object: object, Symbol: symbol, Frames: by(object)}
	}
	return nil
}

// cutAfter is what stands behind a mark.
func cutAfter(s, mark string) (string, bool) {
	_, rest, ok := strings.Cut(s, mark)
	return rest, ok
}

// kernel reads what is said of a file that the kernel would not run.
func kernel(l string) *classify.Failure {
	low := strings.ToLower(l)
	for _, mark := range [...]string{": cannot execute binary file: exec format error", ": cannot execute binary file", ": exec format error", ": text file busy"} {
		at := strings.LastIndex(low, mark)
		if at < 0 || len(low) != len(l) {
			continue
		}
		file := program(l[:at])
		for _, w := range [...]string{"exec ", "fork/exec ", "executing "} {
			if n := strings.LastIndex(file, w); n >= 0 {
				file = file[n+len(w):]
			}
		}
		file = strings.Trim(file, "'\"`")
		if !strings.HasPrefix(file, "/") {
			return nil
		}
		return &classify.Failure{Kind: classify.KindTorn, File: file, Startup: true}
	}
	return nil
}

// mac reads the linker of macOS: a complaint and indented lines that explain it.
func mac(lines []string, i int) *classify.Failure {
	head, m, ok := strings.Cut(lines[i], ": ")
	if !ok || strings.Contains(head, " ") {
		return nil
	}
	end := i + 1
	for end < len(lines) && end < i+8 && (strings.HasPrefix(lines[end], " ") || strings.HasPrefix(lines[end], "\t")) {
		end++
	}
	all := strings.Join(append([]string{m}, lines[i+1:end]...), "\n")
	n, ok := classify.ReadLoader("dlopen(, 0): " + all)
	if !ok {
		return nil
	}
	f := &classify.Failure{Message: firstLine(all), Last: end - 1}
	f.Frames = by(n.Object)
	n.Apply(f)
	return f
}

// firstLine is s up to its first line feed.
func firstLine(s string) string {
	l, _, _ := strings.Cut(s, "\n")
	return l
}
