package gitcli

import (
	"bytes"
	"strconv"
	"testing"
)

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	var m memory
	for i := range 4 * maxAnswers {
		m.remember(strconv.Itoa(i), bytes.Repeat([]byte{'x'}, 100<<10))
	}
	m.remember("large", make([]byte, maxAnswer+1))
	if m.held > maxRemember || len(m.answers) > maxAnswers || len(m.order) != len(m.answers) {
		t.Errorf("%d answers of %d bytes are held, want at most %d of %d", len(m.answers), m.held, maxAnswers, maxRemember)
	}
	if _, ok := m.recall("large"); ok {
		t.Error("an answer over the bound was kept")
	}
	if _, ok := m.recall(strconv.Itoa(4*maxAnswers - 1)); !ok {
		t.Error("the newest answer is gone")
	}
}
