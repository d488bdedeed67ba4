// Package text takes the dress off log tails: collector prefixes, terminal colours, record envelopes and line ends. The
// parsers of package classify and of its runtimes read what is left, so that none of them needs to know where a log was
// collected. Call [Read] first; it never fails and its cost is linear in the limit, whatever the bytes are.
//
// A prefix is taken off only where most lines of the tail carry one of the same kind. A block that alone carries a
// prefix is somebody else's log, quoted, and keeps it, so that a parser does not mistake it for the program's own words.
package text
