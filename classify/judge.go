package classify

import "strings"

// judge applies the family rules to single failures of one input.
type judge struct {
	*scope
	log *evidence
}

// evidence is what the rest of the log may say about a failure without deciding it.
type evidence struct {
	// before are the lines in front of the failure.
	before []string
}

// diskFull says that a line before the failure reports a full disk.
func (e *evidence) diskFull() bool {
	for _, l := range e.before {
		if strings.Contains(l, "o space left on device") || strings.Contains(l, "Disk quota exceeded") {
			return true
		}
	}
	return false
}

// single judges one failure without its chain.
func (j *judge) single(f *Failure, outer bool) Verdict {
	// Ownership first: every rule below asks who raised the failure and whose the unit is that it names.
	st := j.stackOf(f, outer)
	v := j.base(f, &st)
	at := st.seat()
	if underTest(st.frames) {
		return never(v, TestFailure)
	}
	if f.Listed != "" {
		return never(v, f.Listed)
	}
	if f.Cut {
		return j.cut(v, f, at)
	}
	if f.Kind == KindFile && f.Code == "2" && j.missesUnit(f.File) {
		unit := *f
		unit.Kind, unit.Code, unit.Loading = KindMissingModule, "", true
		f = &unit
	}
	switch f.Kind {
	case KindMissingModule, KindMissingName:
		return j.missing(v, f, &st, at)
	case KindBinding:
		return j.native(v, f, &st, at)
	case KindForeignABI:
		return j.foreignABI(v, f, &st, at)
	case KindTorn, KindSyntax:
		return j.torn(v, f, &st, at)
	case KindAttribute:
		return j.attribute(v, f, &st, at)
	case KindSignature:
		v.Symbol = f.Symbol
		return j.bug(v, at, SignatureMismatch, TypeErrorInThirdPartyFrame)
	case KindUndefined:
		v = j.bug(v, at, NameError, NameErrorInThirdPartyFrame)
		v.Symbol = f.Symbol
		return v
	case KindCommand:
		return j.command(v, f, at)
	case KindMetadata:
		return j.metadata(v, f, at)
	case KindFile:
		return j.unreadable(v, f, &st, at)
	case KindCrash:
		return unknown(v, StaleBinding, CrashSignal)
	case KindNewerData:
		return j.stored(v, f, at)
	}
	return j.worded(v, f, &st, at)
}

