package tcl_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/tcl"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, tcl.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, tcl.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, tcl.New()), "testdata/corpus", "testdata/vectors")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"lib/inkette1.7/ink.tcl": "inkette",
		"releases/v1.2/app.tcl":  "",
		"releases/1.2/app.tcl":   "",
		"lib/kestrel/pens.tcl":   "",
		"app1.2.tcl":             "",
		"kestrel-1.2/app.tcl":    "",
	} {
		if got := tcl.New().Package(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("can't find package kestrel::pens 1.4\n    while executing\n\"package require kestrel::pens 1.4\"\n    (file \"/opt/kestrel/app.tcl\" line 2)\n"), classify.TailLimit)
	f := tcl.New().Parse(log)
	fmt.Println(f.Module, f.Frames[0].File)
	// Output: kestrel::pens /opt/kestrel/app.tcl
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, tcl.New(), "testdata/corpus", "testdata/vectors")
}
