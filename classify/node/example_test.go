package node_test

import (
	"fmt"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/node"
	"github.com/mulligan-dev/mulligan/classify/text"
)

func ExampleRuntime() {
	log := text.Read([]byte("Error: Cannot find module './pens-4f21.cjs'\n"+
		"Require stack:\n"+
		"- /opt/kestrel/dist/main.cjs\n"+
		"    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)\n"+
		"    at draw (/opt/kestrel/dist/main.cjs:7:12) {\n"+
		"  code: 'MODULE_NOT_FOUND',\n"+
		"  requireStack: [ '/opt/kestrel/dist/main.cjs' ]\n"+
		"}\n"), classify.TailLimit)
	f := node.New().Parse(log)
	fmt.Println(f.Type, f.File)
	// Output: MODULE_NOT_FOUND /opt/kestrel/dist/pens-4f21.cjs
}
