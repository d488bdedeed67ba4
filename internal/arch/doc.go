// Package arch holds the rules that keep Mulligan's shape, as tests: which package may import which, what the pure core
// must not touch, who may write a file, what has to be documented and shown by an example.
//
// The rules read the source with go/parser and need neither a build nor the go command, so that they run in a moment.
// [Load] reads a tree once, and every [Rule] of [Rules] looks at it and returns what it found. Each finding carries the
// rule's reason: whoever breaks a rule should learn what it protects before they think about changing it.
//
// The package map is [Layers]. A package that is not on it is a finding of its own, so a new one begins with a decision
// about its place. Each rule has a small broken tree in testdata that it must be seen to catch.
package arch
