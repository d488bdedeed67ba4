package resumetest

import "testing"

// An adapter's own test: the folder is all that its processes share.
func ExampleRun() {
	_ = func(t *testing.T) { Run(t, open) }
	// Output:
}
