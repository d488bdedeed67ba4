package rust_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/rust"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("thread 'main' panicked at src/main.rs:8:66:\n"+
		"pens must load: \"/opt/kestrel/lib/libpens.so: undefined symbol: kes_ink\"\n"+
		"note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n"), classify.TailLimit)
	f := rust.New().Parse(log)
	fmt.Println(f.Object, f.Symbol)
	// Output: /opt/kestrel/lib/libpens.so kes_ink
}
