package managed

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// put writes a whole file below a folder that is there. It is not flushed: phase marks and the text of an end that was
// rung are of no use after the machine has gone down, and a mark that cannot be read counts as unknown.
func put(path string, content []byte) (err error) {
	d, err := durable.System{}.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	name := filepath.Base(path)
	return durable.Leave(d, name+".new", name, content)
}

// appendLine adds a line to a file that is there, in one write. It survives the process, which is all that a phase mark
// needs, and is not flushed: a machine that goes down takes the run with it.
func appendLine(path, line string) (err error) {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
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
