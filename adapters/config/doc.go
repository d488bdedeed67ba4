// Package config reads the YAML block agent_auto_restart that configures Mulligan, in a file of its own or inside a
// host's. It is the adapter between a file that people edit and the plain values that the library takes:
// [restart.Settings] and a list of [witness.Root].
//
// Call [Load], which finds the file (an explicit one, $MULLIGAN_CONFIG, ./mulligan.yaml, else the defaults), or [Parse]
// for text that is at hand already. [Default] is what counts without any file.
//
// It refuses unknown keys in its block, values of a wrong type and values out of range, and a file without the block:
// nothing ever falls back to a default because it was written wrongly. Blocks of other names are their owner's, with
// one exception: a top-level key that bears the name of one of ours and is missing in the block is taken for one that
// slipped out of it.
//
// What is promised: an absent key has its documented default and an explicit zero is kept apart from it
// (quiescence_seconds: 0 means none); folders are absolute, relative ones counted from the file, with symlinks
// resolved, because ownership is decided on resolved paths. A tilde or a variable in a path is not expanded.
//
// Failure shows as an [*Error] with every problem of the file at once, each with its line and the values allowed.
package config
