package gitcli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// status is what one `git status` said.
type status struct {
	head    string
	entries []entry
}

// entry is one path that differs from HEAD.
type entry struct {
	path      string // from the top
	untracked bool
	submodule string // git's four letters for a submodule, empty for a file
}

// status runs the one process that an identity costs. Renames are not looked for: a renamed file is one that is gone
// and one that is new, and finding pairs takes git longer than all the rest. Submodules are looked into whatever the
// user's settings say, and the upstream branch is not compared.
func (s *Source) status(ctx context.Context, g *repo) (status, error) {
	args := []string{"status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=none", "--no-ahead-behind", "--"}
	out, err := s.git(ctx, g, nil, append(args, g.dirs...)...)
	if err != nil {
		return status{}, err
	}
	return parseStatus(out)
}

// parseStatus reads the output of git status --porcelain=v2 --branch -z.
func parseStatus(out []byte) (status, error) {
	var st status
	for record := range bytes.SplitSeq(out, []byte{0}) {
		if len(record) < 2 {
			continue
		}
		line := string(record)
		switch line[0] {
		case '#':
			if oid, ok := strings.CutPrefix(line, "# branch.oid "); ok {
				st.head = oid
			}
		case '1', 'u':
			// 1 XY sub mH mI mW hH hI path; u XY sub m1 m2 m3 mW h1 h2 h3 path
			n := 9
			if line[0] == 'u' {
				n = 11
			}
			f := strings.SplitN(line, " ", n)
			if len(f) != n {
				return status{}, fmt.Errorf("git status printed an entry that is not understood: %q", line)
			}
			e := entry{path: f[n-1]}
			if f[2] != "N..." {
				e.submodule = f[2]
			}
			st.entries = append(st.entries, e)
		case '?':
			// A trailing slash is a repository of its own inside the tree.
			if path := line[2:]; !strings.HasSuffix(path, "/") {
				st.entries = append(st.entries, entry{path: path, untracked: true})
			}
		default:
			return status{}, fmt.Errorf("git status printed a record that is not understood: %q", line)
		}
	}
	switch {
	case st.head == "":
		return status{}, errors.New("git status did not name a commit")
	case st.head == "(initial)":
		return status{}, errors.New("the repository has no commit yet")
	}
	return st, nil
}

// identity reads the files that git named. What cannot be read, or is too much, makes the identity unknown.
func (s *Source) identity(r witness.Root, g *repo, look status, at stamp.Time) witness.Identity {
	id := witness.Identity{Root: r.Name, Kind: r.Kind, At: at, Revision: look.head}
	budget := s.cfg.MaxBytes
	for _, e := range g.relevant(r, look) {
		if len(id.Dirty) == s.cfg.MaxFiles {
			return unknown(r, at, fmt.Errorf("more than %d files differ from the commit", s.cfg.MaxFiles))
		}
		f, size, err := g.file(e)
		if err != nil {
			return unknown(r, at, fmt.Errorf("changed file %s cannot be read: %w", e.path, err))
		}
		if budget -= size; budget < 0 {
			return unknown(r, at, fmt.Errorf("the files that differ from the commit hold more than %d bytes", s.cfg.MaxBytes))
		}
		id.Dirty = append(id.Dirty, f)
	}
	sort.Slice(id.Dirty, func(i, j int) bool { return id.Dirty[i].Path < id.Dirty[j].Path })
	id.Bindings = codetree.Bindings(r)
	return id
}

// relevant are the entries that belong to the identity, each path once: every tracked change, and untracked files that
// are code of the root's modules.
func (g *repo) relevant(r witness.Root, look status) []entry {
	// A matcher looks at the disk, so one is made only for a folder with untracked files.
	matchers := make([]*codetree.Matcher, len(g.real))
	var out []entry
	seen := map[string]bool{}
	for _, e := range look.entries {
		if seen[e.path] {
			continue // deleted in the index, but there again: git names it twice
		}
		if e.untracked && !g.matches(r, matchers, e.path) {
			continue
		}
		seen[e.path] = true
		out = append(out, e)
	}
	return out
}

// matches reports that an untracked file is code of the root's modules, as seen from one of its folders.
func (g *repo) matches(r witness.Root, matchers []*codetree.Matcher, fromTop string) bool {
	for i, dir := range g.dirs {
		rel := fromTop
		if dir != "." {
			var ok bool
			if rel, ok = strings.CutPrefix(fromTop, dir+"/"); !ok {
				continue
			}
		}
		if matchers[i] == nil {
			matchers[i] = codetree.NewMatcher(r, g.real[i], codetree.Exists)
		}
		if matchers[i].Match(rel) {
			return true
		}
	}
	return false
}

// file is one dirty file and how many bytes were read for it.
func (g *repo) file(e entry) (witness.File, int64, error) {
	f := witness.File{Path: printable(g.toRoot(e.path))}
	name := filepath.Join(g.top, e.path)
	fi, err := os.Lstat(name)
	switch {
	// Gone, or out of reach because a file took the place of its folder: either way it is deleted.
	case errors.Is(err, fs.ErrNotExist) || isNotFolder(err):
		return f, 0, nil
	case err != nil:
		return f, 0, err
	case e.submodule != "":
		f.Digest = submoduleDigest(name, e.submodule)
		return f, 0, nil
	case fi.IsDir():
		// A folder took the place of a tracked file.
		return f, 0, nil
	}
	f.Digest, err = codetree.Digest(name, fi)
	if errors.Is(err, fs.ErrNotExist) {
		return f, 0, nil // gone since git looked
	}
	return f, min(fi.Size(), codetree.DigestLimit), err
}

// submoduleDigest stands for a changed submodule: git's letters for how it changed, and the commit it stands on.
func submoduleDigest(dir, letters string) string {
	head := ""
	g := &repo{top: dir}
	if g.findGitDir() == nil {
		head = readText(filepath.Join(g.gitDir, "HEAD"))
		if ref := g.headRef(); ref != "" {
			head += readText(filepath.Join(g.common, filepath.FromSlash(ref)))
		}
	}
	sum := sha256.Sum256([]byte("submodule\x00" + letters + "\x00" + head))
	return hex.EncodeToString(sum[:])
}

// readText is the content of one of git's small files. One that cannot be read is empty, which still is one state.
func readText(name string) string {
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return string(text)
}

// printable makes a file name that is not UTF-8 fit for JSON without making two names one: an identity must have the
// same key before and after it was stored.
func printable(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	var b strings.Builder
	for i := 0; i < len(name); {
		c, n := utf8.DecodeRuneInString(name[i:])
		switch {
		case c == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, name[i])
		case c == '\\':
			b.WriteString(`\\`)
		default:
			b.WriteString(name[i : i+n])
		}
		i += n
	}
	return b.String()
}
