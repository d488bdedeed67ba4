package managed

import (
	"errors"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// put writes a whole file below a folder that is there.
func put(path string, content []byte) (err error) {
	d, err := durable.System{}.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	name := filepath.Base(path)
	return durable.Replace(d, name+".new", name, content, nil)
}

// appendLine adds a line to a file that is there, in one write. It survives the process, which is all that a phase mark
// needs, and is not flushed: a machine that goes down takes the run with it.
func appendLine(path, line string) (err error) {
	d, err := durable.System{}.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	f, err := d.Append(filepath.Base(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write([]byte(line + "\n"))
	return err
}
