package classify

// Disposition is what the text of a death says about restarting it.
type Disposition string

// The four dispositions. Only Skew is ever relaunched, and only with a witness and a healthy probe.
const (
	Skew     Disposition = "skew"     // the signature of a known family in managed code
	Annotate Disposition = "annotate" // a real bug in managed code that an update may have brought: shown, never relaunched
	Never    Disposition = "never"    // a cause on the never list
	Unknown  Disposition = "unknown"  // none of these, or the rules pull two ways
)

// Family is a kind of mismatch between a process and the tree it runs from.
type Family string

// The families of the design; NoFamily stands where there is none.
const (
	TornImport   Family = "torn_import"
	StaleBinding Family = "stale_binding"
	WireSchema   Family = "wire_schema"
	DataFormat   Family = "data_format"
	TornFile     Family = "torn_file"
	NoFamily     Family = "none"
)

// Reason is the stable code that explains a disposition; it is empty for Skew.
type Reason string

// The reasons of Never, in the order of the design's never list.
const (
	ProviderError    Reason = "provider_error"
	RateLimit        Reason = "rate_limit"
	Auth             Reason = "auth"
	Killed           Reason = "killed"
	OOM              Reason = "oom"
	Timeout          Reason = "timeout"
	DiskFull         Reason = "disk_full"
	DirectiveError   Reason = "directive_error"
	ToolFailure      Reason = "tool_failure"
	TestFailure      Reason = "test_failure"
	ThirdPartyImport Reason = "third_party_import"
	WorkspaceImport  Reason = "workspace_import"
	WorkspaceError   Reason = "workspace_error"
)

// The reasons of Annotate.
const (
	NameError         Reason = "name_error"
	SignatureMismatch Reason = "signature_mismatch"
)

// Frame is one place on the deciding stack.
type Frame struct {
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
	// Module is the managed module the file belongs to, empty for code that is not managed.
	Module string `json:"module,omitempty"`
	// Root is the name of the root that owns the frame, empty for code that is not managed.
	Root string `json:"root,omitempty"`

	// Source is the line of source that the text prints for the frame. It can lie: a runtime reads it when it prints,
	// not when it ran.
	Source string `json:"-"`
	// Unit is the name of the frame's unit where the text itself gives it, empty otherwise.
	Unit string `json:"-"`
	// Built says that File is where the unit was compiled, and not where it lies: the name of the unit decides whose it is.
	Built bool `json:"-"`
	// Origin is what the runtime knows of File.
	Origin Origin `json:"-"`
	// Open says that File starts inside a path, because the head of the text is cut.
	Open bool `json:"-"`
}

// Verdict is the judgement of one failure text. The zero value of every field but Disposition and Family is allowed.
type Verdict struct {
	Disposition Disposition `json:"disposition"`
	// Family is the decided family for Skew, the candidate for Unknown, NoFamily otherwise.
	Family Family `json:"family"`
	Reason Reason `json:"reason"`
	// Exception is the type name or code of the deciding failure, without its module path.
	Exception string `json:"exception"`
	// Module is the managed unit that is missing, torn or does not fit; where the text names none, the innermost
	// managed module.
	Module string `json:"module"`
	// Symbol is the missing name; empty when a whole unit is missing.
	Symbol string `json:"symbol"`
	// ManagedModules are the managed units on the deciding stack, outermost first, each once. Never nil.
	ManagedModules []string `json:"managed_modules"`

	// Refusal is what the text says about a provider that refused, nil where it says nothing or no provider caused the end.
	Refusal *Refusal `json:"refusal,omitempty"`

	// Root names the root that owns Module, and Asked the roots of the managed frames, innermost first: a witness must
	// belong to one of them.
	Root  string   `json:"-"`
	Asked []string `json:"-"`
	// Frames are the frames of the deciding stack, outermost first.
	Frames []Frame `json:"-"`
	// Message is the deciding failure's own line, for reports.
	Message string `json:"-"`
	// Runtime names the runtime whose parser decided ("python"), empty when the exit status or a typed cause did.
	Runtime string `json:"-"`
}
