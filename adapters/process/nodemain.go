package process

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// nodeMain is the file that Node.js starts for an absolute path of a command line, which may leave out the ending or name
// a folder ("node .", "node agent"). A probe that did not know the file would load it as a module, and that runs it. A
// path that leads nowhere stays as it is.
func nodeMain(path string) string {
	if isFile(path) {
		return path
	}
	if f := withEnding(path); f != "" {
		return f
	}
	var manifest struct{ Main string }
	if b, err := os.ReadFile(filepath.Join(path, "package.json")); err == nil && json.Unmarshal(b, &manifest) == nil && manifest.Main != "" {
		named := filepath.Join(path, manifest.Main)
		if isFile(named) {
			return named
		}
		for _, p := range []string{named, filepath.Join(named, "index")} {
			if f := withEnding(p); f != "" {
				return f
			}
		}
	}
	if f := withEnding(filepath.Join(path, "index")); f != "" {
		return f
	}
	return path
}

// withEnding is the file that a path without an ending stands for, empty where there is none.
func withEnding(path string) string {
	for _, e := range []string{".js", ".json", ".node"} {
		if isFile(path + e) {
			return path + e
		}
	}
	return ""
}

func isFile(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir()
}
