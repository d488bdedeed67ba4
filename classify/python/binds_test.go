package python_test

import (
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify/python"
)

func TestBinds(t *testing.T) {
	t.Parallel()
	for src, names := range map[string]struct{ yes, no string }{
		"def lane(a, b=1):\n    inner = 2\n    def deeper(): pass\n": {"lane", "inner deeper a b"},
		"async def lane(): pass\n":                                   {"lane", "async def"},
		"class Lane(Base):\n    x = 1\n    def y(self): z = 1\n":     {"Lane", "x y z Base"},
		"import os.path, json as j\n":                                {"os j", "path json"},
		"from a.b import c, d as e\n":                                {"c e", "a b d"},
		"from a.b import (\n    c,  # f\n    d as e,\n)\n":           {"c e", "a b d f"},
		"from a import *\n":                                          {"", "a b"},
		"X = Y = f(z=1)\n":                                           {"X Y", "f z"},
		"a, (b, *c) = d\n":                                           {"a b c", "d"},
		"x: int = 3\ny: int\n":                                       {"x", "int"},
		"x.y = 1\nz[0] = 1\nw[k] = 2\n":                              {"", "x y z w k"},
		"x += 1\n":                                                   {"x", ""},
		"x == y\nx <= y\nassert z == 1\n":                            {"", "x y z"},
		"f(k=1)\n":                                                   {"", "f k"},
		"if a:\n    b = 1\nelse:\n    c = 2\n":                       {"b c", "a"},
		"try:\n    import fast as impl\nexcept ImportError:\n    impl = None\n": {"impl", "fast ImportError"},
		"for i, j in pairs: k = i\n":                            {"i j k", "pairs"},
		"with open(p) as f, g() as (h, i): pass\n":              {"f h i", "open p g"},
		"if (n := f()): pass\n":                                 {"n", "f"},
		"type Row = list\n":                                     {"Row", "type list"},
		"type = 1\n":                                            {"type", ""},
		"match = 1\n":                                           {"match", ""},
		"'''\ndef ghost(): pass\nX = 1\n'''\n":                  {"", "ghost X"},
		"s = 'a = 1'; t = \"\"\"\nu = 1\n\"\"\"\n":              {"s t", "a u"},
		"x = [\n    y\n    for y in z\n]\n":                     {"x", "y z"},
		"a = 1 \\\n    + b\n":                                   {"a", "b"},
		"def f(\n    a,\n):\n    b = 1\nc = 1\n":                {"f c", "a b"},
		"@deco(k=1)\ndef f(): pass\n":                           {"f", "deco k"},
		"# x = 1\n":                                             {"", "x"},
		"lambda q: 1\ndel r\nglobal s\n":                        {"", "q r s"},
		"x = 1; y = 2\n":                                        {"x y", ""},
		"if a: import b\n":                                      {"b", "a"},
		"class A: x = 1\ny = 1\n":                               {"A y", "x"},
		"d = {k: v}\ne = f[a:b]\n":                              {"d e", "k v f a b"},
		"rb = rb'x = 1'\n":                                      {"rb", "x"},
		"über = 1\n":                                            {"über", "ber"},
		"def a(): return (\n  1)\nb = 2":                        {"a b", ""},
		"unclosed = (\nq = 1\n":                                 {"unclosed", ""},
		"for x in y:\n    def g():\n        h = 1\n    i = 1\n": {"x g i", "y h"},
		"try: from a import b\nexcept E as exc: pass\nfinally:\n\tc = 1\n": {"b c", "a E"},
		"while (m := f()) and n: o = 1\n":                                  {"m o", "f n"},
		"if x:\n    class C:\n        y = 1\n    z = 1\nelif w: v = 1\n":   {"C z v", "x y w"},
		"print(x, file=y)\nf(a)[b], c = 1, 2\n":                            {"c", "x y file f a b"},
		"from . import sub\nfrom ..up import (one as two)\n":               {"sub two", "up one"},
	} {
		for n := range strings.FieldsSeq(names.yes) {
			if !python.Binds([]byte(src), n) {
				t.Errorf("Binds(%q, %q) = false, it does", src, n)
			}
		}
		for n := range strings.FieldsSeq(names.no) {
			if python.Binds([]byte(src), n) {
				t.Errorf("Binds(%q, %q) = true, it does not", src, n)
			}
		}
		if crlf := strings.ReplaceAll(src, "\n", "\r\n"); names.yes != "" && !strings.Contains(src, "\\\n") {
			if n := strings.Fields(names.yes)[0]; !python.Binds([]byte(crlf), n) {
				t.Errorf("Binds(%q, %q) = false with CRLF", crlf, n)
			}
		}
	}
}

func TestBindsRefusesWhatIsNoName(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"", "a.b", "1a", "a b", "="} {
		if python.Binds([]byte("a.b = 1\n1a = 2\n"), n) {
			t.Errorf("Binds(%q) = true", n)
		}
	}
}
