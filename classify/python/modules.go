package python

// Files is the function of the same name, so that a Runtime tells everything about Python modules that a search for a
// missing name needs.
func (Runtime) Files(module string) []string { return Files(module) }

// Binds is the function of the same name.
func (Runtime) Binds(src []byte, name string) bool { return Binds(src, name) }
