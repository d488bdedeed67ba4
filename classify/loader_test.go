package classify_test

import (
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

func TestFindLoader(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, object, symbol string }{
		{"cannot load plugin: /opt/kes/lib/pens.so: undefined symbol: kes_ink", "/opt/kes/lib/pens.so", "kes_ink"},
		{`DlOpen { desc: "/opt/kes/lib/pens.so: file too short" }`, "/opt/kes/lib/pens.so", ""},
		{"see /opt/kes/doc: /opt/kes/lib/pens.so.2: version `KES_2' not found (required by /opt/kes/bin/kes)", "/opt/kes/lib/pens.so.2", "KES_2"},
		{"plugin pens.so: undefined symbol: kes_ink", "", ""},
		{"/opt/kes/lib/pens.so: loaded", "", ""},
		{"/opt/kes/notes.txt: undefined symbol: kes_ink", "", ""},
	} {
		var f classify.Failure
		n, ok := classify.FindLoader(c.line)
		if n.Apply(&f); ok != (c.object != "") || f.Object != c.object || f.Symbol != c.symbol {
			t.Errorf("%q: object %q, symbol %q, found %v; want %q, %q", c.line, f.Object, f.Symbol, ok, c.object, c.symbol)
		}
	}
}
