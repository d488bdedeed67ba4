package shell_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/shell"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, shell.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, shell.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, shell.New()), "testdata/corpus", "testdata/vectors")
}

// TestOthers holds that lines of the same shape which no shell prints are left to whom they belong.
func TestOthers(t *testing.T) {
	t.Parallel()
	for _, l := range []string{
		"/opt/kestrel/lib/pens.rb:5: syntax error, unexpected end-of-input",
		"/opt/kestrel/src/pens.c:5: error: ink.h: No such file or directory",
		"/opt/kestrel/bin/kestrel: error while loading shared libraries: libink.so: cannot open shared object file: No such file or directory",
		"kestrel: line 4: ink: command not found",
		"INFO tool says: line 3: x: No such file or directory",
	} {
		if f := shell.New().Parse(text.Read([]byte(l), classify.TailLimit)); f != nil {
			t.Errorf("%q is taken for a shell's: %+v", l, f)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("/opt/kestrel/bin/kestrel.sh: line 3: /opt/kestrel/lib/pens.sh: No such file or directory\n"), classify.TailLimit)
	f := shell.New().Parse(log)
	fmt.Println(f.File, f.Frames[0].File, f.Frames[0].Line)
	// Output: /opt/kestrel/lib/pens.sh /opt/kestrel/bin/kestrel.sh 3
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, shell.New(), "testdata/corpus", "testdata/vectors")
}
