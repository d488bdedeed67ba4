package faultfs_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// outcome is what a caller can tell from an error.
func outcome(err error) string {
	for _, e := range []error{fs.ErrExist, fs.ErrNotExist, errors.ErrUnsupported} {
		if errors.Is(err, e) {
			return e.Error()
		}
	}
	if err != nil {
		return "refused"
	}
	return "done"
}

// TestDiskIsLikeTheMachines does the same things on a Disk, on the same through a Tap, and on the machine's files.
func TestDiskIsLikeTheMachines(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	tries := 0
	rapid.Check(t, func(t *rapid.T) {
		tries++
		real, err := durable.System{}.Open(filepath.Join(base, fmt.Sprint(tries)))
		must(t, err)
		defer real.Close()
		dirs := []durable.Dir{real, open(t, &faultfs.Disk{}), open(t, faultfs.Tap(&faultfs.Disk{}, func(faultfs.Op) error { return nil }))}
		name := rapid.SampledFrom([]string{"a", "b", "c", "..", "x/y"})
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			op := rapid.SampledFrom([]string{"create", "append", "overwrite", "unnamed", "link", "rename", "exchange", "remove", "make", "sub", "stat", "cut", "place"}).Draw(t, "op")
			a, b := name.Draw(t, "a"), name.Draw(t, "b")
			text := rapid.SampledFrom([]string{"", "x", "longer"}).Draw(t, "text")
			var first string
			for i, d := range dirs {
				got := step(d, op, a, b, text)
				if i == 0 {
					first = got
				} else if got != first {
					t.Fatalf("%s %s %s: file system %d says %q, the machine's %q", op, a, b, i, got, first)
				}
			}
			want := tree(t, dirs[0], "")
			for i, d := range dirs[1:] {
				if got := tree(t, d, ""); got != want {
					t.Fatalf("after %s %s %s file system %d holds\n%s, the machine's\n%s", op, a, b, i+1, got, want)
				}
			}
		}
	})
}

func step(d durable.Dir, op, a, b, text string) string {
	fill := func(f durable.File, err error) string {
		if err != nil {
			return outcome(err)
		}
		_, err = f.Write([]byte(text))
		in, e := f.Stat()
		return outcome(errors.Join(err, e, f.Sync(), f.Close())) + fmt.Sprint(in.Size, in.Links, in.Regular)
	}
	switch op {
	case "create":
		return fill(d.Create(a))
	case "append":
		return fill(d.Append(a))
	case "overwrite":
		return fill(d.Overwrite(a))
	case "unnamed":
		f, err := d.Unnamed()
		if err == nil {
			_, err = f.Write([]byte(text))
			err = errors.Join(err, d.Publish(f, a), f.Close())
		}
		return outcome(err)
	case "link":
		return outcome(d.Link(a, b))
	case "rename":
		return outcome(d.Rename(a, b))
	case "exchange":
		return outcome(d.Exchange(a, b))
	case "remove":
		return outcome(d.Remove(a))
	case "make", "sub":
		get := d.Make
		if op == "sub" {
			get = d.Sub
		}
		sub, err := get(a)
		if err == nil {
			err = errors.Join(sub.Sync(), sub.Close())
		}
		return outcome(err)
	case "cut":
		f, err := d.Append(a)
		if err == nil {
			err = errors.Join(f.Truncate(1), f.Close())
		}
		return outcome(err)
	}
	if op == "place" {
		f, err := d.Overwrite(a)
		if err == nil {
			_, err = f.WriteAt([]byte(text), 4)
			err = errors.Join(err, f.Close())
		}
		return outcome(err)
	}
	in, err := d.Stat(a)
	if in.Folder {
		in.Size, in.Links = 0, 0 // each file system counts folders in its own way
	}
	return outcome(err) + fmt.Sprint(in.Size, in.Links, in.Regular, in.Folder)
}
