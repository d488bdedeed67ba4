package lua_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/lua"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, lua.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, lua.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, lua.New()), "testdata/corpus", "testdata/vectors")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"lua_modules/share/lua/5.4/ink/well.lua": "ink.well",
		"lib/kestrel/init.lua":                   "",
	} {
		if got := lua.New().Package(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("lua5.4: /opt/kestrel/app.lua:3: module 'kestrel.pens' not found:\n\tno file '/opt/kestrel/kestrel/pens.lua'\n"+
		"stack traceback:\n\t[C]: in function 'require'\n\t/opt/kestrel/app.lua:3: in main chunk\n\t[C]: in ?\n"), classify.TailLimit)
	f := lua.New().Parse(log)
	fmt.Println(f.Module, len(f.Frames))
	// Output: kestrel.pens 3
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, lua.New(), "testdata/corpus", "testdata/vectors")
}
