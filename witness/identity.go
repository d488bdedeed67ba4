package witness

import (
	"crypto/sha256"
	"encoding/hex"
	"sort"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Root is a tree of managed code together with how its identity is read and its health is probed. The declaration is
// kept with each run, so that a healer can judge runs of hosts it knows nothing else about.
type Root struct {
	classify.Root
	// Kind selects the [Source]: "git", "pypackage", "folder", "npm", "gem", "jar", "image", "binary", or a host's own.
	Kind string `json:"kind"`
	// Package names what counts in the folders: the distribution for Kind "pypackage", the package for "npm", the gem for
	// "gem", the archive for "jar", and the file for "image" and "binary".
	Package string `json:"package,omitempty"`
	// Runtime selects the prober: "python", or a host's own. Empty: no prober.
	Runtime string `json:"runtime,omitempty"`
	// Declared are the folders as they were declared, in the order of Dirs, where a symlink leads to one of them; empty
	// otherwise. Dirs, resolved at boot, are the code that the process began with. What the root holds is read through
	// Declared, so that a release that is put in place by switching a link is seen as the update that it is.
	Declared []string `json:"declared,omitempty"`
}

// Live is the root as a [Source] reads it: through the declared folders, wherever they lead now.
func (r Root) Live() Root {
	if len(r.Declared) > 0 {
		r.Dirs, r.Declared = r.Declared, nil
	}
	return r
}

// everywhere are all the paths under which the root's folders are known.
func everywhere(dirs, declared []string) []string {
	return append(append(make([]string, 0, len(dirs)+len(declared)), dirs...), declared...)
}

// Place says where the root is, independent of its name: two declarations with one place are the same tree.
func (r Root) Place() string {
	dirs := append([]string(nil), r.Dirs...)
	sort.Strings(dirs)
	return r.Kind + ":" + r.Package + ":" + strings.Join(dirs, ":")
}

// File is one file of the dirty part of an identity.
type File struct {
	// Path is relative to the root's first folder, with slashes.
	Path string `json:"path"`
	// Digest is the SHA-256 of the content in hex, empty for a deleted file.
	Digest string `json:"digest,omitempty"`
}

// Binding is what a declared native library looked like.
type Binding struct {
	Path    string `json:"path"`
	Size    int64  `json:"size"`
	MTime   int64  `json:"mtime"` // Unix nanoseconds
	BuildID string `json:"build_id,omitempty"`
}

// Identity is what code a root held at one moment. A log file beside the code changes nothing in it.
type Identity struct {
	Root string     `json:"root"`
	Kind string     `json:"kind"`
	At   stamp.Time `json:"at"`
	// Revision is the commit, package version with its RECORD digest, manifest digest or image digest.
	Revision string `json:"revision,omitempty"`
	// Dirty are the files that differ from Revision: tracked changes, and untracked files that match the root's module
	// patterns. Sorted by path.
	Dirty    []File    `json:"dirty,omitempty"`
	Bindings []Binding `json:"bindings,omitempty"`
	// Unknown says why there is no identity; then nothing else is set and the identity equals no other.
	Unknown string `json:"unknown,omitempty"`
}

// Known reports whether the identity says anything.
func (i Identity) Known() bool { return i.Unknown == "" && i.Revision != "" }

// Key is the identity as a short text: two known identities of a root are the same tree exactly when their keys are
// equal. It is empty for an unknown identity.
func (i Identity) Key() string {
	if !i.Known() {
		return ""
	}
	if len(i.Dirty) == 0 && len(i.Bindings) == 0 {
		return i.Revision
	}
	return i.Revision + "+" + i.dirtyDigest()
}

// Whole is the identity that has a key, for a key that says all there is to it: that of a root without changed files and
// without native libraries. Of any other key ok is false, and the root has to be read.
func Whole(key string) (id Identity, ok bool) {
	i := strings.LastIndexByte(key, '+')
	if key == "" || i >= 0 && len(key)-i-1 == digestLen && strings.Trim(key[i+1:], "0123456789abcdef") == "" {
		return Identity{}, false
	}
	return Identity{Revision: key}, true
}

// digestLen is how many digits of the dirty part's digest a key has.
const digestLen = 16

func (i Identity) dirtyDigest() string {
	h := sha256.New()
	for _, f := range i.Dirty {
		h.Write([]byte(f.Path + "\x00" + f.Digest + "\x00"))
	}
	for _, b := range i.Bindings {
		h.Write([]byte(b.Path + "\x00" + strconv.FormatInt(b.Size, 10) + "\x00" + strconv.FormatInt(b.MTime, 10) + "\x00" + b.BuildID + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))[:digestLen]
}
