package python_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func newClassifier(t testing.TB) *classify.Classifier {
	t.Helper()
	return vectortest.New(t, python.New())
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, newClassifier(t), "testdata/corpus", vectortest.Corpus)
}

// TestVectors holds the vectors that were made for this package: captured from interpreters 2.7 to 3.13 with one real
// failure each, and imitated where a loader, a client library or a renderer prints the text.
func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, newClassifier(t), "testdata/vectors", vectortest.Exact)
}
