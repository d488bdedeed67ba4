package loader_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/loader"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("/opt/kestrel/bin/kes: symbol lookup error: /opt/kestrel/lib/libkes.so.2: undefined symbol: kes_ink\n"), classify.TailLimit)
	f := loader.New().Parse(log)
	fmt.Println(f.Object, f.Symbol, f.Frames[0].File)
	// Output: /opt/kestrel/lib/libkes.so.2 kes_ink /opt/kestrel/bin/kes
}
