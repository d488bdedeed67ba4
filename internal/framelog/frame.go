package framelog

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
)

// Sizes of the file's parts, in bytes.
const (
	fileHead  = 64
	blockHead = 24
	align     = 8
	// MaxRecord is the largest record.
	MaxRecord = 16 << 20
	// maxBlock bounds what one flush takes along: a reader holds a block in memory.
	maxBlock = 4 << 20
	// gapBody is the body of a gap: how many bytes it covers, and how many records were lost.
	gapBody = 16
)

// magic begins the file; its last byte is the format's version.
var magic = [8]byte{'m', 'l', 'g', 'f', 'r', 'a', 'm', 1}

// kind tells what a block holds. Zero is none: the zeros ahead.
type kind uint32

const (
	records kind = 0x31636572 // "rec1"
	gap     kind = 0x31706167 // "gap1"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// salt is a log's own random number. It makes the blocks of one log worthless in another, and a record that happens to
// hold the bytes of a block is never taken for one.
type salt [16]byte

// head is the first part of a block.
type head struct {
	kind  kind
	size  uint32 // of the body, without the filling up to the next multiple of eight
	first uint64 // number of the block's first record, from 0
	count uint32
	sum   uint32
}

func padded(n int64) int64 { return (n + align - 1) / align * align }

func decodeHead(b []byte) head {
	return head{
		kind: kind(binary.LittleEndian.Uint32(b)), size: binary.LittleEndian.Uint32(b[4:]),
		first: binary.LittleEndian.Uint64(b[8:]), count: binary.LittleEndian.Uint32(b[16:]),
		sum: binary.LittleEndian.Uint32(b[20:]),
	}
}

// plausible tells whether a head can be one, before its body is read.
func (h head) plausible() bool {
	switch h.kind {
	case records:
		return h.count > 0 && int64(h.size) >= 4*int64(h.count) && h.size <= maxBlock+MaxRecord+4
	case gap:
		return h.count == 0 && h.size == gapBody
	}
	return false
}

// seal fills in the head of a block whose body is in place: b begins with room for the head.
func (s *salt) seal(b []byte, at int64, k kind, first uint64, count int) {
	binary.LittleEndian.PutUint32(b, uint32(k))
	binary.LittleEndian.PutUint32(b[4:], uint32(len(b)-blockHead))
	binary.LittleEndian.PutUint64(b[8:], first)
	binary.LittleEndian.PutUint32(b[16:], uint32(count))
	binary.LittleEndian.PutUint32(b[20:], s.sum(b, at))
}

// sum is the checksum of a block that stands at an offset.
func (s *salt) sum(b []byte, at int64) uint32 {
	var lead [24]byte
	copy(lead[:], s[:])
	binary.LittleEndian.PutUint64(lead[16:], uint64(at))
	c := crc32.Update(0, castagnoli, lead[:])
	c = crc32.Update(c, castagnoli, b[:20])
	return crc32.Update(c, castagnoli, b[blockHead:])
}

// record finds the i-th record of a block's body; ok is false where the lengths do not add up.
func record(body []byte, i int) (_ []byte, ok bool) {
	for {
		if len(body) < 4 {
			return nil, false
		}
		n := binary.LittleEndian.Uint32(body)
		if uint64(n) > uint64(len(body)-4) {
			return nil, false
		}
		if i == 0 {
			return body[4 : 4+n], true
		}
		body = body[4+n:]
		i--
	}
}

// block is a whole block that was read and checked.
type block struct {
	head
	bytes []byte
}

func (b block) body() []byte { return b.bytes[blockHead:] }

// after is where the log stands behind the block.
func (b block) after(at int64) state {
	if b.kind == gap {
		g := b.gap(at)
		return state{end: at + g.Size, next: b.first + g.Lost}
	}
	return state{end: at + padded(int64(len(b.bytes))), next: b.first + uint64(b.count)}
}

func (b block) gap(at int64) Gap {
	body := b.body()
	return Gap{Block: at, Size: int64(binary.LittleEndian.Uint64(body)), Lost: binary.LittleEndian.Uint64(body[8:])}
}

// sealGap makes the block that covers damage.
func (s *salt) sealGap(g Gap, first uint64) []byte {
	b := make([]byte, blockHead+gapBody)
	binary.LittleEndian.PutUint64(b[blockHead:], uint64(g.Size))
	binary.LittleEndian.PutUint64(b[blockHead+8:], g.Lost)
	s.seal(b, g.Block, gap, first, 0)
	return b
}

func zero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// newHead is the beginning of a new file.
func newHead(s salt) []byte {
	b := make([]byte, fileHead)
	copy(b, magic[:])
	copy(b[8:], s[:])
	binary.LittleEndian.PutUint32(b[24:], crc32.Checksum(b[:24], castagnoli))
	return b
}

// readHead is the salt of a file, or why there is none.
func readHead(b []byte) (s salt, problem string) {
	switch {
	case !bytes.Equal(b[:7], magic[:7]):
		return s, "it does not begin as a log does"
	case b[7] > magic[7]:
		return s, "it was written by a newer version: update this program"
	case b[7] != magic[7] || binary.LittleEndian.Uint32(b[24:]) != crc32.Checksum(b[:24], castagnoli):
		return s, "its head is damaged"
	}
	copy(s[:], b[8:24])
	return s, ""
}
