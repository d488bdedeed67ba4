package datafmt_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/datafmt"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, datafmt.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, datafmt.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, datafmt.New()), "testdata/corpus", "testdata/vectors")
}

func ExampleRuntime() {
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{datafmt.New()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := c.Classify(classify.Input{
		Text:  []byte("kestrel: wire: peer kestreld/2.1.0 sent InkState value 9, this build (2.0.4) knows 0..7\nkestrel: cannot attach\n"),
		Exit:  classify.Exit{Code: 1},
		Roots: []classify.Root{{Name: "app", Modules: []string{"kestrel", "kestreld"}}},
	})
	fmt.Println(v.Disposition, v.Family, v.Module)
	// Output: skew wire_schema kestrel
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, datafmt.New(), "testdata/corpus", "testdata/vectors")
}
