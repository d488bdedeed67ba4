package classify

// Kind says what a failure is about, in words that all runtimes share. A runtime sets the kinds that its own wording
// proves; what a message of the program itself says (a schema, a version, a provider) is read by this package.
type Kind uint8

// The kinds of failure.
const (
	// KindOther is every failure that no other kind describes.
	KindOther Kind = iota
	// KindMissingModule: a whole unit is missing. Failure.Module names it.
	KindMissingModule
	// KindMissingName: a unit was found and lacks a name. Failure.Module and Failure.Symbol name them.
	KindMissingName
	// KindAttribute: an instance or a class lacks a member. Failure.Symbol names it, Failure.Module the unit that
	// defines the class if the text says so.
	KindAttribute
	// KindSignature: a call does not fit what it calls.
	KindSignature
	// KindUndefined: a name is not defined where it is used.
	KindUndefined
	// KindTorn: a file is half there: source that stops, truncated bytecode, a cut archive or shared object.
	KindTorn
	// KindSyntax: source that does not parse, for a reason that a newer language version would explain as well.
	KindSyntax
	// KindBinding: native code of another build.
	KindBinding
	// KindForeignABI: native code that does not fit a library of somebody else.
	KindForeignABI
	// KindMetadata: the metadata of an installed distribution is missing or does not fit.
	KindMetadata
	// KindFile: a file could not be opened or read. Failure.File names it, Failure.Code says why.
	KindFile
	// KindCommand: a command that is neither a function nor a program. Failure.Symbol names it.
	KindCommand
	// KindCrash: the runtime itself crashed.
	KindCrash
	// KindNewerData, KindOlderData and KindUnclearData: stored data does not fit the code.
	KindNewerData
	KindOlderData
	KindUnclearData
	// KindWire and KindUnclearWire: two processes or layers of the product disagree about what they exchange.
	KindWire
	KindUnclearWire
)

// Failure is what a runtime's parser makes of a failure text: one exception with everything that leads to it. The rules
// of this package judge it without knowing the runtime.
type Failure struct {
	Kind Kind
	// Type is the printed type or code without its module path, TypeModule that path.
	Type       string
	TypeModule string
	// Message is the text of the failure without its type, lines joined by line feeds.
	Message string
	// Frames are the stack, outermost first.
	Frames []Frame

	// Module is the unit the failure is about, as printed, and Symbol the name that it lacks.
	Module string
	Symbol string
	// Place is the path of the unit, where the text gives a path and no name: without a file name extension it stands for
	// any file of that stem. It stands behind Module.
	Place string
	// File is a file that the message itself prints for the unit.
	File string
	// Object is the native object that the loader's message prints, Needs the library or unit that the object lacks.
	Object string
	Needs  string
	// Code is a system error number or name ("28", "ENOSPC"), empty for none.
	Code string

	// ByData says that the name came out of stored or sent data: no code asks for it.
	ByData bool
	// Loading says that the failure arose while a unit was being loaded, not while code ran.
	Loading bool
	// Startup says that the runtime itself could not start the program it was told to: it asks, and has no frames.
	Startup bool
	// Dynamic says that the innermost frame did not write the name itself: it loads what it is told to, as servers and
	// workers load their application.
	Dynamic bool
	// Standard says that the missing unit belongs to the runtime itself.
	Standard bool
	// Headless says that the stack's outermost frames are not in the text.
	Headless bool
	// Fatal says that the stack starts where the program does, so that nothing can have caught the failure. A stack that a
	// logger prints starts where it was caught.
	Fatal bool
	// Cut says that the text ends or begins inside the failure's own line.
	Cut bool
	// Survived says that the text reports the failure as handled: a retry, a fallback, a warning.
	Survived bool
	// Listed is the entry of the never list that the failure is on by what only its runtime knows: a type of the
	// runtime's own library, or the report of a test runner that the failure stands in. Empty for none.
	Listed Reason
	// FileIsUnit says that File is itself the unit that the failure is about: an archive, a program.
	FileIsUnit bool
	// Unnamed says that the runtime never names the unit in this message, so that the one that asked stands for it.
	Unnamed bool

	// Cause is the failure that this one was raised from, Context the one that was being handled when this one came up.
	// At most one of them is set.
	Cause   *Failure
	Context *Failure
	// Group holds the leaves where several failures ended the process together.
	Group []*Failure

	// First and Last are the lines of the log that hold the failure and whatever belongs to it, Line the one with its type
	// and the beginning of its message. Where a stack behind the message ends the failure, Line is Last: nothing in between
	// can be a word of the program, whatever its functions and files are called.
	First, Line, Last int
}

// Origin is what a runtime knows about a file from its path alone.
type Origin uint8

// The origins. Folders of the host's roots and of the workspaces are no business of a runtime.
const (
	// OriginUnknown: nothing is known.
	OriginUnknown Origin = iota
	// OriginRuntime: the runtime's own code, transparent for the question who asked.
	OriginRuntime
	// OriginPackage: a folder that holds installed packages.
	OriginPackage
	// OriginUser: typed by a person or an agent, a notebook cell for one.
	OriginUser
	// OriginLauncher: code without a file that starts a program.
	OriginLauncher
	// OriginTest: a test runner. What is raised under it is the test's result.
	OriginTest
)
