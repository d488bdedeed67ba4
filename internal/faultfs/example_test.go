package faultfs_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// What a cut after each operation leaves of a replaced file: the old content or the new one.
func ExampleDisk() {
	var disk faultfs.Disk
	d, err := disk.Open("/home")
	if err == nil {
		err = durable.Replace(d, ".new", "file", []byte("old"), nil)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	tapped := faultfs.Tap(&disk, func(op faultfs.Op) error {
		found, _ := disk.Boot(faultfs.Survival{}).Open("/home")
		b, _, err := durable.ReadFile(found, "file", 100)
		fmt.Println("before", op.Kind, "there is", string(b), err)
		return nil
	})
	if d, err = tapped.Open("/home"); err == nil {
		err = durable.Replace(d, ".new", "file", []byte("new"), nil)
	}
	found, _ := disk.Boot(faultfs.Survival{}).Open("/home")
	b, _, _ := durable.ReadFile(found, "file", 100)
	fmt.Println("in the end there is", string(b), err)
	// Output:
	// before look there is old <nil>
	// before create there is old <nil>
	// before write there is old <nil>
	// before sync there is old <nil>
	// before rename there is old <nil>
	// before sync folder there is old <nil>
	// in the end there is new <nil>
}

// A disk that is full from the second operation on: the error surfaces, and nothing half-written is left.
func ExampleFailFrom() {
	full := errors.New("no space left")
	var disk faultfs.Disk
	d, err := faultfs.Tap(&disk, faultfs.FailFrom(2, full)).Open("/home")
	if err == nil {
		err = durable.Replace(d, ".new", "file", []byte("content"), nil)
	}
	_, gone := d.Stat("file")
	fmt.Println(errors.Is(err, full), errors.Is(gone, fs.ErrNotExist))
	// Output: true true
}
