// Package framelog is one append-only log file for everything that is written often and must be durable when it returns: the
// events of all sessions, a journal. Records that are added while a flush is under way go down together with the next one,
// so that many writers pay for one flush.
//
// Which call first: [Open] with a folder and a name; then [Log.Add] under the caller's own lock, in the order in which
// records are to stand, and [Log.Wait] outside of it. [Log.Scan] goes through what is there; [Cursor] reads single
// records by their [Position]. [Read] opens a log beside its writer, in any process.
//
// # The file
//
// A head of 64 bytes with a random salt, then blocks. A block is what one flush made durable: a head of 24 bytes (kind,
// length, number of its first record, how many, and a CRC-32C over the salt, the block's place in the file, its head and
// its body), then the records, each with its length before it. Blocks begin at multiples of eight. Behind the last block
// the file is filled with zeros, some way ahead, so that a flush changes no size and no allocation: on the journalling
// file systems that makes it cheaper than a flush after an append.
//
// # What is promised
//
// A record is durable when Wait returned nil, and stands after all that was added before it. The next block is written
// only after the flush of the one before, so one unfinished block can be left behind by a crash or a power cut, and only
// as the last one: it was acknowledged to nobody, and the next Open clears it away ([Log.Torn] tells how much). A bad
// block with good ones behind it is something else: what was durable has been damaged. Such a log opens for reading
// alone ([*DamageError]), until [Repair] has put a block in the damage's place that says so, for every later reader to
// see ([Gap]), and has kept the damaged bytes in a file of their own.
//
// One process writes. It holds a kernel lock, which ends with the process; others get a [*BusyError] that names it.
//
// A write or flush that fails leaves the fate of what was waiting open, and the log refuses to go on
// ([ErrBroken]) until [Log.Recover] has taken the unfinished block away again. The file is written with pwrite and never
// mapped, so that a full disk is an error and not a signal.
package framelog
