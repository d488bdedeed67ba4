// Package episode tells one story for one update: it names the episode that a broken lineage belongs to, and puts the
// ledger's records together by it. It is pure: records in, episodes out.
//
// Call [ID] once per lineage, at the claim and after the quiet check, and keep the result in the record; call [Group]
// whenever the story is shown. Package episode/report turns an [Episode] into something to read.
//
// Promised: agents that one update broke get one id whatever they booted with; two trees, or two projects' lineages,
// get two; an id never changes, because what is learned later (a culprit) is a label of the episode and not part of its
// name; equal texts alone never make an episode. Group loses no record and takes each once.
//
// Refused: nothing. There is no failure: a cause of which nothing is known makes an episode of its own, and a record
// without an episode is grouped with those that have none.
package episode
