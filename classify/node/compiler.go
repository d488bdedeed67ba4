package node

import (
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// stopped are the words of Bun and esbuild for source that ends too soon, or that holds what no compiler knows.
var stopped = [...]string{"Unexpected end of file", "Unterminated ", "found end of file", "Unexpected <<", "Unexpected >>", "Unexpected ==="}

// parsed reads what compilers in front of the engine say of source that they cannot parse: Bun "error: why" above the place, and
// esbuild, by which tsx and vite run TypeScript, "Transform failed with 1 error:" above "FILE:LINE:COLUMN: ERROR: why".
func parsed(f *classify.Failure) bool {
	file, why := "", ""
	switch {
	case f.Type == "error" && len(f.Frames) > 0:
		file, why = f.Frames[len(f.Frames)-1].File, firstLine(f.Message)
	case strings.HasPrefix(f.Message, "Transform failed with "), strings.HasPrefix(f.Message, "Build failed with "):
		_, rest, _ := strings.Cut(f.Message, "\n")
		place, text, ok := strings.Cut(firstLine(rest), ": ERROR: ")
		if !ok {
			return false
		}
		file, why = withoutPlace(place), text
	}
	if !strings.ContainsAny(file, `/\`) {
		return false
	}
	for _, w := range stopped {
		if strings.Contains(why, w) {
			f.Kind, f.File, f.Loading = classify.KindTorn, file, true
			return true
		}
	}
	return false
}

// withoutPlace drops ":LINE:COLUMN" behind a path.
func withoutPlace(s string) string {
	for range 2 {
		at := strings.LastIndexByte(s, ':')
		if at < 0 {
			break
		}
		if _, err := strconv.Atoi(s[at+1:]); err != nil {
			break
		}
		s = s[:at]
	}
	return s
}
