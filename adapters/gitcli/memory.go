package gitcli

import (
	"bytes"
	"context"
	"strings"
	"sync"
)

// memory holds what git said about history between full commit names. Such an answer is true for ever, and one update
// that broke many runs has the same few questions asked for each of them.
type memory struct {
	mu      sync.Mutex
	answers map[string][]byte
	order   []string // oldest first
	held    int      // bytes
}

// The bounds of a memory: the answers about some updates, not a copy of the repository.
const (
	maxAnswer   = 256 << 10
	maxAnswers  = 256
	maxRemember = 8 << 20
)

func (m *memory) recall(key string) ([]byte, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.answers[key]
	return b, ok
}

// remember keeps an answer, and lets the oldest go.
func (m *memory) remember(key string, answer []byte) {
	if len(answer) > maxAnswer {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.answers[key]; ok {
		return
	}
	if m.answers == nil {
		m.answers = map[string][]byte{}
	}
	m.answers[key] = bytes.Clone(answer)
	m.order = append(m.order, key)
	m.held += len(answer)
	for len(m.order) > maxAnswers || m.held > maxRemember {
		m.held -= len(m.answers[m.order[0]])
		delete(m.answers, m.order[0])
		m.order = m.order[1:]
	}
}

// past asks git about history, or remembers. The arguments must name commits in full; sound says whether an answer is
// one to keep, nil keeps every one.
func (s *Source) past(ctx context.Context, g *repo, stdin []byte, sound func([]byte) bool, args ...string) ([]byte, error) {
	key := g.gitDir + "\x00" + strings.Join(args, "\x00") + "\x00\x00" + string(stdin)
	if b, ok := s.memory.recall(key); ok {
		return b, nil
	}
	out, err := s.git(ctx, g, stdin, args...)
	if err == nil && (sound == nil || sound(out)) {
		s.memory.remember(key, out)
	}
	return out, err
}
