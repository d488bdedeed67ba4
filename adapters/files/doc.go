// Package files keeps everything that Mulligan has to remember in one folder of plain files: the ledger, the doorbell,
// the runs and their names, the update journal and its writer lock, evidence, reports, answers and the breaker's state.
// Any number of processes of one machine may have it open at once; it needs no server.
//
// Begin with [Open]; the methods of [Home] are the stores. The folder is [Config.Dir], else [DefaultDir].
//
//	ledger/PROJECT__LINEAGE.json   a record for each lineage      (.newest: a hint, see below)
//	doorbell/NAME                  a note for each death; any program may drop one, whole, by renaming it into place
//	runs/ID.json                   a run; runs/names/PROJECT__NAME.json says who took a name last
//	evidence/PROJECT__LINEAGE/     what was decided upon, with a manifest of SHA-256 hashes
//	episodes/ID/                   the rendered report
//	instances/ID                   a living process holds the kernel lock on its file
//	locks/                         a fixed number of lock files, and who holds the writer lock
//	answers.jsonl, updates.jsonl   append-only logs
//	state.json                     breaker and pause
//
// Names on disk are an escape that no two keys share, and the key inside is compared on every read. Each file carries a
// schema version, and all but doorbell notes and reports a checksum.
//
// What it refuses: a state folder that is a symlink, that belongs to another user (but root) or that everybody may write,
// since what lies there is started as this user; a symlink or device in place of a file in it; network file systems, where locks do not hold between machines (NFS, SMB, 9p, Ceph, Lustre, AFS and their like, and FUSE unless it
// sits on a local block device); a file of a later schema, which is never rewritten; files over a bound. Folders are
// made with mode 0700, files with 0600; the modes of what is there already are left alone.
//
// What is promised: every method is durable when it returns, with the exceptions that its interface names. A record is
// visible as a whole or not at all, and exactly one process ever wins a claim, at the price of one flush for the winner
// and none for the losers; so a power cut can leave a torn claim, which is told apart from damage. Runs and notes are
// flushed before they have a name, and are never found torn. A later revision is flushed before it takes the place of
// the one before, which then lies under a hidden name (.swap-) until another change is written over it; whoever reads a
// file by other means than this package and keeps it open over two changes can see a part of one. Locks die with the
// process that holds them, however it ends, and are not inherited. A crash leaves at most a hidden temporary file,
// which the next writer overwrites.
//
// How failure shows: a file that cannot be used is a [*ledger.DamageError] with its path and reason, whatever it is a
// file of; in lists it comes between the others and ends nothing. A claim that a power cut tore before its claimer knew
// of it is a DamageError with Torn set, which [ledger.Reclaimer] can put right. A full disk, a missing right or a dead
// disk is the error of the call, with the path; the record is then as it was, or as it should be, never in between. A lock
// that another process keeps, since it was stopped in the middle of a write, is a [*LockHeldError] after a minute.
//
// ledger/.newest lets the newest records be listed without reading all of them. It is a hint: every line is compared
// with the file that it tells of, it is never flushed, and it may be deleted at any time.
//
// ledger/.working, likewise a hint, lets a pass read only the records that need work.
//
// What is old goes when a healer says so (restart.Healer.Prune); a record that was pruned ([ledger.Prune]) keeps its file
// for good.
package files
