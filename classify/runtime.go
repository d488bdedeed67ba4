package classify

import "github.com/mulligan-dev/mulligan/classify/text"

// Runtime reads the failure texts of one language runtime. Package classify/python has the one for Python; a host may
// bring its own for a runtime that is not here.
type Runtime interface {
	// Name names the runtime in verdicts and errors. It is unique within a [Config] and not empty.
	Name() string
	// Parse returns the failure that ended the process, nil where the log holds none of this runtime. Of several it is
	// the last one that was not survived. Parse marks noise with [text.Log.Ignore]. It must neither panic nor
	// keep the log.
	Parse(log *text.Log) *Failure
	// Module is the name of the unit that the file at a path would be if the path began at a folder that the runtime
	// searches, empty if it would be none. The path has forward slashes and no leading one.
	Module(path string) string
}

// Placer is what a [Runtime] may implement besides, where units are files: a file below a root is the root's then, without
// a module name that says so.
type Placer interface {
	// Place names the unit that an absolute path stands for, and the package it was installed as where the path says so.
	// inside is the length of the root's folder at the path's start. A package that is not empty must be one of the
	// root's modules, or the file is somebody else's.
	Place(path string, inside int) (unit, pkg string)
}

// PathUnits is what a [Runtime] may implement besides, where a unit's name in a verdict is the path of its file: then every
// file below a root's folder is the root's own, whatever it is called, but for installed packages of somebody else.
type PathUnits interface {
	// Package names the installed package that a file belongs to, given its path behind the root's folder; empty for a
	// file that lies in none. A package that a module pattern of the root owns is the root's own.
	Package(path string) string
}

// UnitTeller is what a [Runtime] may implement besides, where only the name of a file that is missing tells whether it is a
// unit or data. Parse does not know where roots lie, and a root below /var or /data is no folder of data.
type UnitTeller interface {
	// Unit reports whether a missing file of a root is a unit, given its path behind the root's folder, with the leading slash.
	Unit(path string) bool
}

// Hinter is what a [Runtime] may implement besides, to make clean logs cheap.
type Hinter interface {
	// Hint reports whether Parse could find a failure in a text, by a search for literals. Only a certain no is false. The
	// text is still dressed, but holds neither control sequences nor other encodings than ASCII's supersets.
	Hint(tail []byte) bool
}

// StatementReader is what a [Runtime] may implement besides: programs that catch what kills them print its message in a
// line of their own.
type StatementReader interface {
	// Statement reads the failure whose message stands in a line, nil if there is none.
	Statement(line string) *Failure
}

// Speaker is what a [Runtime] may implement besides: it is asked only about texts that hold one of its words. All runtimes'
// words are looked for at once, so a further one costs a clean log nothing.
type Speaker interface {
	// Vocabulary is asked for once.
	Vocabulary() Vocabulary
}

// Vocabulary are literals, of four bytes or more each, of which every text that a runtime finds a failure in holds one. Where
// the runtime is a [Hinter] too, the line that holds the word must have the hint, or the word does not count; where Lines is
// set, the last few KiB of the text.
type Vocabulary struct {
	// Exact are found as they are written, Folded in either case of their ASCII letters.
	Exact, Folded []string
	// Starts begin a line, whatever a collector has put in front of them. Three bytes are enough for them.
	Starts []string
	// Lines is how many lines from the end Parse reads at most, up to 32; 0 is all of them.
	Lines int
}
