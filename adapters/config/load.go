package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// EnvFile is the environment variable that names the config file.
const EnvFile = "MULLIGAN_CONFIG"

// FileName is the file that is looked for in the working folder.
const FileName = "mulligan.yaml"

// sizeLimit is far above any config that a person wrote.
const sizeLimit = 1 << 20

// Load finds the config and reads it: the file that explicit names, else the one that $MULLIGAN_CONFIG names (env is its
// value), else mulligan.yaml in dir, else the defaults. A file that somebody named must be there; only mulligan.yaml may
// be absent. Relative names are counted from dir, the working folder.
func Load(explicit, env, dir string, o Options) (Config, error) {
	name, from := explicit, "--config"
	if name == "" {
		name, from = env, "$"+EnvFile
	}
	named := name != ""
	if !named {
		name = FileName
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	data, err := read(path)
	switch {
	case err == nil:
		return parse(name, path, data, o)
	case !named && errors.Is(err, fs.ErrNotExist):
		return Default(), nil
	case named:
		return Config{}, fmt.Errorf("read the config that %s names: %w", from, err)
	}
	return Config{}, fmt.Errorf("read the config: %w", err)
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, sizeLimit+1))
	if err == nil && len(data) > sizeLimit {
		err = fmt.Errorf("%s: more than %d bytes, which no config needs", path, sizeLimit)
	}
	return data, err
}

// Parse reads a config from text. path is the file that it came from: it stands in problems, and relative folders are
// counted from its folder.
func Parse(path string, data []byte, o Options) (Config, error) { return parse(path, path, data, o) }

func parse(shown, path string, data []byte, o Options) (Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Config{}, fmt.Errorf("find the folder of %s: %w", shown, err)
	}
	p := &parser{file: shown, options: o, folder: Folder, future: future, detect: DetectKind, base: filepath.Dir(abs)}
	c := p.document(data)
	if len(p.problems) > 0 {
		return Config{}, p.err()
	}
	c.File = abs
	return c, nil
}
