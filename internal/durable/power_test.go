package durable_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
)

// TestPowerCutInEachWay cuts the power before each operation of every way to write: the file is as it was, or as it
// should be; only the raced create may leave a torn one, and nothing is lost that was said to be written.
func TestPowerCutInEachWay(t *testing.T) {
	t.Parallel()
	const was, is = "as it was", "as it should be, and longer"
	for name, c := range map[string]struct {
		old  string
		do   func(d durable.Dir) error
		torn bool
	}{
		"create": {"", func(d durable.Dir) error {
			c := durable.NewCreator(d, "id")
			return errors.Join(c.Create("f", []byte(is), nil), c.Close())
		}, true},
		"create whole": {"", func(d durable.Dir) error {
			c := durable.NewCreator(d, "id")
			return errors.Join(c.CreateWhole("f", []byte(is)), c.Close())
		}, false},
		"replace": {was, func(d durable.Dir) error { return durable.Replace(d, "t", "f", []byte(is), nil) }, false},
		"rewrite": {was, func(d durable.Dir) error { return rewrite(d, is) }, false},
		"rewrite over the spare": {was, func(d durable.Dir) error {
			return errors.Join(rewrite(d, was), rewrite(d, is))
		}, false},
		"remove": {was, func(d durable.Dir) error { return durable.Remove(d, "f") }, false},
	} {
		for _, plain := range []bool{false, true} {
			disk := &faultfs.Disk{Plain: plain}
			under, err := disk.Open("/home")
			if err == nil && c.old != "" {
				err = durable.Replace(under, "t", "f", durable.Pad([]byte(c.old)), nil)
			}
			if err != nil {
				t.Fatal(err)
			}
			torn := 0
			look := func(op faultfs.Op) error {
				for seed := range uint64(40) {
					found, _ := disk.Boot(faultfs.Survival{Seed: seed, All: seed == 1}).Open("/home")
					b, _, err := durable.ReadFile(found, "f", 1<<20)
					switch got := trimmed(b); {
					case errors.Is(err, fs.ErrNotExist) && (c.old == "" || name == "remove"),
						err == nil && (got == is || got == was && c.old != ""):
					case err == nil && c.torn:
						torn++
					default:
						t.Errorf("%s, cut before %s: %q, %v", name, op, got, err)
					}
				}
				return nil
			}
			d, err := faultfs.Tap(disk, look).Open("/home")
			if err == nil {
				err = c.do(d)
			}
			if err != nil {
				t.Fatal(err)
			}
			found, _ := disk.Boot(faultfs.Survival{}).Open("/home")
			b, _, err := durable.ReadFile(found, "f", 1<<20)
			if gone := errors.Is(err, fs.ErrNotExist); gone != (name == "remove") || !gone && trimmed(b) != is {
				t.Errorf("%s was said to be done, and a cut leaves %q, %v", name, b, err)
			}
			if c.torn && torn == 0 {
				t.Errorf("%s: no cut tore anything", name)
			}
		}
	}
}

func rewrite(d durable.Dir, content string) error {
	return durable.Rewrite(d, "spare", "f", []byte(content), nil)
}

// trimmed is content without what fills it up to whole blocks.
func trimmed(b []byte) string {
	for len(b) > 0 && (b[len(b)-1] == ' ' || b[len(b)-1] == '\n') {
		b = b[:len(b)-1]
	}
	return string(b)
}
