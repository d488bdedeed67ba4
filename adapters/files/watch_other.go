//go:build !linux

package files

import (
	"context"
	"errors"
)

func watch(context.Context, string, chan<- struct{}) error { return errors.ErrUnsupported }
