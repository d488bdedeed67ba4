package classify_test

import (
	"fmt"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func Example() {
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{python.New()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := c.Classify(classify.Input{
		Text: []byte("Traceback (most recent call last):\n" +
			"  File \"/opt/kestrel/lib/kestrel/app.py\", line 3, in <module>\n" +
			"    from kestrel.pens import Quill\n" +
			"ImportError: cannot import name 'Quill' from 'kestrel.pens' (/opt/kestrel/lib/kestrel/pens.py)\n"),
		Exit:  classify.Exit{Code: 1},
		Roots: []classify.Root{{Name: "kestrel", Dirs: []string{"/opt/kestrel/lib"}, Modules: []string{"kestrel"}}},
	})
	fmt.Println(v.Disposition, v.Family, v.Module, v.Symbol, v.ManagedModules)
	// Output: skew torn_import kestrel.pens Quill [kestrel.app]
}

// inHouse is a runtime of the host's own: a scripting language whose errors are one line.
type inHouse struct{}

func (inHouse) Name() string { return "inhouse" }

func (inHouse) Parse(log *text.Log) *classify.Failure {
	for i := len(log.Lines) - 1; i >= 0; i-- {
		if at, name, ok := strings.Cut(log.Lines[i], ": no unit "); ok {
			return &classify.Failure{Kind: classify.KindMissingModule, Module: name, Frames: []classify.Frame{{File: at, Function: "main"}}, First: i, Line: i, Last: i}
		}
	}
	return nil
}

func (inHouse) Module(path string) string { return strings.TrimSuffix(path, ".ih") }

func ExampleRuntime() {
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{inHouse{}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := c.Classify(classify.Input{
		Text:  []byte("/srv/plans/daily.ih: no unit plans/lanes\n"),
		Exit:  classify.Exit{Code: 3},
		Roots: []classify.Root{{Name: "plans", Dirs: []string{"/srv"}, Modules: []string{"plans"}}},
	})
	fmt.Println(v.Disposition, v.Family, v.Module)
	// Output: skew torn_import plans/lanes
}

func ExampleDecodeCase() {
	_, err := classify.DecodeCase([]byte(`{"id": "torn-1", "exit": {"code": "1"}}`))
	fmt.Println(err)
	// Output: decode case torn-1: exit: code: string where a whole number is wanted; text: missing, and no text_base64 either
}
