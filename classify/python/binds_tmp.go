package python

import "regexp"

// Binds tmp.
func Binds(src []byte, name string) bool {
	return regexp.MustCompile(`(?m)^(class|def|async def)\s+` + regexp.QuoteMeta(name) + `\b|^` + regexp.QuoteMeta(name) + `\s*[:=]|import.*\b` + regexp.QuoteMeta(name) + `\b`).Match(src)
}
