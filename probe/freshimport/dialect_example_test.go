package freshimport_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/probe/freshimport"
)

// A debugger's port is dropped and a hook is kept, and the files behind both are the run's own.
func ExampleDialect() {
	c, ok := freshimport.Node.Parse([]string{"node", "--inspect=9229", "-r", "./hook.js", "agent.js", "--fast"})
	rt := freshimport.Node.Runtime(c, "/usr/bin/node", []string{"NODE_PATH=/srv/acme/lib"}, "/srv/acme")
	fmt.Println(ok, c.Entry.Name, rt.Args, rt.Path)
	// Output: true agent.js [--require=/srv/acme/hook.js] [/srv/acme/lib]
}

func ExampleNames() {
	fmt.Println(freshimport.Names{}.Files("/srv/acme/lib/wire.js"))
	fmt.Println(freshimport.Names{}.Binds([]byte("export class Packet {}"), "Frame"))
	// Output:
	// [srv/acme/lib/wire.js]
	// false
}
