package jvm_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify/internal/scoretest"
	"github.com/mulligan-dev/mulligan/classify/jvm"
)

// FuzzClassify holds what must be true of a verdict on any text at all. Its seeds are the vectors.
func FuzzClassify(f *testing.F) {
	scoretest.Fuzz(f, scoretest.Classifier(f, jvm.New()), "testdata/vectors.jsonl", "testdata/made.jsonl")
}

// BenchmarkParse reads one failure at the end of a full tail of healthy lines.
func BenchmarkParse(b *testing.B) {
	scoretest.Bench(b, scoretest.Classifier(b, jvm.New()), "testdata/made.jsonl")
}
