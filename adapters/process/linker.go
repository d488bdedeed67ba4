package process

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// errNoTables means that an object can neither be called whole nor broken.
var errNoTables = errors.New("the object has no section headers, so its symbols cannot be read")

// linker finds and reads objects as the dynamic loader would, and runs none of them.
type linker struct {
	ctx     context.Context
	path    []string // what stands in the place of LD_LIBRARY_PATH
	objects map[string]*object
}

// object is one program or shared object.
type object struct {
	file    string
	machine elf.Machine
	class   elf.Class
	program bool // it is started, not loaded
	soname  string
	needed  []string
	rpath   []string // of DT_RPATH, empty where there is a DT_RUNPATH
	runpath []string
	open    []symbol            // what others must define
	defined map[string][]string // name to versions; "" is a definition without one
	deps    []*object
}

// symbol is a reference to a name.
type symbol struct{ name, version string }

// open reads an object, once.
func (l *linker) open(file string) (*object, error) {
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real
	}
	if o, ok := l.objects[file]; ok {
		return o, nil
	}
	if err := l.ctx.Err(); err != nil {
		return nil, err
	}
	// Only a regular file: to open a pipe would wait for whoever writes to it.
	st, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: no regular file", file)
	}
	o, err := readObject(file, st.Size())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	l.objects[file] = o
	return o, nil
}

func readObject(file string, size int64) (*object, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	o := &object{file: file, machine: f.Machine, class: f.Class, defined: map[string][]string{}}
	dynamic := false
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && (p.Off > uint64(size) || p.Filesz > uint64(size)-p.Off) {
			return nil, fmt.Errorf("file too short: it ends at byte %d and needs %d", size, p.Off+p.Filesz)
		}
		o.program = o.program || p.Type == elf.PT_INTERP
		dynamic = dynamic || p.Type == elf.PT_DYNAMIC
	}
	if f.Type != elf.ET_DYN && f.Type != elf.ET_EXEC {
		return nil, fmt.Errorf("%s is neither a program nor a shared object", f.Type)
	}
	o.program = o.program || f.Type == elf.ET_EXEC
	if !dynamic {
		return o, nil // it stands alone
	}
	if f.SectionByType(elf.SHT_DYNSYM) == nil {
		return nil, errNoTables
	}
	return o, o.tables(f)
}

// tables reads what an object needs and defines.
func (o *object) tables(f *elf.File) error {
	var rpath, sonames []string
	for tag, to := range map[elf.DynTag]*[]string{
		elf.DT_NEEDED: &o.needed, elf.DT_RPATH: &rpath, elf.DT_RUNPATH: &o.runpath, elf.DT_SONAME: &sonames,
	} {
		list, err := f.DynString(tag)
		if err != nil {
			return err
		}
		*to = list
	}
	if len(sonames) > 0 {
		o.soname = sonames[0]
	}
	if len(o.runpath) == 0 {
		o.rpath = o.expand(rpath)
	}
	o.runpath = o.expand(o.runpath)
	symbols, err := f.DynamicSymbols()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, s := range symbols {
		bind := elf.ST_BIND(s.Info)
		switch {
		case s.Name == "" || bind == elf.STB_LOCAL:
		case s.Section != elf.SHN_UNDEF:
			o.defined[s.Name] = append(o.defined[s.Name], s.Version)
		case bind != elf.STB_WEAK:
			o.open = append(o.open, symbol{s.Name, s.Version})
		}
	}
	return nil
}

// expand splits search paths and fills in where the object lies.
func (o *object) expand(lists []string) (out []string) {
	origin := filepath.Dir(o.file)
	for _, list := range lists {
		for _, d := range strings.Split(list, ":") {
			if strings.Contains(d, "$LIB") || strings.Contains(d, "${LIB}") {
				for _, lib := range []string{"lib64", "lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"} {
					out = append(out, strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin, "${LIB}", lib, "$LIB", lib).Replace(d))
				}
				continue
			}
			if d = strings.NewReplacer("${ORIGIN}", origin, "$ORIGIN", origin).Replace(d); filepath.IsAbs(d) {
				out = append(out, d)
			}
		}
	}
	return out
}

