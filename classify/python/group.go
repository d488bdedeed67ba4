package python

import (
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

const groupHeader = "+ Exception Group Traceback (most recent call last):"

// isGroupHeader reports the first line of an exception group's box.
func isGroupHeader(l string) bool {
	return strings.HasSuffix(l, groupHeader) && strings.TrimSpace(l[:len(l)-len(groupHeader)]) == ""
}

// groupAt parses the box of an exception group whose header is line i.
func (p *parser) groupAt(i int) (*classify.Failure, int) {
	end := i + 1
	for end < len(p.lines) {
		t := strings.TrimLeft(p.lines[end], " ")
		if t == "" || t[0] != '|' && t[0] != '+' {
			break
		}
		end++
	}
	col := strings.IndexByte(p.lines[i], '+')
	b := box{lines: p.lines[i:end]}
	f := b.item(col, p.nesting+1)
	if f == nil {
		return nil, i + 1
	}
	f.First, f.Line, f.Last = i, -1, end-1
	return f, end
}

// box walks the lines of an exception group. Every level has its margin in one column.
type box struct {
	lines []string
	at    int
}

// item reads the failure whose margin is in column col, and the sub-exceptions that hang on it.
func (b *box) item(col, nesting int) *classify.Failure {
	if nesting > maxNesting {
		b.at = len(b.lines)
		return nil
	}
	// The margin of a level is one column: a bar for its own lines, a plus where its sub-exceptions open. Deeper levels
	// lie further to the right and are read by the call for them.
	var own []string
	var leaves []*classify.Failure
	for b.at < len(b.lines) {
		l := b.lines[b.at]
		mark := byte(' ')
		if col < len(l) {
			mark = l[col]
		}
		switch {
		case mark == '+' && strings.HasPrefix(l[col:], "+-+-"):
			b.at++
			leaves = append(leaves, b.leaves(col+2, nesting)...)
		case mark == '|':
			own = append(own, strings.TrimPrefix(l[col+1:], " "))
			b.at++
		case mark == '+' && strings.HasPrefix(l[col:], "+ "):
			own = append(own, header)
			b.at++
		default:
			return assemble(own, leaves, nesting)
		}
	}
	return assemble(own, leaves, nesting)
}

// leaves reads the numbered sub-exceptions whose margin is in column col, up to the line that closes them.
func (b *box) leaves(col, nesting int) []*classify.Failure {
	var found []*classify.Failure
	for b.at < len(b.lines) {
		before := b.at
		if f := b.item(col, nesting+1); f != nil {
			found = append(found, f)
		}
		if b.at >= len(b.lines) {
			break
		}
		l := b.lines[b.at]
		if col >= len(l) || l[col] != '+' || !strings.HasPrefix(l[col:], "+--") {
			break
		}
		b.at++
		if !numbered(l[col:]) {
			break
		}
		if b.at == before {
			break
		}
	}
	return found
}

// numbered reports "+---------------- 2 ----------------", also with dots for leaves that are left out.
func numbered(l string) bool { return strings.Contains(l, " ") }

// assemble makes one failure of the lines of an item and of its leaves.
func assemble(own []string, leaves []*classify.Failure, nesting int) *classify.Failure {
	// Without its margin an item is text like any other, with chains and all.
	inner := parser{lines: own, nesting: nesting}
	for i, l := range inner.lines {
		if strings.HasPrefix(l, "Exception Group Traceback") {
			inner.lines[i] = header
		}
	}
	f := inner.last()
	if f == nil {
		// A sub-exception that was never raised has no traceback, only its own line.
		for i, l := range own {
			if exceptionLine(l) {
				f, _ = inner.exception(&classify.Failure{}, i)
				break
			}
		}
	}
	if f == nil {
		if len(leaves) == 0 {
			return nil
		}
		f = &classify.Failure{}
	}
	f.Group = append(f.Group, leaves...)
	if n, ok := promised(f.Message); ok && n != len(leaves) {
		f.Cut = true // some leaves are left out or cut off
	}
	return f
}

// promised is the number of leaves that a group's message announces: "could not start (3 sub-exceptions)".
func promised(m string) (int, bool) {
	line := firstLine(m)
	end := strings.LastIndex(line, " sub-exception")
	if end < 0 {
		return 0, false
	}
	at := strings.LastIndexByte(line[:end], '(')
	if at < 0 || !digits(line[at+1:end]) {
		return 0, false
	}
	return number(line[at+1 : end]), true
}
