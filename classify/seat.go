package classify

import "strings"

// seat is the place from which a failure was raised: the innermost frame that is not the runtime's own.
type seat struct {
	holder holder
	module string
	root   int
	frame  int
}

// stack is a failure's frames with their owners.
type stack struct {
	frames  []Frame
	holders []holder
	roots   []int
}

// stackOf assigns an owner to every frame. outer says that the stack starts where the process started, so that an
// unowned script at its foot is the program's launcher and not a library.
func (s *scope) stackOf(f *Failure, outer bool) stack {
	st := stack{frames: make([]Frame, len(f.Frames)), holders: make([]holder, len(f.Frames)), roots: make([]int, len(f.Frames))}
	copy(st.frames, f.Frames)
	// The foot of the stack is where the process began. A cause, a context or a leaf begins where it was caught, and
	// there an unowned file is a library like any other.
	foot := ""
	started := !outer || f.Headless
	for i := range st.frames {
		fr := &st.frames[i]
		h, module, root := s.holderOf(fr)
		if h == nobody {
			switch {
			case (!started && (fr.Built || s.startsPrograms(fr.File)) || fr.File == foot && foot != "") && !temporary(fr.File):
				h, foot = launcher, fr.File
			default:
				h = packaged
			}
		}
		if fr.Origin == OriginLauncher && h == launcher && started {
			h = runtime // code that a library made up and ran, in the middle of the stack
		}
		if h != runtime {
			started = true
		}
		fr.Module, fr.Root = module, ""
		if root >= 0 {
			fr.Root = s.roots[root].Name
		}
		st.holders[i], st.roots[i] = h, root
	}
	return st
}

// holderOf says whose a frame is; nobody leaves the choice between launcher and library to the place in the stack.
func (s *scope) holderOf(fr *Frame) (holder, string, int) {
	if fr.Open {
		return runtime, "", -1
	}
	h, module, root := s.file(fr.File)
	if h == managed {
		return h, module, root
	}
	if h == nobody && fr.Unit != "" && (fr.Built || !absolute(cleanPath(fr.File))) {
		if r, _ := s.pattern(fr.Unit); r >= 0 {
			return managed, fr.Unit, r
		}
	}
	// The runtime knows its own folders by their shape, and a workspace may hold them all: a home folder that is a
	// workspace also holds the interpreters installed in it.
	switch {
	case fr.Origin == OriginRuntime:
		return runtime, "", -1
	case fr.Origin == OriginUser:
		return workspace, "", -1
	case h == workspace:
		return workspace, "", -1
	case h == packaged:
		return packaged, "", -1
	case fr.Origin == OriginPackage:
		if s.bindingFolder(fr.File) {
			return launcher, "", -1
		}
		return packaged, "", -1
	case fr.Origin == OriginLauncher:
		return launcher, "", -1
	}
	return nobody, "", -1
}

// bindingFolder reports whether a file lies in the package that a declared binding is installed as: the few lines of
// glue that load it are the product's, wherever they were installed.
func (s *scope) bindingFolder(path string) bool {
	for part := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
		for _, r := range s.roots {
			for _, b := range r.Bindings {
				if part == b {
					return true
				}
			}
		}
	}
	return false
}

// startsPrograms reports a file that may be the product's launcher: in a folder for programs, without an ending, printed
// without a folder, or beside a root. Any other script that nobody declared is somebody else's code.
func (s *scope) startsPrograms(path string) bool {
	p := cleanPath(path)
	if !absolute(p) {
		return true
	}
	for _, d := range [...]string{"/bin/", "/sbin/", "/libexec/", "/scripts/", "/Scripts/"} {
		if strings.Contains(p, d) {
			return true
		}
	}
	if !strings.Contains(baseName(p), ".") {
		return true
	}
	for _, d := range s.dirs {
		if d.root >= 0 && within(p, homeOf(d.path)) {
			return true
		}
	}
	return false
}

// homeOf is the folder in which everything of a product lies that has a root at path: its folder's folder, unless that is one
// which many products and people share.
func homeOf(path string) string {
	at := strings.LastIndexByte(path, '/')
	if at <= 0 {
		return path
	}
	parent := path[:at]
	parts := strings.Split(strings.Trim(parent, "/"), "/")
	shared := len(parts) == 1 && parts[0] != "app" || parts[0] == "home" && len(parts) < 3 || strings.EqualFold(parts[0], "users") && len(parts) < 3 ||
		parts[0] == "usr" && len(parts) < 3
	if shared {
		return path
	}
	return parent
}

// temporary reports whether a file lies in a folder for throw-away files. A script there starts no product.
func temporary(path string) bool {
	p := cleanPath(path)
	for _, d := range [...]string{"/tmp", "/var/tmp", "/private/tmp", "/dev/shm"} {
		if within(p, d) {
			return true
		}
	}
	return strings.Contains(p, "/appdata/local/temp/")
}

// seat finds who raised the failure. With no frame but the runtime's own it is nobody.
func (st *stack) seat() seat {
	for i := len(st.frames) - 1; i >= 0; i-- {
		if st.holders[i] == runtime {
			continue
		}
		return seat{st.holders[i], st.frames[i].Module, st.roots[i], i}
	}
	return seat{nobody, "", -1, -1}
}

// handed reports whether code without a file asked, which frame i was given to run. It starts a program only where a stack begins.
func (st *stack) handed(i int) bool {
	for i++; i < len(st.frames); i++ {
		if st.frames[i].Origin == OriginLauncher && st.holders[i] == runtime {
			return true
		}
	}
	return false
}

// innermost is the innermost managed frame.
func (st *stack) innermost() (module string, root int) {
	for i := len(st.frames) - 1; i >= 0; i-- {
		if st.holders[i] == managed {
			return st.frames[i].Module, st.roots[i]
		}
	}
	return "", -1
}

// anyManaged reports whether a managed frame is on the stack.
func (st *stack) anyManaged() bool {
	_, root := st.innermost()
	return root >= 0
}
