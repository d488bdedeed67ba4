package dotnet_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify/dotnet"
	"github.com/mulligan-dev/mulligan/classify/internal/scoretest"
)

// FuzzClassify holds what must be true of a verdict on any text at all. Its seeds are the vectors.
func FuzzClassify(f *testing.F) {
	scoretest.Fuzz(f, scoretest.Classifier(f, dotnet.New()), "testdata/made.jsonl")
}

// BenchmarkParse reads one failure at the end of a full tail of healthy lines.
func BenchmarkParse(b *testing.B) {
	scoretest.Bench(b, scoretest.Classifier(b, dotnet.New()), "testdata/made.jsonl")
}
