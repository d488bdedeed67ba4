package resume

import "testing"

// TestHandsAreCounted: a session that a pass and a wake have in hand at once stays in hand until both have let go.
func TestHandsAreCounted(t *testing.T) {
	t.Parallel()
	r := &Runner{hands: map[string]int{}}
	pass, wake := r.hold("s"), r.hold("s")
	wake()
	if !r.Running("s") {
		t.Error("the pass still has it")
	}
	pass()
	if r.Running("s") {
		t.Error("nobody has it")
	}
}
