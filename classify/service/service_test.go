package service_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/service"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, service.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, service.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, service.New()), "testdata/corpus", "testdata/vectors")
}

func ExampleRuntime() {
	log := text.Read([]byte("kestrel.service: Failed at step EXEC spawning /opt/kestrel/bin/kestrel: No such file or directory\n"+
		"kestrel.service: Main process exited, code=exited, status=203/EXEC\n"), classify.TailLimit)
	f := service.New().Parse(log)
	fmt.Println(f.Kind == classify.KindMissingModule, f.File)
	// Output: true /opt/kestrel/bin/kestrel
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, service.New(), "testdata/corpus", "testdata/vectors")
}
