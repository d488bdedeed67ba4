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
