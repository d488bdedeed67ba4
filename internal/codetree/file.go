package codetree

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/mulligan-dev/mulligan/witness"
)

// DigestLimit is the size up to which a file's content is read. A larger one is told by its size and change of content
// time instead: a model file of gigabytes must not hold up an identity.
const DigestLimit = 8 << 20

// Digest is the SHA-256 of what a file holds, in hex. A symbolic link is its target's name; what is neither file nor
// link is its kind.
func Digest(name string, fi os.FileInfo) (string, error) {
	h := sha256.New()
	switch {
	case fi.Mode()&os.ModeSymlink != 0:
		target, err := os.Readlink(name)
		if err != nil {
			return "", err
		}
		h.Write([]byte(target))
	case !fi.Mode().IsRegular():
		fmt.Fprintf(h, "kind\x00%s", fi.Mode().Type())
	case fi.Size() > DigestLimit:
		fmt.Fprintf(h, "stat\x00%d\x00%d", fi.Size(), fi.ModTime().UnixNano())
	default:
		f, err := os.Open(name)
		if err != nil {
			return "", err
		}
		defer f.Close()
		if _, err := io.Copy(h, io.LimitReader(f, DigestLimit+1)); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Exists reports whether there is anything at a path.
func Exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// Missing is the size that stands for a declared binding that is not there.
const Missing = -1

// Bindings reads the declared native libraries of a root, sorted by path. A declaration is a path, absolute or
// relative to each of the root's folders, a pattern (*, ?, [...]), or the name of a module as it is imported
// ("acme._native"). One that matches nothing is kept with size [Missing], so that a library which comes or goes
// changes the identity.
func Bindings(r witness.Root) []witness.Binding {
	var out []witness.Binding
	for _, declared := range r.Bindings {
		found := bindingFiles(r, declared)
		if len(found) == 0 {
			out = append(out, witness.Binding{Path: declared, Size: Missing})
			continue
		}
		for _, name := range found {
			out = append(out, readBinding(name))
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return slices.Compact(out)
}

// libraries are the endings of native libraries; a build tag may stand before them.
var libraries = []string{".so", ".dylib", ".pyd", ".dll", ".node"}

func bindingFiles(r witness.Root, declared string) []string {
	r = r.Live()
	if filepath.IsAbs(declared) {
		return glob(declared)
	}
	var out []string
	for _, d := range r.Dirs {
		for _, in := range []string{"", "src", "lib"} {
			at := filepath.Join(d, in)
			out = append(out, glob(filepath.Join(at, declared))...)
			if IsCode(declared) || strings.ContainsAny(declared, `/*?[`) {
				continue
			}
			module := filepath.Join(at, filepath.Join(components(declared)...))
			for _, end := range libraries {
				out = append(out, glob(module+end)...)
				out = append(out, glob(module+".*"+end)...)
				out = append(out, glob(filepath.Join(module, "*"+end))...)
			}
		}
	}
	return slices.DeleteFunc(out, isFolder)
}

func isFolder(name string) bool {
	fi, err := os.Stat(name)
	return err == nil && fi.IsDir()
}

// glob is the one file of that very name, or what the name matches as a pattern.
func glob(name string) []string {
	if Exists(name) {
		return []string{name}
	}
	if !strings.ContainsAny(name, "*?[") {
		return nil
	}
	found, err := filepath.Glob(name)
	if err != nil {
		return nil // a name that is no valid pattern matches nothing
	}
	return found
}

func readBinding(name string) witness.Binding {
	fi, err := os.Stat(name)
	if err != nil {
		return witness.Binding{Path: name, Size: Missing}
	}
	return witness.Binding{Path: name, Size: fi.Size(), MTime: fi.ModTime().UnixNano(), BuildID: gnuBuildID(name, fi)}
}
