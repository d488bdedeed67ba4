//go:build unix && !linux

package durable

import (
	"errors"

	"golang.org/x/sys/unix"
)

func fdatasync(fd int) error { return unix.Fsync(fd) }

// Unnamed is not to be had here; files get a temporary name first.
func (d *sysDir) Unnamed() (File, error) { return nil, d.fail("create", "", errors.ErrUnsupported) }

// Publish has nothing to publish where there are no unnamed files.
func (d *sysDir) Publish(_ File, name string) error {
	return d.fail("publish", name, errors.ErrUnsupported)
}

// Exchange is not to be had here either.
func (d *sysDir) Exchange(_, b string) error { return d.fail("exchange", b, errors.ErrUnsupported) }

// refuseNetwork knows the network file systems of Linux only.
func refuseNetwork(int, string) error { return nil }

func holder(string) string { return "" } // no kernel but Linux tells
