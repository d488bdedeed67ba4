package binary

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// read tells the build of the root's file.
func (s *Source) read(_ context.Context, live witness.Root) (codetree.Look, error) {
	at, _, err := codetree.Named(live, live.Package)
	if err != nil {
		return codetree.Look{}, err
	}
	f, err := os.Open(at)
	if err != nil {
		return codetree.Look{}, fmt.Errorf("file %s cannot be read: %w", at, err)
	}
	defer f.Close()
	// Size and time are those of the file that is open: the path may lead to another one by now.
	fi, err := f.Stat()
	if err != nil {
		return codetree.Look{}, fmt.Errorf("file %s cannot be read: %w", at, err)
	}
	if fi.Size() == 0 {
		return codetree.Look{}, fmt.Errorf("file %s is empty", at)
	}
	id, err := codetree.BuildID(f, fi.Size())
	if err != nil {
		return codetree.Look{}, fmt.Errorf("file %s has no build id: %w", at, err)
	}
	if id == "" {
		id = fmt.Sprintf("stat:%d@%s", fi.Size(), fi.ModTime().UTC().Format(time.RFC3339Nano))
	}
	return codetree.Dated(at, id, fi)
}
