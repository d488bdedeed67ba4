package codetree

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// gnuBuildID is the GNU build id of a declared library in hex, empty where there is none.
func gnuBuildID(name string, fi os.FileInfo) string {
	if !fi.Mode().IsRegular() {
		return ""
	}
	f, err := elf.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	return hex.EncodeToString(note(f, ".note.gnu.build-id"))
}

// BuildID is what the linker wrote into a program or library to tell one build from another: "gnu:" and hex, or "go:" and
// the id of the Go command. It is empty for a file that is no ELF file, and for one without an id. The error says in words
// that the file is an ELF file of which a part is missing.
func BuildID(r io.ReaderAt, size int64) (string, error) {
	magic := make([]byte, len(elf.ELFMAG))
	if n, err := r.ReadAt(magic, 0); n < len(magic) || string(magic) != elf.ELFMAG {
		if err != nil && err != io.EOF {
			return "", err
		}
		return "", nil
	}
	f, err := elf.NewFile(r)
	if err != nil {
		return "", fmt.Errorf("it is damaged or half written: %w", err)
	}
	// The section table stands at the end of the file, and was there; a program that was stripped of it must have all that
	// is loaded.
	for _, p := range f.Progs {
		if p.Off+p.Filesz > uint64(size) {
			return "", fmt.Errorf("it is half written: %d of at least %d bytes are there", size, p.Off+p.Filesz)
		}
	}
	if id := note(f, ".note.gnu.build-id"); len(id) > 0 {
		return "gnu:" + hex.EncodeToString(id), nil
	}
	if id := note(f, ".note.go.buildid"); len(id) > 0 {
		return "go:" + string(id), nil
	}
	return "", nil
}

// note is the content of a section that holds one note, nil without one. A note is the lengths of its owner's name and of
// its content, a type, the name, and the content, each filled up to four bytes.
func note(f *elf.File, section string) []byte {
	s := f.Section(section)
	const header, most = 12, 1024
	if s == nil || s.Type == elf.SHT_NOBITS || s.Size <= header || s.Size > most {
		return nil
	}
	data, err := s.Data()
	if err != nil || len(data) <= header {
		return nil
	}
	order := f.ByteOrder
	name, content := order.Uint32(data), order.Uint32(data[4:])
	rest := data[header:]
	if name > most || content > most || int((name+3)&^3+content) > len(rest) {
		return nil
	}
	at := (name + 3) &^ 3
	return bytes.Clone(rest[at : at+content])
}
