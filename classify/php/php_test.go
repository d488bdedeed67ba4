package php_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/php"
	"github.com/mulligan-dev/mulligan/classify/text"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, php.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, php.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, php.New()), "testdata/corpus", "testdata/vectors")
}

func TestPackage(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"vendor/guzzlet/http-client/src/Client.php": `Guzzlet\HttpClient`,
		"vendor/autoload.php":                       "",
		"src/Vendor/List.php":                       "",
	} {
		if got := php.New().Package(path); got != want {
			t.Errorf("%s belongs to %q, want %q", path, got, want)
		}
	}
}

func ExampleRuntime() {
	log := text.Read([]byte("PHP Fatal error:  Uncaught Error: Class \"Kestrel\\Pens\\Quill\" not found in /opt/kestrel/src/App.php:5\n"+
		"Stack trace:\n#0 /opt/kestrel/src/main.php(9): Kestrel\\App->boot()\n#1 {main}\n  thrown in /opt/kestrel/src/App.php on line 5\n"), classify.TailLimit)
	f := php.New().Parse(log)
	fmt.Println(f.Type, f.Module, len(f.Frames))
	// Output: Error Kestrel\Pens\Quill 2
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, php.New(), "testdata/corpus", "testdata/vectors")
}
