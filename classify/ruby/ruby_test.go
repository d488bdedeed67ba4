package ruby_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/ruby"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, ruby.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, ruby.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, ruby.New()), "testdata/corpus", "testdata/vectors")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"vendor/bundle/ruby/3.1.0/gems/logtide-2.0.1/lib/logtide.rb": "logtide",
		"gems/acme-wire-1.5.1-x86_64-linux/lib/acme/wire.rb":         "acme-wire",
		"bundler/gems/kestrel-0123456789ab/lib/kestrel.rb":           "kestrel",
		"lib/acme/gems/list.rb":                                      "",
		"gems/outer-1.0/vendor/gems/inner-2.0/lib/inner.rb":          "inner",
	} {
		if got := ruby.New().Package(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("/opt/kestrel/lib/kestrel/app.rb:3:in `boot': uninitialized constant Kestrel::Pens::Quill (NameError)\n"+
		"\tfrom /opt/kestrel/lib/kestrel/app.rb:9:in `<main>'\n"), classify.TailLimit)
	f := ruby.New().Parse(log)
	fmt.Println(f.Type, f.Module, f.Symbol, len(f.Frames))
	// Output: NameError Kestrel::Pens Quill 2
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, ruby.New(), "testdata/corpus", "testdata/vectors")
}
