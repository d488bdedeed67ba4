package classify

// Root declares one tree of managed code. Only code in a root can be the host's own.
type Root struct {
	// Name is the host's name for the root, unique among the roots of a run.
	Name string `json:"name"`
	// Dirs are the absolute folders of the tree, symlinks already resolved by the adapter. The longest path wins where
	// roots nest.
	Dirs []string `json:"dirs,omitempty"`
	// Modules are module names; one owns itself and everything below it in whole components: "acme" owns "acme.wire",
	// not "acme_theme".
	Modules []string `json:"modules,omitempty"`
	// Bindings are native extensions, shared libraries and plugins that belong to the product.
	Bindings []string `json:"bindings,omitempty"`
	// ThirdParty lets a third-party module that is missing under managed code count as a signature instead of being
	// left unknown. A witness and a healthy probe are required all the same.
	ThirdParty bool `json:"third_party,omitempty"`
}

// Exit is how the process ended, as its launcher saw it.
type Exit struct {
	// Code is the exit code, -1 when the process itself died of Signal.
	Code int `json:"code"`
	// Signal is a name like "SIGKILL", empty when there was none.
	Signal string `json:"signal,omitempty"`
}

// Input is all that the classifier sees of a death.
type Input struct {
	// Text is the tail of the failure text, any encoding. Only its last [TailLimit] bytes are read.
	Text []byte
	Exit Exit
	// Cause is what the host knows for certain, empty for nothing. A typed cause beats the text.
	Cause Reason
	Roots []Root
	// Workspaces are folders of user code. Where a workspace and a root nest, the longer path owns the file; at equal
	// length the workspace does.
	Workspaces []string
}
