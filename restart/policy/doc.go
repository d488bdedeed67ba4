// Package policy is the decision: facts about one death in, one verdict with its reason out. It is the design's table
// and nothing else.
//
// Call [Decide] with the facts at hand. Where the next rule needs a fact that nobody looked up yet, the decision is
// Undecided and names it in Need; look it up, put it into the facts and ask again. So cheap rules always spare the
// expensive look-ups, and the order of the rules stands in one place.
//
// The package reads no clock, file or process. It cannot fail: a decline is an answer with a reason, not an error.
package policy
