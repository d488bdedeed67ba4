package report

import (
	"strings"
	"unicode"
)

// Style is how text is laid out for a terminal.
type Style struct {
	// Width is the number of columns; zero means 100, less than 40 counts as 40.
	Width int
	// Color adds ANSI colours. Leave it off unless the output is a terminal.
	Color bool
}

func (s Style) width() int {
	switch {
	case s.Width == 0:
		return 100
	case s.Width < 40:
		return 40
	}
	return s.Width
}

// paint is a colour of the palette.
type paint string

const (
	plain paint = ""
	bold  paint = "1"
	dim   paint = "2"
	amber paint = "33"
	green paint = "32"
	red   paint = "31"
)

func (s Style) paint(p paint, text string) string {
	if !s.Color || p == plain || text == "" {
		return text
	}
	return "\x1b[" + string(p) + "m" + text + "\x1b[0m"
}

// cell is one field of a row, painted after it was laid out, so that colour never counts as width.
type cell struct {
	text  string
	paint paint
}

// rows lays cells out in columns under one another, two spaces apart, none wider than it needs. Where they do not fit,
// the widest columns are narrowed and their text is wrapped, not cut. Every line is indented and fits the width.
func (s Style) rows(indent int, rows [][]cell) string {
	return s.render(indent, s.widths(indent, rows), rows)
}

// widths are the columns that rows need, narrowed to fit.
func (s Style) widths(indent int, rows [][]cell) []int {
	widths, words := natural(rows)
	room := s.width() - indent - 2*(len(widths)-1)
	shrink(widths, words, room) // no word is broken as long as that can be helped
	shrink(widths, make([]int, len(widths)), room)
	return widths
}

// render lays rows out in columns that were measured before, perhaps over more rows than these.
func (s Style) render(indent int, widths []int, rows [][]cell) string {
	var b strings.Builder
	for _, row := range rows {
		cells := make([][]string, len(row))
		height := 1
		for i, c := range row {
			cells[i] = wrap(c.text, widths[i])
			height = max(height, len(cells[i]))
		}
		for l := range height {
			var out strings.Builder
			gap := indent // spaces are owed until a text comes, so that no line ends in them
			for i, c := range row {
				text := ""
				if l < len(cells[i]) {
					text = cells[i][l]
				}
				if text != "" {
					out.WriteString(strings.Repeat(" ", gap))
					out.WriteString(s.paint(c.paint, text))
					gap = 0
				}
				gap += widths[i] - Width(text) + 2
			}
			b.WriteString(out.String())
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// natural is how wide each column would like to be, and how wide its longest word is.
func natural(rows [][]cell) (widths, words []int) {
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths, words = append(widths, 1), append(words, 1)
			}
			widths[i] = max(widths[i], Width(c.text))
			for w := range strings.FieldsSeq(c.text) {
				words[i] = max(words[i], Width(w))
			}
		}
	}
	return widths, words
}

// shrink takes columns off the widest until all fit, one at a time. None becomes narrower than its floor, or than six.
func shrink(widths, floors []int, room int) {
	total := 0
	for _, w := range widths {
		total += w
	}
	for ; total > room; total-- {
		widest := -1
		for i, w := range widths {
			if w > max(floors[i], 6) && (widest < 0 || w > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// wrap breaks text at spaces into lines of at most width columns, and a word that is wider than that anywhere.
func wrap(text string, width int) []string {
	var lines []string
	line, used := "", 0
	flush := func() {
		lines = append(lines, line)
		line, used = "", 0
	}
	// Spaces in a row are one here: alignment is the business of columns.
	for _, word := range strings.Fields(text) {
		w := Width(word)
		if used > 0 && used+1+w > width {
			flush()
		}
		for w > width {
			head := take(word, width)
			line = head
			flush()
			word = word[len(head):]
			w = Width(word)
		}
		if word == "" {
			continue
		}
		if used > 0 {
			line += " "
			used++
		}
		line += word
		used += w
	}
	if used > 0 || len(lines) == 0 {
		flush()
	}
	return lines
}

// take is the longest beginning of s that fits, at least one character.
func take(s string, width int) string {
	used := 0
	for i, r := range s {
		w := runeWidth(r)
		if used+w > width && i > 0 {
			return s[:i]
		}
		used += w
	}
	return s
}

// Width is the number of terminal columns that s takes: none for marks that sit on the letter before, two for East
// Asian wide characters and emoji, one for everything else. Sequences that a terminal joins into one picture (flags,
// families) are counted by their parts, as most terminals draw them.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// wide are the blocks that the Unicode standard calls wide or fullwidth, emoji among them, in rising order.
func wide() [][2]rune {
	return [][2]rune{
		{0x1100, 0x115f}, {0x231a, 0x231b}, {0x23e9, 0x23ec}, {0x23f0, 0x23f0}, {0x23f3, 0x23f3}, {0x25fd, 0x25fe},
		{0x2614, 0x2615}, {0x2648, 0x2653}, {0x267f, 0x267f}, {0x2693, 0x2693}, {0x26a1, 0x26a1}, {0x26aa, 0x26ab},
		{0x26bd, 0x26be}, {0x26c4, 0x26c5}, {0x26ce, 0x26ce}, {0x26d4, 0x26d4}, {0x26ea, 0x26ea}, {0x26f2, 0x26f3},
		{0x26f5, 0x26f5}, {0x26fa, 0x26fa}, {0x26fd, 0x26fd}, {0x2705, 0x2705}, {0x270a, 0x270b}, {0x2728, 0x2728},
		{0x274c, 0x274c}, {0x274e, 0x274e}, {0x2753, 0x2755}, {0x2757, 0x2757}, {0x2795, 0x2797}, {0x27b0, 0x27b0},
		{0x27bf, 0x27bf}, {0x2b1b, 0x2b1c}, {0x2b50, 0x2b50}, {0x2b55, 0x2b55}, {0x2e80, 0x303e}, {0x3041, 0x33ff},
		{0x3400, 0x4dbf}, {0x4e00, 0x9fff}, {0xa000, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff},
		{0xfe10, 0xfe19}, {0xfe30, 0xfe6f}, {0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18dff}, {0x1aff0, 0x1b2ff},
		{0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
		{0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3},
		{0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc},
		{0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596},
		{0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
		{0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb},
		{0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff},
		{0x20000, 0x2fffd}, {0x30000, 0x3fffd},
	}
}

func runeWidth(r rune) int {
	switch {
	case r < 0x20 || r >= 0x7f && r < 0xa0:
		return 0
	case r < 0x300:
		return 1
	case r == 0x200d, r >= 0xfe00 && r <= 0xfe0f, unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < 0x1100:
		return 1
	}
	// The blocks rise, so the first that ends behind r decides.
	for _, b := range wide() {
		if r <= b[1] {
			if r >= b[0] {
				return 2
			}
			return 1
		}
	}
	return 1
}
