package dotnet_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/dotnet"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("Unhandled exception. System.MissingMethodException: Method not found: 'Void Kestrel.Ink.Pen.Dip(Int32)'.\n"+
		"   at Kestrel.Desk.Program.Main(String[] args) in /_/src/Program.cs:line 12\n"), classify.TailLimit)
	f := dotnet.New().Parse(log)
	fmt.Println(f.Type, f.Module, f.Symbol, len(f.Frames))
	// Output: MissingMethodException Kestrel.Ink.Pen Dip 1
}

func ExampleRuntime_Files() {
	fmt.Println(dotnet.New().Files("Kestrel.Ink"), dotnet.New().Module("lib/net8.0/Kestrel.Ink.dll"))
	// Output: [Kestrel.Ink.dll Kestrel.Ink.exe] Kestrel.Ink
}
