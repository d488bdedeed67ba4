package cli

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

// counted counts what is read through it.
type counted struct {
	io.ReadSeeker
	read int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.ReadSeeker.Read(b)
	c.read += int64(n)
	return n, err
}

// TestEndOfHugeFile: of a log of 1 GiB no more is read than its last part.
func TestEndOfHugeFile(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	path := filepath.Join(t.TempDir(), "huge.log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last := "\nAPI Error: 429 rate limit reached\n"
	if _, err := f.WriteAt([]byte(last), size-int64(len(last))); err != nil {
		t.Fatal(err)
	}
	in := &counted{ReadSeeker: f}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	cases := 0
	err = readCases(in, path, "id", true, classify.Input{}, func(_ string, got classify.Input, skipped int64) error {
		cases++
		if !strings.HasSuffix(string(got.Text), last) || len(got.Text) != classify.TailLimit || skipped != size-classify.TailLimit {
			t.Errorf("%d bytes behind %d, want the last %d", len(got.Text), skipped, classify.TailLimit)
		}
		return nil
	})
	if err != nil || cases != 1 {
		t.Fatalf("%d cases, %v", cases, err)
	}
	if in.read > 2*classify.TailLimit {
		t.Errorf("%d bytes were read", in.read)
	}
}

// TestEndOfStream: a stream is read through, and no more of it is kept than the end.
func TestEndOfStream(t *testing.T) {
	t.Parallel()
	for _, size := range []int{0, 1, classify.TailLimit - 1, classify.TailLimit, classify.TailLimit + 1, 40*classify.TailLimit + 7} {
		r := io.LimitReader(endless{}, int64(size))
		text, skipped, err := readEnd(bufio.NewReader(r), r)
		if want := min(size, classify.TailLimit); err != nil || len(text) != want || skipped != int64(size-want) || cap(text) > 4*classify.TailLimit {
			t.Errorf("%d bytes: %d kept of %d, %d skipped, %v", size, len(text), cap(text), skipped, err)
		}
	}
}

// endless is a stream of dots.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = '.'
	}
	return len(b), nil
}