// scope appends an object and all that it needs, breadth first, as the loader orders them. strict makes a needed object
// that is not found an error.
func (l *linker) scope(scope []*object, root *object, strict bool) ([]*object, error) {
	type entry struct {
		o     *object
		above []string // the DT_RPATH of those that asked for it
	}
	queue := []entry{{o: root}}
	seen := map[*object]bool{}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if seen[e.o] {
			continue
		}
		seen[e.o] = true
		if !slices.Contains(scope, e.o) {
			scope = append(scope, e.o)
		}
		above := slices.Concat(e.o.rpath, e.above)
		e.o.deps = nil
		for _, need := range e.o.needed {
			dep, err := l.find(need, e.o, above, scope)
			if err != nil {
				if strict {
					return scope, fmt.Errorf("%s, needed by %s", err, e.o.file)
				}
				continue
			}
			e.o.deps = append(e.o.deps, dep)
			queue = append(queue, entry{o: dep, above: above})
		}
	}
	return scope, nil
}

// find finds a needed object: one that is loaded already under that name, or the first in the search path that is of the
// same kind of machine.
func (l *linker) find(need string, by *object, above []string, loaded []*object) (*object, error) {
	for _, o := range loaded {
		if o.soname == need || filepath.Base(o.file) == need {
			return o, nil
		}
	}
	if strings.Contains(need, "/") {
		return l.open(need)
	}
	var dirs []string
	if len(by.runpath) == 0 {
		dirs = append(dirs, above...)
	}
	dirs = slices.Concat(dirs, l.path, by.runpath, systemDirs())
	for _, d := range dirs {
		file := filepath.Join(d, need)
		if _, err := os.Stat(file); err != nil {
			continue
		}
		o, err := l.open(file)
		if err != nil {
			return nil, err
		}
		if o.machine == by.machine && o.class == by.class {
			return o, nil
		}
	}
	return nil, fmt.Errorf("%s: cannot open shared object file: no such file", need)
}

// closure are an object and all that it needs.
func (l *linker) closure(root *object) (out []*object) {
	for queue := []*object{root}; len(queue) > 0; queue = queue[1:] {
		if !slices.Contains(out, queue[0]) {
			out = append(out, queue[0])
			queue = append(queue, queue[0].deps...)
		}
	}
	return out
}

// bindAll looks every open symbol of some objects up in a scope.
func bindAll(scope, objects []*object) error {
	for _, o := range objects {
		for _, s := range o.open {
			if !slices.ContainsFunc(scope, func(d *object) bool { return d.defines(s) }) {
				name := s.name
				if s.version != "" {
					name += ", version " + s.version
				}
				return fmt.Errorf("%s: undefined symbol: %s", o.file, name)
			}
		}
	}
	return nil
}

// defines reports whether an object answers a reference: with the version that is asked for, or without any.
func (o *object) defines(s symbol) bool {
	versions, ok := o.defined[s.name]
	return ok && (s.version == "" || slices.Contains(versions, s.version) || slices.Contains(versions, ""))
}

// systemDirs are the folders that the loader searches last.
var systemDirs = sync.OnceValue(func() []string {
	dirs := confDirs("/etc/ld.so.conf", 0)
	for _, d := range []string{"/lib/*-linux-gnu*", "/usr/lib/*-linux-gnu*"} {
		found, err := filepath.Glob(d)
		if err == nil {
			dirs = append(dirs, found...)
		}
	}
	return append(dirs, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
})

// confDirs reads a file of folders with "include" lines.
func confDirs(file string, depth int) (dirs []string) {
	text, err := os.ReadFile(file)
	if err != nil || depth > 4 {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		if pattern, ok := strings.CutPrefix(line, "include "); ok {
			if pattern = strings.TrimSpace(pattern); !filepath.IsAbs(pattern) {
				pattern = filepath.Join(filepath.Dir(file), pattern)
			}
			files, err := filepath.Glob(pattern)
			if err != nil {
				continue
			}
			for _, f := range files {
				dirs = append(dirs, confDirs(f, depth+1)...)
			}
		} else if filepath.IsAbs(line) {
			dirs = append(dirs, line)
		}
	}
	return dirs
}
