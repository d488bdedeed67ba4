package image

import (
	"context"
	"fmt"
	"regexp"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// digest is an image's digest as registries write it. What follows the last sign must be none of its own: a longer run of
// them is no digest.
var digest = regexp.MustCompile(`\b(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})\b`)

// maxFile bounds the file.
const maxFile = 64 << 10

// read finds the one digest that the root's file names.
func (s *Source) read(_ context.Context, live witness.Root) (codetree.Look, error) {
	at, fi, err := codetree.Named(live, live.Package)
	if err != nil {
		return codetree.Look{}, err
	}
	text, err := codetree.ReadFile(at, maxFile)
	if err != nil {
		return codetree.Look{}, err
	}
	found := map[string]bool{}
	for _, d := range digest.FindAll(text, -1) {
		found[string(d)] = true
	}
	switch len(found) {
	case 0:
		return codetree.Look{}, fmt.Errorf("%s names no image digest: want sha256: and 64 hexadecimal digits, alone or within a reference", at)
	case 1:
	default:
		return codetree.Look{}, fmt.Errorf("%s names %d digests, and which is the image's is not certain: let it name that one alone", at, len(found))
	}
	return codetree.Dated(at, string(digest.Find(text)), fi)
}