// underTest reports a stack that runs through a test runner. What a test raises is the test's result, whoever's code raised it.
func underTest(frames []Frame) bool {
	for i := range frames {
		if frames[i].Origin == OriginTest {
			return true
		}
		if frames[i].Origin == OriginUnknown || frames[i].Module != "" {
			continue
		}
		p := strings.ReplaceAll(frames[i].File, `\`, "/")
		for _, runner := range [...]string{"/_pytest/", "/unittest/loader.py", "/unittest/case.py", "/unittest/main.py", "/nose/", "/nose2/", "/behave/",
			"internal/test_runner/", "/node_modules/mocha/", "/node_modules/jest-", "/node_modules/@jest/", "/node_modules/vitest/", "/node_modules/@vitest/", "/node_modules/ava/"} {
			if strings.Contains(p, runner) {
				return true
			}
		}
	}
	return false
}

// base fills in what every verdict on a failure carries.
func (j *judge) base(f *Failure, st *stack) Verdict {
	v := Verdict{Disposition: Unknown, Family: NoFamily, Exception: f.Type, Message: f.Message, Frames: st.frames}
	v.Module, _ = st.innermost()
	j.summarize(&v)
	return v
}

// summarize derives from the frames what is said about them.
func (j *judge) summarize(v *Verdict) {
	v.ManagedModules, v.Asked = []string{}, nil
	for i := range v.Frames {
		if m := v.Frames[i].Module; m != "" && !has(v.ManagedModules, m) {
			v.ManagedModules = append(v.ManagedModules, m)
		}
		if r := v.Frames[len(v.Frames)-1-i].Root; r != "" && !has(v.Asked, r) {
			v.Asked = append(v.Asked, r)
		}
	}
}

// has reports whether a short list holds s.
func has(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// never puts a verdict on the never list. The unit is blanked: what a rate limit passed through is not to blame.
func never(v Verdict, r Reason) Verdict {
	v.Disposition, v.Family, v.Reason, v.Module, v.Symbol, v.Root = Never, NoFamily, r, "", "", ""
	return v
}

// unknown leaves a verdict open, with the family that it would be if what is open were known.
func unknown(v Verdict, candidate Family, r Reason) Verdict {
	v.Disposition, v.Family, v.Reason = Unknown, candidate, r
	return v
}

// skew is the only way to a skew verdict. Without a managed unit there is none.
func (j *judge) skew(v Verdict, family Family, module string, root int, symbol string) Verdict {
	if module == "" || root < 0 {
		return unknown(v, family, NoManagedModule)
	}
	v.Disposition, v.Family, v.Reason = Skew, family, ""
	v.Module, v.Symbol, v.Root = module, symbol, j.roots[root].Name
	return v
}

// cut judges a failure whose own line is not whole.
func (j *judge) cut(v Verdict, f *Failure, at seat) Verdict {
	switch {
	case at.holder == workspace:
		return never(v, WorkspaceError)
	case f.Loading && (at.holder == managed || at.holder == launcher):
		v.Module = ""
		return unknown(v, TornImport, TruncatedTail)
	}
	return unknown(v, NoFamily, TruncatedTail)
}

// target is what a failure is about and whose it is.
type target struct {
	holder  holder
	module  string
	root    int
	native  bool // a binding, or a native object in a root
	unclear bool // more than one root claims it
}

// about finds the unit a failure names. A printed path decides over the name.
func (j *judge) about(f *Failure) target {
	if f.FileIsUnit {
		if d, ok := j.claim(cleanPath(f.File)); ok && d.root >= 0 {
			return target{managed, f.File, d.root, false, false}
		}
	}
	// Bindings come first, because their names need no folder: a wheel installs them wherever the interpreter looks.
	// Only a workspace may hold a binding of the same name that is not the product's.
	for i, name := range [...]string{f.Object, f.Module} {
		if i == 1 && j.place != nil && !nativeFile(name) {
			continue // a package may be called like the binding in it
		}
		if b, r := j.binding(name); r >= 0 && !j.inWorkspace(f.File) && !j.inWorkspace(f.Object) {
			return target{managed, b, r, true, false}
		}
	}
	if b, r := j.bindingPart(f.Module); r >= 0 {
		return target{managed, b, r, true, false}
	}
	// A printed path outweighs the name. Names are claimed by whoever stands first on a search path, files are where
	// they are.
	for _, path := range [...]string{f.File, f.Object, f.Place} {
		if path == "" || !absolute(cleanPath(path)) {
			continue
		}
		h, module, root := j.file(path)
		switch h {
		case workspace:
			return target{workspace, f.Module, -1, false, false}
		case managed:
			if path == f.File && f.Module != "" {
				if !owns(j.roots[root].Modules, f.Module) {
					// The file is the product's and shadows somebody else's module.
					return target{packaged, f.Module, -1, false, false}
				}
				module = f.Module
			}
			return target{managed, module, root, nativeFile(path), false}
		// A path outside of every folder proves that the unit is not ours, whatever it is called. A place was derived
		// from a relative import and proves nothing.
		case nobody, packaged:
			if path != f.Place {
				return target{packaged, f.Module, -1, false, false}
			}
		}
	}
	if f.Module != "" {
		if r, more := j.pattern(f.Module); r >= 0 {
			return target{managed, f.Module, r, false, more}
		}
	}
	return target{nobody, f.Module, -1, false, false}
}

// bindingPart matches a module below a binding, as a binding that is installed as a package has them.
func (j *judge) bindingPart(module string) (string, int) {
	for i, r := range j.roots {
		for _, b := range r.Bindings {
			if strings.HasPrefix(module, b+".") {
				return b, i
			}
		}
	}
	return "", -1
}

func (j *judge) inWorkspace(path string) bool {
	if path == "" {
		return false
	}
	h, _, _ := j.file(path)
	return h == workspace
}

// nativeFile reports whether a path is a native object by its name.
func nativeFile(path string) bool {
	base := baseName(path)
	for _, ext := range [...]string{".so", ".pyd", ".dll", ".dylib", ".node", ".bundle"} {
		if strings.HasSuffix(base, ext) || ext != ".node" && strings.Contains(base, ext+".") {
			return true
		}
	}
	return false
}

// missing judges a unit or a name that is not there.
func (j *judge) missing(v Verdict, f *Failure, st *stack, at seat) Verdict {
	t := j.about(f)
	switch at.holder {
	// User code and plugins ask for what they like; that a managed name is missing then says that the API changed, and a
	// restart would not bring it back.
	case workspace:
		return never(v, WorkspaceImport)
	case packaged:
		switch {
		case t.holder == managed && f.ByData:
			// Stored or sent data names the unit; the library only reads it.
		case t.holder == managed && f.Dynamic && !st.anyManaged():
			// A server or worker that was told to load the managed program.
		case t.holder == managed && f.Dynamic:
			// The product told a library to load one of its own units. That is a torn import in spirit, but the text
			// looks like a plugin that breaks.
			return unknown(v, TornImport, ThirdPartyLoadsManaged)
		default:
			return never(v, ThirdPartyImport)
		}
	}
	if t.holder == nobody && f.Module == "" && f.Kind == KindMissingName && at.holder == managed && bare(f, at) {
		// Compiled code prints no source line and an old message no module: the asking unit is all that is known.
		return j.skew(v, TornImport, at.module, at.root, f.Symbol)
	}
	switch t.holder {
	case workspace:
		return never(v, WorkspaceImport)
	// The unit is managed, so the update may have torn it, if somebody of ours asked.
	case managed:
		// So may a script that is named relative to a folder which nothing names, where paths are all that names a unit.
		typed := at.frame >= 0 && at.holder == launcher &&
			(st.frames[at.frame].Origin == OriginLauncher || j.pack != nil && !absolute(cleanPath(st.frames[at.frame].File)))
		if (at.frame < 0 || typed) && !f.ByData && !f.Startup {
			// Nothing says who asked: a line alone, or code typed on a command line, may be anybody's.
			v.Module, v.Symbol = t.module, f.Symbol
			return unknown(v, TornImport, AskerNotShown)
		}
		if at.holder == managed && st.handed(at.frame) {
			v.Module, v.Symbol = t.module, f.Symbol
			return unknown(v, TornImport, AskerNotShown)
		}
		family := TornImport
		if t.native {
			family = StaleBinding
		}
		if t.unclear {
			v.Module, v.Symbol = t.module, f.Symbol
			return unknown(v, family, AmbiguousRoot)
		}
		return j.skew(v, family, t.module, t.root, f.Symbol)
	}
	// What is missing is somebody else's. A dependency that an update forgot looks like one that was never there, so
	// only a host that has said so gets more than unknown.
	v.Module, v.Symbol = "", ""
	if at.holder == managed && j.roots[at.root].ThirdParty && f.Module != "" {
		return j.skew(v, TornImport, at.module, at.root, f.Symbol)
	}
	switch {
	case f.Module == "":
		return unknown(v, TornImport, ModuleNotNamed)
	case f.Standard:
		return unknown(v, TornImport, StdlibMissingInManagedFrame)
	case at.holder == managed:
		return unknown(v, TornImport, ThirdPartyMissingInManagedFrame)
	}
	return unknown(v, NoFamily, ThirdPartyMissing)
}

// bare reports whether the asking frame is all that the text says about a missing name.
func bare(f *Failure, at seat) bool {
	return at.frame >= 0 && f.Frames[at.frame].Source == "" && !absolute(cleanPath(f.Frames[at.frame].File))
}

// native judges native code of another build.
func (j *judge) native(v Verdict, f *Failure, st *stack, at seat) Verdict {
	t := j.about(f)
	if b, r := j.binding(f.Needs); r >= 0 && f.Object == "" {
		t = target{managed, b, r, true, false} // the whole library is missing, and it is the product's
	}
	switch {
	case at.holder == workspace || t.holder == workspace:
		return never(v, WorkspaceImport)
	case at.holder == packaged:
		return never(v, ThirdPartyImport)
	// Managed code loads a native module of a third party directly: the install is broken, whoever broke it.
	case t.holder != managed:
		v.Module, v.Symbol = "", ""
		return unknown(v, StaleBinding, ThirdPartyMissingInManagedFrame)
	case t.unclear:
		return unknown(v, StaleBinding, AmbiguousRoot)
	}
	// The product's object is fine and lacks a library of the system or of a third party. An update of the product may
	// have brought that need, or an upgrade of the system may have taken the library away.
	if f.Needs != "" && !j.ownsObject(f.Needs) {
		v.Module, v.Symbol = t.module, f.Symbol
		return unknown(v, StaleBinding, ThirdPartyABIInBinding)
	}
	return j.skew(v, StaleBinding, t.module, t.root, f.Symbol)
}

// ownsObject reports whether a library that a managed object lacks is the product's own: a declared binding, a file in
// a root, or a file beside nothing at all of which only the folder of a root is known.
func (j *judge) ownsObject(name string) bool {
	if _, r := j.binding(name); r >= 0 {
		return true
	}
	if _, r := j.binding(strings.TrimPrefix(baseName(name), "lib")); r >= 0 {
		return true
	}
	p := cleanPath(name)
	if !absolute(p) {
		return false
	}
	d, ok := j.claim(p)
	return ok && d.root >= 0
}

// foreignABI judges native code that does not fit a library of somebody else.
func (j *judge) foreignABI(v Verdict, f *Failure, st *stack, at seat) Verdict {
	switch at.holder {
	case workspace:
		return never(v, WorkspaceImport)
	case packaged:
		return never(v, ThirdPartyImport)
	}
	if t := j.about(f); t.holder == managed {
		v.Module = t.module
	}
	return unknown(v, StaleBinding, ThirdPartyABIInBinding)
}

// torn judges files that are half there.
func (j *judge) torn(v Verdict, f *Failure, st *stack, at seat) Verdict {
	// An archive that holds packages is no module itself. If it lies in a root, the unit that was being loaded out of it
	// is the one that the innermost frame was in.
	t := j.about(f)
	if t.holder != managed && t.holder != workspace && f.File != "" && f.Module == "" && at.holder == managed && j.place == nil {
		// The file is an archive or a library that holds the unit which the innermost frame was loading.
		if d, ok := j.claim(cleanPath(f.File)); ok && d.root >= 0 {
			t = target{managed, at.module, at.root, false, false}
		}
	}
	if t.holder == nobody && f.Module == "" && f.File == "" && f.Object == "" && at.holder == managed {
		// What was being loaded is not said, and may be anybody's.
		if !f.Unnamed {
			return unknown(v, TornFile, ModuleNotNamed)
		}
		t = target{managed, at.module, at.root, false, false}
	}
	switch {
	case t.holder == workspace || t.holder != managed && at.holder == workspace:
		return never(v, WorkspaceError)
	case t.holder != managed && at.holder == managed && f.File == "" && f.Object == "":
		v.Module = ""
		return unknown(v, TornFile, ThirdPartyMissingInManagedFrame)
	case t.holder != managed && (at.holder == packaged || f.File != "" || f.Object != ""):
		return never(v, ThirdPartyImport)
	case t.holder != managed:
		return unknown(v, TornFile, NoManagedModule)
	case at.holder == workspace:
		return never(v, WorkspaceImport)
	}
	v.Module = t.module
	switch {
	case t.unclear:
		return unknown(v, TornFile, AmbiguousRoot)
	// Source that this interpreter merely does not know: it may be too new for it, and a restart under the same
	// interpreter would die the same death.
	case f.Kind == KindSyntax:
		return unknown(v, TornFile, SyntaxUnclear)
	case j.log.diskFull():
		// The disk, not an update, may have cut the file.
		return unknown(v, TornFile, DiskFullThenTorn)
	}
	return j.skew(v, TornFile, t.module, t.root, "")
}

// stored judges data whose runtime says that it does not fit the unit that reads it.
func (j *judge) stored(v Verdict, f *Failure, at seat) Verdict {
	t := j.about(f)
	switch {
	case at.holder == workspace || t.holder == workspace:
		return never(v, WorkspaceError)
	case t.holder != managed:
		return unknown(v, DataFormat, DataOfThirdParty)
	case t.unclear:
		return unknown(v, DataFormat, AmbiguousRoot)
	case at.holder == packaged && !f.ByData:
		return unknown(v, DataFormat, RaisedByThirdParty)
	}
	return j.skew(v, DataFormat, t.module, t.root, f.Symbol)
}

// attribute judges a member that an instance or a class lacks: no family, unless the class is a binding's.
func (j *judge) attribute(v Verdict, f *Failure, st *stack, at seat) Verdict {
	v.Symbol = f.Symbol
	switch at.holder {
	case workspace:
		return never(v, WorkspaceError)
	case packaged:
		return unknown(v, NoFamily, AttributeErrorInThirdPartyFrame)
	}
	// The message ties the class to its module only where the class is native: "'core.Handle' object has no attribute".
	// That class cannot come from any other build than the loaded one.
	if f.Module != "" {
		if t := j.about(f); t.holder == managed && t.native {
			return j.skew(v, StaleBinding, t.module, t.root, f.Symbol)
		}
	}
	return unknown(v, NoFamily, InstanceAttributeError)
}

// bug judges errors that are annotated where managed code raised them.
func (j *judge) bug(v Verdict, at seat, r, elsewhere Reason) Verdict {
	switch at.holder {
	// A call that does not fit is what half an update looks like, and what any bug looks like. It is shown with the
	// update beside it and never relaunched.
	case managed:
		v.Disposition, v.Reason = Annotate, r
		return v
	case workspace:
		return never(v, WorkspaceError)
	case packaged:
		v.Module = ""
		return unknown(v, NoFamily, elsewhere)
	}
	return unknown(v, NoFamily, NoManagedModule)
}

// command judges a command that a script calls and the shell does not find. One that is called after the product may be a
// function of it that was renamed, or a slip of the pen.
func (j *judge) command(v Verdict, f *Failure, at seat) Verdict {
	v.Symbol = f.Symbol
	switch {
	case at.holder == workspace:
		return never(v, WorkspaceError)
	case at.holder == managed && j.productName(strings.ToLower(f.Symbol)):
		v.Disposition, v.Reason = Annotate, NameError
		return v
	case at.holder == managed:
		v.Symbol, v.Module = "", ""
		return unknown(v, NoFamily, ThirdPartyMissingInManagedFrame)
	}
	return unknown(v, NoFamily, NoManagedModule)
}

// metadata judges missing or misfitting distribution metadata.
func (j *judge) metadata(v Verdict, f *Failure, at seat) Verdict {
	switch at.holder {
	case workspace:
		return never(v, WorkspaceImport)
	case managed, launcher, nobody:
		return unknown(v, TornImport, DistributionMetadataMissing)
	}
	return unknown(v, NoFamily, DistributionMetadataMissing)
}

// unreadable judges files that could not be opened or read.
func (j *judge) unreadable(v Verdict, f *Failure, st *stack, at seat) Verdict {
	// A full disk or a lack of memory is told by number, in every language of the system.
	if r := codeReason(f.Code); r != "" {
		return never(v, r)
	}
	if r := neverByType(f); r != "" {
		return never(v, r)
	}
	if f.File != "" {
		d, ok := j.claim(cleanPath(f.File))
		if ok && d.root < 0 {
			return never(v, WorkspaceError)
		}
		if ok && d.root >= 0 && at.holder != workspace {
			if _, m, _ := j.file(f.File); m != "" {
				v.Module = m
			}
			// A file of the product that is gone or cannot be read is what an update in progress looks like. It is also
			// what a broken deployment looks like, so it stays open.
			switch f.Code {
			case "2":
				return unknown(v, TornFile, MissingPackageFile)
			case "13", "1":
				return unknown(v, TornFile, Permission)
			case "116":
				return unknown(v, TornFile, StaleFileHandle)
			}
			return unknown(v, TornFile, UnreadableFile)
		}
	}
	return j.worded(v, f, st, at)
}

// missesUnit reports that a file which is not there would be a unit of a root, by its path inside of the root.
func (j *judge) missesUnit(file string) bool {
	if j.tells == nil || file == "" {
		return false
	}
	p := cleanPath(file)
	d, ok := j.claim(p)
	return ok && d.root >= 0 && j.tells.Unit(p[len(d.path):])
}

// worded judges by what the message says.
func (j *judge) worded(v Verdict, f *Failure, st *stack, at seat) Verdict {
	// The message is read before the type's name is believed, because both may speak: "ProtocolError: incompatible wire
	// version".
	kind, module, root := j.wording(f, at)
	if kind == KindOther && f.Kind >= KindNewerData && !j.foreignData(f.Message) {
		kind = f.Kind // the runtime's own wording proves it
	}
	if r := neverByType(f); r != "" {
		// The product may give its own exception a name that clients use as well; then what it says counts.
		own, _ := j.pattern(f.TypeModule)
		if r != ProviderError || own < 0 || kind != KindWire && kind != KindNewerData && kind != KindBinding {
			return never(v, r)
		}
	}
	family := NoFamily
	switch kind {
	case KindBinding:
		family = StaleBinding
	case KindWire, KindUnclearWire:
		family = WireSchema
	case KindNewerData, KindUnclearData:
		family = DataFormat
	}
	if family != NoFamily {
		switch at.holder {
		case workspace:
			return never(v, WorkspaceError)
		// A library reports versions of its own files and peers. Only where it was handed the product's data is the
		// drift worth naming.
		case packaged:
			if kind != KindUnclearData && kind != KindUnclearWire || !st.anyManaged() {
				return unknown(v, family, RaisedByThirdParty)
			}
		}
		switch {
		case kind == KindUnclearData || kind == KindUnclearWire:
			return unknown(v, family, SchemaDriftDirectionUnclear)
		case family == StaleBinding:
			return j.skew(v, family, module, root, "")
		case at.holder == managed:
			return j.skew(v, family, at.module, at.root, "")
		}
		// Without frames the type may still say who raised it, by the module that defines it.
		if r, more := j.pattern(f.TypeModule); r >= 0 && !more {
			return j.skew(v, family, f.TypeModule, r, "")
		}
		// The last word of a program that has no stack to show: one of the sides it names is the product's.
		if m, r := j.named(f.Message); r >= 0 && f.Startup && at.frame < 0 {
			return j.skew(v, family, m, r, "")
		}
		return unknown(v, family, NoManagedModule)
	}
	// Old data wants a migration. A restart with the same code would refuse it again.
	if kind == KindOlderData {
		return unknown(v, NoFamily, DataOlderThanCode)
	}
	if r := neverByMessage(f, j.scope); r != "" {
		return never(v, r)
	}
	switch at.holder {
	case workspace:
		return never(v, WorkspaceError)
	case managed:
		return unknown(v, NoFamily, ManagedBug)
	case packaged:
		return unknown(v, NoFamily, ThirdPartyError)
	}
	return unknown(v, NoFamily, NoUpdateSignature)
}
