package golang_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/golang"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("panic: plugin: symbol InkV2 not found in plugin kestrel.dev/pens\n\n"+
		"goroutine 1 [running]:\n"+
		"kestrel.dev/kes/desk.Open(...)\n"+
		"\tkestrel.dev/kes/desk/desk.go:12\n"+
		"main.main()\n"+
		"\tkestrel.dev/kes/main.go:5 +0x51\n"), classify.TailLimit)
	f := golang.New().Parse(log)
	fmt.Println(f.Module, f.Symbol, f.Frames[1].Unit)
	// Output: kestrel.dev/pens InkV2 kestrel.dev/kes/desk
}
