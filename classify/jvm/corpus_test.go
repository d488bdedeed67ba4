package jvm_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify/internal/scoretest"
	"github.com/mulligan-dev/mulligan/classify/jvm"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	scoretest.Folder(t, scoretest.Classifier(t, jvm.New()), "testdata/corpus/*.json", scoretest.Goal{Recall: 0.97, Detail: 0.95, Disposition: 1})
}

// TestVectors holds the vectors that were made for this package: printed by a virtual machine whose classes were changed
// underneath it, one kind of change each.
func TestVectors(t *testing.T) {
	t.Parallel()
	scoretest.Lines(t, scoretest.Classifier(t, jvm.New()), "testdata/vectors.jsonl", scoretest.Goal{Recall: 1, Detail: 1, Disposition: 1})
}

// TestMade holds the vectors that were written after the templates of other versions, loggers and frameworks.
func TestMade(t *testing.T) {
	t.Parallel()
	scoretest.Lines(t, scoretest.Classifier(t, jvm.New()), "testdata/made.jsonl", scoretest.Goal{Recall: 1, Detail: 1, Disposition: 1})
}

func TestDressed(t *testing.T) {
	t.Parallel()
	c := scoretest.Classifier(t, jvm.New())
	scoretest.Dressed(t, c, "testdata/vectors.jsonl")
	scoretest.Dressed(t, c, "testdata/made.jsonl")
}
