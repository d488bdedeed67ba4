package beam_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/beam"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("** (UndefinedFunctionError) function Kestrel.Pen.dip/2 is undefined (module Kestrel.Pen is not available)\n"+
		"    Kestrel.Pen.dip(:blue, 3)\n"+
		"    (kestrel 2.1.0) lib/kestrel/desk.ex:31: Kestrel.Desk.write/1\n"), classify.TailLimit)
	f := beam.New().Parse(log)
	fmt.Println(f.Type, f.Module, f.Symbol, len(f.Frames))
	// Output: UndefinedFunctionError Kestrel.Pen dip/2 1
}

func ExampleRuntime_Files() {
	fmt.Println(beam.New().Files("Kestrel.Pen"), beam.New().Files("kestrel_pen"), beam.New().Module("ebin/Elixir.Kestrel.Pen.beam"))
	// Output: [Elixir.Kestrel.Pen.beam] [kestrel_pen.beam kestrel_pen.erl] Kestrel.Pen
}
