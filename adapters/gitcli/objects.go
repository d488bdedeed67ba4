package gitcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/witness"
)

// ErrNoRevision is wrapped where a commit is not in the repository: it was collected, or lies beyond the end of a
// shallow clone.
var ErrNoRevision = errors.New("the commit is not in the repository")

// Read implements [witness.History].
func (s *Source) Read(ctx context.Context, r witness.Root, rev, path string) ([]byte, bool, error) {
	got, err := s.ReadAll(ctx, r, []witness.Blob{{Revision: rev, Path: path}})
	if err != nil {
		return nil, false, err
	}
	return got[0].Data, got[0].Exists, nil
}

// ReadAll implements [witness.BatchReader] with one git process, and one more for each path with a line feed in its
// name.
func (s *Source) ReadAll(ctx context.Context, r witness.Root, blobs []witness.Blob) ([]witness.Content, error) {
	if len(blobs) == 0 {
		return nil, nil
	}
	out, err := s.readAll(ctx, r, blobs)
	if err != nil {
		return nil, fmt.Errorf("read old files of root %s: %w", r.Name, err)
	}
	return out, nil
}

// readAll asks for the commits first and then for the files, and takes the answers in the same order: git answers each
// line before it reads the next, and one that is not understood ends the reading rather than shift the rest.
func (s *Source) readAll(ctx context.Context, r witness.Root, blobs []witness.Blob) ([]witness.Content, error) {
	var revs []string
	for _, b := range blobs {
		if !slices.Contains(revs, b.Revision) {
			revs = append(revs, b.Revision)
		}
	}
	g, err := s.question(r, revs...)
	if err != nil {
		return nil, err
	}
	// Each commit is asked for by itself first: git answers "missing" for a file of an unknown commit as well.
	var ask bytes.Buffer
	for _, rev := range revs {
		fmt.Fprintf(&ask, "%s^{commit}\n", rev)
	}
	names := make([]string, len(blobs))
	for i, b := range blobs {
		if names[i], err = s.objectName(ctx, g, b); err != nil {
			return nil, err
		}
		if names[i] != "" {
			ask.WriteString(names[i] + "\n")
		}
	}
	// A commit that is not there yet may come.
	sound := func(answer []byte) bool {
		for range revs {
			o, rest, err := nextObject(answer)
			if err != nil || o.kind != "commit" {
				return false
			}
			answer = rest
		}
		return true
	}
	answer, err := s.past(ctx, g, ask.Bytes(), sound, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	for _, rev := range revs {
		object, rest, err := nextObject(answer)
		if err != nil {
			return nil, err
		}
		if object.kind != "commit" {
			return nil, fmt.Errorf("%w: %s", ErrNoRevision, rev)
		}
		answer = rest
	}
	out := make([]witness.Content, len(blobs))
	for i, name := range names {
		if name == "" {
			continue
		}
		object, rest, err := nextObject(answer)
		if err != nil {
			return nil, err
		}
		answer = rest
		// A folder or a submodule at the path is no file, and reads as none.
		if object.kind == "blob" {
			out[i] = witness.Content{Data: object.data, Exists: true}
		}
	}
	return out, nil
}

// objectName is how cat-file is asked for a file, empty when there can be none. cat-file reads one name a line, so a
// name with a line feed is looked up by itself.
func (s *Source) objectName(ctx context.Context, g *repo, b witness.Blob) (string, error) {
	at, ok := g.toTop(b.Path)
	if !ok || at == "." {
		return "", nil
	}
	if !strings.ContainsRune(at, '\n') {
		return b.Revision + ":" + at, nil
	}
	out, err := s.git(ctx, g, nil, "ls-tree", "-z", b.Revision, "--", at)
	if err != nil {
		return "", err
	}
	// "mode type oid\tpath"
	head, _, _ := strings.Cut(string(out), "\t")
	if f := strings.Fields(head); len(f) == 3 {
		return f[2], nil
	}
	return "", nil
}

// object is one answer of git: what kind of thing the name is, and what it holds.
type object struct {
	kind string // empty when it is missing
	data []byte
}

// nextObject reads one answer of cat-file --batch: "oid type size\n" and the content with a line feed, or "name
// missing\n".
func nextObject(answer []byte) (object, []byte, error) {
	line, rest, ok := bytes.Cut(answer, []byte{'\n'})
	if !ok {
		return object{}, nil, errors.New("git cat-file ended before all files were answered")
	}
	if bytes.HasSuffix(line, []byte(" missing")) || bytes.HasSuffix(line, []byte(" ambiguous")) {
		return object{}, rest, nil
	}
	f := strings.Fields(string(line))
	if len(f) != 3 {
		return object{}, nil, fmt.Errorf("git cat-file printed an answer that is not understood: %q", line)
	}
	size, err := strconv.Atoi(f[2])
	if err != nil || size < 0 || size >= len(rest) {
		return object{}, nil, fmt.Errorf("git cat-file printed an answer that is cut off: %q", line)
	}
	return object{kind: f[1], data: rest[:size]}, rest[size+1:], nil
}
