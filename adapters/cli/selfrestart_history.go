package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/mulligan-dev/mulligan/restart/handoff"
)

// lateHistory makes the folder of a history when there is something to write: a restart that is refused leaves none.
type lateHistory struct {
	dir string

	mu   sync.Mutex
	file *handoff.File
}

var _ handoff.History = (*lateHistory)(nil)

func (l *lateHistory) open() (*handoff.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		return l.file, nil
	}
	var err error
	l.file, err = handoff.OpenHistory(l.dir)
	return l.file, err
}

// Entries implements handoff.History. Where nothing is nothing was asked for.
func (l *lateHistory) Entries(ctx context.Context) ([]handoff.Entry, error) {
	if _, err := os.Stat(l.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read the history of restarts: %w", err)
	}
	f, err := l.open()
	if err != nil {
		return nil, err
	}
	return f.Entries(ctx)
}

// Reserve implements handoff.History.
func (l *lateHistory) Reserve(ctx context.Context, e handoff.Entry) error {
	f, err := l.open()
	if err != nil {
		return err
	}
	return f.Reserve(ctx, e)
}

// Withdraw implements handoff.History.
func (l *lateHistory) Withdraw(ctx context.Context, id string) error {
	f, err := l.open()
	if err != nil {
		return err
	}
	return f.Withdraw(ctx, id)
}

func (l *lateHistory) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each write was durable when it returned
	}
}
