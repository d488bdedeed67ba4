package boot

import (
	"errors"
	"fmt"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

const (
	// schema is the version of every file here.
	schema = 1
	// fileLimit is far above what any of the files holds.
	fileLimit = 8 << 20
	// lockRest is the longest rest between two tries for a lock: each is held for one small write.
	lockRest = 5 * time.Millisecond
)

// DamageError is a file that cannot be used.
type DamageError struct {
	Path string
	Text string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s cannot be used: %s; move it away to begin anew", e.Path, e.Text)
}

func sealed(name string) durable.Sealed {
	return durable.Sealed{Name: name, Limit: fileLimit, Schema: schema}
}

// load reads a file into v. One that is absent is durable.Absent, one that is no use a *DamageError.
func load(d durable.Dir, name string, v any) error {
	err := sealed(name).Load(d, v)
	var damage *durable.DamageError
	if errors.As(err, &damage) {
		return &DamageError{Path: damage.Path, Text: damage.Text}
	}
	return err
}

// save replaces a file durably. The caller excludes other writers of it.
func save(d durable.Dir, name string, v any) error { return sealed(name).Save(d, v) }
