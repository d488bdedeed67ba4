package python_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/python"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("kes-1  | Traceback (most recent call last):\n"+
		"kes-1  |   File \"/opt/kestrel/lib/kestrel/app.py\", line 3, in <module>\n"+
		"kes-1  |     import kestrel.pens\n"+
		"kes-1  | ModuleNotFoundError: No module named 'kestrel.pens'\n"), classify.TailLimit)
	f := python.New().Parse(log)
	fmt.Println(f.Type, f.Module, len(f.Frames))
	// Output: ModuleNotFoundError kestrel.pens 1
}

func ExampleFiles() {
	fmt.Println(python.Files("kestrel.pens")[:2])
	fmt.Println(python.Module("kestrel/pens/__init__.py"), python.Module(`kestrel\_speed.cpython-311-x86_64-linux-gnu.so`))
	// Output:
	// [kestrel/pens.py kestrel/pens/__init__.py]
	// kestrel.pens kestrel._speed
}

func ExampleBinds() {
	src := []byte("from kestrel.pens import Quill as Pen\n\ndef dip(pen):\n    depth = 2\n")
	for _, name := range []string{"Pen", "Quill", "dip", "depth"} {
		fmt.Println(name, python.Binds(src, name))
	}
	// Output:
	// Pen true
	// Quill false
	// dip true
	// depth false
}
