package session

import (
	"context"
	"errors"
	"fmt"
	"iter"
)

// UnreadableError is a session whose head the store has and cannot read: it was damaged, or a newer version wrote it.
// Nothing of the session is changed, and nothing is lost by that. It can be read again as soon as what is wrong is mended.
type UnreadableError struct {
	Session string
	// Place is where its head lies, for who has to mend it: a file or a database, and what in it.
	Place string
	// Err is what is wrong.
	Err error
}

func (e *UnreadableError) Error() string {
	return fmt.Sprintf("session %s cannot be read (%s): %v; nothing of it was changed: where a newer version of Mulligan wrote it, "+
		"update this one, else restore it from a copy", e.Session, e.Place, e.Err)
}

func (e *UnreadableError) Unwrap() error { return e.Err }

// PageError is the error of a page of which some sessions cannot be read. The page is good all the same: it has the
// others, and the next one begins after the last name of both. [All] goes through such pages.
type PageError struct {
	// Sessions are those that are missing, in the order of their names; never empty.
	Sessions []*UnreadableError
}

func (e *PageError) Error() string {
	if more := len(e.Sessions) - 1; more > 0 {
		return fmt.Sprintf("%v; and %d more cannot be read", e.Sessions[0], more)
	}
	return e.Sessions[0].Error()
}

func (e *PageError) Unwrap() (errs []error) {
	for _, s := range e.Sessions {
		errs = append(errs, s)
	}
	return errs
}

// Page is what List returns of what a store has found: the heads that it could read, and the others as a *PageError.
func Page(heads []Head, unreadable []*UnreadableError) ([]Head, error) {
	if len(unreadable) == 0 {
		return heads, nil
	}
	return heads, &PageError{Sessions: unreadable}
}

// All goes through every session of a List, which is a store's or one that shows states. A session that cannot be read
// comes as an [*UnreadableError] in its place, and the others follow; any other error is the last that comes.
func All[T Head | Status](ctx context.Context, list func(ctx context.Context, after string, limit int) ([]T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for after := ""; ; {
			page, err := list(ctx, after, 0)
			var missing []*UnreadableError
			if partial := (*PageError)(nil); errors.As(err, &partial) {
				missing, err = partial.Sessions, nil
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			if len(page) == 0 && len(missing) == 0 {
				return
			}
			for len(page) > 0 || len(missing) > 0 {
				var one T
				var err error
				if len(page) == 0 || len(missing) > 0 && missing[0].Session < nameOf(page[0]) {
					after, err, missing = missing[0].Session, missing[0], missing[1:]
				} else {
					after, one, page = nameOf(page[0]), page[0], page[1:]
				}
				if !yield(one, err) {
					return
				}
			}
		}
	}
}

func nameOf[T Head | Status](v T) string {
	switch v := any(v).(type) {
	case Head:
		return v.Session
	case Status:
		return v.Head.Session
	}
	return ""
}
