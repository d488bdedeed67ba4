package probetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
)

// JVM writes classes for a Java virtual machine, for probers that load classes and run none of their code. It needs no
// compiler. Every class has a static method use() that others may name.
var JVM = Language{Write: writeClass, PathVariable: "CLASSPATH", Inert: true}

func writeClass(dir, module string, does Behaviour, arg string) error {
	var use, initial []byte
	c := &classFile{at: map[string]uint16{}}
	switch does {
	case Note: // new FileWriter(arg, true), with the name written to it, in the class's initializer
		w := "java/io/FileWriter"
		initial = bytes.Join([][]byte{
			{0xbb}, u2(c.class(w)), {0x59, 0x13}, u2(c.text(arg)), {0x04, 0xb7}, u2(c.method(w, "<init>", "(Ljava/lang/String;Z)V")),
			{0x59, 0x13}, u2(c.text(module + "\n")), {0xb6}, u2(c.method(w, "write", "(Ljava/lang/String;)V")),
			{0xb6}, u2(c.method(w, "close", "()V")), {0xb1},
		}, nil)
		use = []byte{0xb1}
	case Raise, Load: // the one names a class that is nowhere
		use = bytes.Join([][]byte{{0xb8}, u2(c.method(arg, "use", "()V")), {0xb1}}, nil)
	default:
		return fmt.Errorf("%s: %w", does, ErrCannot)
	}
	return os.WriteFile(filepath.Join(dir, module+".class"), c.bytes(module, use, initial), 0o600)
}

// classFile collects the constants of a class.
type classFile struct {
	pool bytes.Buffer
	n    uint16
	at   map[string]uint16 // where a constant is, by its bytes
}

func u2(n uint16) []byte { return binary.BigEndian.AppendUint16(nil, n) }

// add is the index of a constant, which is written once.
func (c *classFile) add(constant ...[]byte) uint16 {
	b := bytes.Join(constant, nil)
	if at, ok := c.at[string(b)]; ok {
		return at
	}
	c.n++
	c.pool.Write(b)
	c.at[string(b)] = c.n
	return c.n
}

func (c *classFile) utf8(s string) uint16  { return c.add([]byte{1}, u2(uint16(len(s))), []byte(s)) }
func (c *classFile) class(s string) uint16 { return c.add([]byte{7}, u2(c.utf8(s))) }
func (c *classFile) text(s string) uint16  { return c.add([]byte{8}, u2(c.utf8(s))) }
func (c *classFile) method(class, name, typ string) uint16 {
	is := c.add([]byte{12}, u2(c.utf8(name)), u2(c.utf8(typ)))
	return c.add([]byte{10}, u2(c.class(class)), u2(is))
}

// bytes is the class file, of a version that every JVM reads.
func (c *classFile) bytes(name string, use, initial []byte) []byte {
	method := func(name string, code []byte) []byte {
		body := bytes.Join([][]byte{u2(8), u2(1), binary.BigEndian.AppendUint32(nil, uint32(len(code))), code, u2(0), u2(0)}, nil)
		return bytes.Join([][]byte{u2(9), u2(c.utf8(name)), u2(c.utf8("()V")), u2(1), u2(c.utf8("Code")),
			binary.BigEndian.AppendUint32(nil, uint32(len(body))), body}, nil)
	}
	methods := [][]byte{method("use", use)}
	if initial != nil {
		methods = append(methods, method("<clinit>", initial))
	}
	this, super := c.class(name), c.class("java/lang/Object")
	return bytes.Join([][]byte{
		{0xca, 0xfe, 0xba, 0xbe}, u2(0), u2(49), u2(c.n + 1), c.pool.Bytes(), u2(0x21), u2(this), u2(super), u2(0), u2(0),
		u2(uint16(len(methods))), bytes.Join(methods, nil), u2(0),
	}, nil)
}
