// Package notify is what people are told: rows with a stable key, the words in them, the catalogue of reasons, and the
// redactor that every text passes on its way to a person. It decides nothing and delivers nothing; whoever implements
// [Notifier] does the delivery.
//
// Build a row with [EpisodeRow], [Escalation], [AnswerRow] or [PauseRow] and hand it to a [Notifier]; a sink that
// keeps rows combines an arrival with what it holds by [Merge]. [Reason] explains a reason code, [Redact], [Line] and
// [Exact] make foreign text safe to show.
//
// Promised: a key never changes between two deliveries of the same story; an episode makes one row and one toast,
// however many agents follow; no title contains "fail" or "error", not even through a name; exception text stands in
// the second note or later; the builders redact all they are given.
//
// Refused: nothing. Missing facts shorten a sentence, and an unknown reason code is shown as words. Failure shows in
// the error of [Notifier.Notify] alone, and whoever delivers tries again, because a nil error is the acknowledgement.
package notify
