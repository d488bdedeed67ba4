package notify

import (
	"strings"
	"time"
)

// UnreadableFacts are what the row about a death is made of of which word was left and cannot be used.
type UnreadableFacts struct {
	// Bell is the doorbell's name in its box, and Run the run that rang, empty where not even that can be read.
	Bell string
	Run  string
	// Place is the file that a person has to see to, and Why what is wrong with it.
	Place string
	Why   string
	At    time.Time
	// More is set for the one row that stands for all that are not shown by themselves.
	More bool
	// Program is how the command line is called here; empty means "mulligan".
	Program string
}

// unreadable is the reason code of these rows.
const unreadable = "unreadable"

// Key is the key of the row: the run's, or the doorbell's while the run is not known.
func (f UnreadableFacts) Key() string {
	switch {
	case f.More:
		return "doorbells:more:" + unreadable
	case f.Run != "":
		return "run:" + part(f.Run) + ":" + unreadable
	}
	return "doorbell:" + part(f.Bell) + ":" + unreadable
}

// Unreadable reports whether a key is that of such a row.
func Unreadable(key string) bool { return strings.HasSuffix(key, ":"+unreadable) }

// UnreadableRow tells of a doorbell that cannot be used. It is loud: somebody died, and nobody but this row says so.
func UnreadableRow(f UnreadableFacts) Row {
	info := Reason(unreadable)
	program := f.Program
	if program == "" {
		program = "mulligan"
	}
	row := Row{Key: f.Key(), Kind: unreadable, Tone: Red, Toast: true, Loud: true, Title: info.Title, At: f.At}
	next := "Correct the file or remove it. " + program + " doctor shows all of them."
	if f.More {
		row.Title = "Many notes of deaths cannot be used"
		next = "See what they are: " + program + " doctor"
	}
	row.Notes = []Note{{ID: "reason", Text: info.Text}}
	if f.Why != "" {
		row.Notes = append(row.Notes, Note{ID: "why", Text: Line(f.Why, noteLimit)})
	}
	if f.Place != "" {
		row.Notes = append(row.Notes, Note{ID: "place", Text: Exact("The note lies at: " + Shell(f.Place))})
	}
	row.Notes = append(row.Notes, Note{ID: "next", Text: Exact(next)})
	return row
}
