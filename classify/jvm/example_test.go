package jvm_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/jvm"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("Exception in thread \"main\" java.lang.NoSuchMethodError: 'void org.kestrel.Pen.dip(int)'\n"+
		"\tat org.kestrel.Desk.write(Desk.java:31)\n"+
		"\tat org.kestrel.Desk.main(Desk.java:12)\n"), classify.TailLimit)
	f := jvm.New().Parse(log)
	fmt.Println(f.Type, f.Module, f.Symbol, len(f.Frames))
	// Output: NoSuchMethodError org.kestrel.Pen dip 2
}

func ExampleRuntime_Files() {
	fmt.Println(jvm.New().Files("org.kestrel.Pen$Nib")[:2])
	fmt.Println(jvm.New().Module("org/kestrel/Pen$Nib.class"))
	// Output:
	// [org/kestrel/Pen$Nib.class org/kestrel/Pen.java]
	// org.kestrel.Pen
}
