package loader_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/loader"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func newClassifier(t testing.TB) *classify.Classifier {
	t.Helper()
	return vectortest.New(t, loader.New())
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, newClassifier(t), "testdata/corpus", vectortest.Corpus)
}

// TestVectors holds the vectors that were made for this package: what was really printed for one failure each, and
// imitations where another version, system or client prints the text.
func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, newClassifier(t), "testdata/vectors", vectortest.Exact)
}
