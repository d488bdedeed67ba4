package beam_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify/beam"
	"github.com/mulligan-dev/mulligan/classify/internal/scoretest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	scoretest.Folder(t, scoretest.Classifier(t, beam.New()), "testdata/corpus/*.json", scoretest.Goal{Recall: 0.97, Detail: 0.95, Disposition: 1})
}

// TestMade holds the vectors that were written after the templates of the runtime.
func TestMade(t *testing.T) {
	t.Parallel()
	scoretest.Lines(t, scoretest.Classifier(t, beam.New()), "testdata/made.jsonl", scoretest.Goal{Recall: 1, Detail: 1, Disposition: 1})
}

func TestDressed(t *testing.T) {
	t.Parallel()
	scoretest.Dressed(t, scoretest.Classifier(t, beam.New()), "testdata/made.jsonl")
}
