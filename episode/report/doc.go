// Package report turns episodes and records into something to read: the live report of an episode, the card of one
// lineage, and the list of the ledger. Each is one model that is built once and rendered as JSON, Markdown or
// terminal text, so that every view says the same.
//
// Call [Build], [BuildCard] or [BuildList]; then Text or Markdown on the result, or encode it as JSON. [BuildChip]
// marks a run in a list of the host's. [Now] is the one plain sentence for where a record stands.
//
// Promised: the model holds only text that has passed the redactor, on one line and without control characters, so a
// renderer needs no care of its own; every state and every reason has a sentence; text is aligned by display width and
// fits the width asked for, down to 40 columns; equal input gives equal output.
//
// Refused: nothing. What is not known is left out. The package reads no clock and no terminal: the time, the zone, the
// width and whether there is colour are told to it, so there is no failure either.
package report
