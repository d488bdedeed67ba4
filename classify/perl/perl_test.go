package perl_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/perl"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, perl.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, perl.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, perl.New()), "testdata/corpus", "testdata/vectors")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"local/lib/perl5/x86_64-linux-gnu/JSON/Quick.pm": "JSON::Quick",
		"local/lib/perl5/Ink/Well.pm":                    "Ink::Well",
		"lib/Kestrel/Pens.pm":                            "",
	} {
		if got := perl.New().Package(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("Can't locate Kestrel/Pens.pm in @INC (@INC contains: /opt/kestrel/lib) at /opt/kestrel/lib/Kestrel/App.pm line 4.\n"+
		"Compilation failed in require at /opt/kestrel/bin/kestrel line 2.\n"), classify.TailLimit)
	f := perl.New().Parse(log)
	fmt.Println(f.Module, f.Frames[0].File)
	// Output: Kestrel::Pens /opt/kestrel/bin/kestrel
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, perl.New(), "testdata/corpus", "testdata/vectors")
}
