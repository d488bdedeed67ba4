// Package cli is Mulligan's command line as a command tree that a host can mount under its own root. It is an adapter
// over the public packages and has no private door: what it can do, a library user can do.
package cli
