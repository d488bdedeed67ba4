package notify

import "strings"

// run is the stretch of [A-Za-z0-9_-] round the present position. Its facts are found once, so that a text of many
// dashes costs no more than any other.
type run struct {
	end       int
	lastDigit int
	// random is where its last stretch of sixteen letters and digits, with a digit among them, begins; -1 for none.
	random int
}

// shapeRule is a token that its first characters betray.
type shapeRule struct {
	prefix string
	// min is how many characters must follow, exact whether none may follow after them.
	min   int
	exact bool
	// upper restricts the rest to capitals and digits, alnum to letters and digits.
	upper bool
	alnum bool
}

// shapes are the tokens known by their beginning. Order matters only where one prefix begins another.
func shapes(c byte) []shapeRule {
	switch c {
	case 'A':
		// Amazon, Google, age.
		return []shapeRule{
			{prefix: "AKIA", min: 16, exact: true, upper: true}, {prefix: "ASIA", min: 16, exact: true, upper: true},
			{prefix: "AIza", min: 35}, {prefix: "AGE-SECRET-KEY-1", min: 40},
		}
	case 'g':
		// GitHub's five kinds and its fine-grained one, GitLab, Groq.
		return []shapeRule{
			{prefix: "ghp_", min: 20, alnum: true}, {prefix: "gho_", min: 20, alnum: true}, {prefix: "ghu_", min: 20, alnum: true},
			{prefix: "ghs_", min: 20, alnum: true}, {prefix: "ghr_", min: 20, alnum: true},
			{prefix: "github_pat_", min: 22}, {prefix: "glpat-", min: 20}, {prefix: "gsk_", min: 30, alnum: true},
		}
	case 's':
		// Stripe, the model providers, Shopify.
		return []shapeRule{
			{prefix: "sk_live_", min: 16, alnum: true}, {prefix: "sk_test_", min: 16, alnum: true},
			{prefix: "sk-", min: 20}, {prefix: "shpat_", min: 20, alnum: true},
		}
	case 'r':
		return []shapeRule{{prefix: "rk_live_", min: 16, alnum: true}, {prefix: "rk_test_", min: 16, alnum: true}}
	case 'x':
		// Slack.
		return []shapeRule{
			{prefix: "xoxb-", min: 10}, {prefix: "xoxa-", min: 10}, {prefix: "xoxp-", min: 10}, {prefix: "xoxo-", min: 10},
			{prefix: "xoxr-", min: 10}, {prefix: "xoxs-", min: 10}, {prefix: "xoxe-", min: 10}, {prefix: "xapp-", min: 20},
		}
	case 'h':
		return []shapeRule{{prefix: "hf_", min: 30, alnum: true}}
	case 'n':
		return []shapeRule{{prefix: "npm_", min: 30, alnum: true}}
	case 'p':
		return []shapeRule{{prefix: "pypi-", min: 40}}
	case 'd':
		return []shapeRule{{prefix: "dop_v1_", min: 40, alnum: true}}
	case 'y':
		return []shapeRule{{prefix: "ya29", min: 20}}
	}
	return nil
}

// shape hides a token that begins at in[i].
func (r *redactor) shape() bool {
	// A token begins where no letter, digit or underscore stands before it.
	if r.i > 0 && isWord(r.in[r.i-1]) {
		return false
	}
	// Dots are no part of a run, so tokens with dots are looked for apart.
	c := r.in[r.i]
	if c == 'e' || c == 'y' || c == 'S' {
		if end := r.dotted(); end > 0 {
			r.hide(r.i, end)
			return true
		}
	}
	rules := shapes(c)
	if rules == nil {
		return false
	}
	for _, rule := range rules {
		if !strings.HasPrefix(r.in[r.i:], rule.prefix) {
			continue
		}
		r.measure()
		rest := r.in[r.i+len(rule.prefix) : max(r.run.end, r.i+len(rule.prefix))]
		// A name made of words, however long, is no token: one digit at least stands behind the prefix, and where the
		// prefix is as short as "sk-", in a stretch without dashes.
		last := r.run.lastDigit
		if len(rule.prefix) < 4 {
			last = r.run.random
		}
		if len(rest) < rule.min || last < r.i+len(rule.prefix) {
			continue
		}
		end := r.run.end
		if rule.upper || rule.alnum {
			n := 0
			for n < len(rest) && isAlnum(rest[n]) && !(rule.upper && rest[n] >= 'a' && rest[n] <= 'z') {
				n++
			}
			if n < rule.min || rule.exact && (n > rule.min || n < len(rest) && isWord(rest[n])) {
				continue
			}
			end = r.i + len(rule.prefix) + n
			if !rule.exact {
				end = r.run.end
			}
		}
		r.hide(r.i, end)
		return true
	}
	return false
}

// measure finds the run that in[i] lies in.
func (r *redactor) measure() {
	if r.i < r.run.end {
		return
	}
	end, digit, random, start := r.i, -1, -1, r.i
	for end < len(r.in) && (isWord(r.in[end]) || r.in[end] == '-') {
		switch c := r.in[end]; {
		case c >= '0' && c <= '9':
			digit = end
		case !isAlnum(c):
			start = end + 1
		}
		if end-start >= 15 && digit >= start {
			random = start
		}
		end++
	}
	r.run = run{end: end, lastDigit: digit, random: random}
}

// dotted is the end of a token whose parts are joined by dots: a JSON web token, a SendGrid key, a Google access
// token. It is 0 where there is none.
func (r *redactor) dotted() int {
	rest := r.in[r.i:]
	switch {
	case strings.HasPrefix(rest, "eyJ"):
		r.measure()
		first := r.run.end
		second := segment(r.in, first)
		if first-r.i < 10 || second-first < 10 {
			return 0
		}
		if third := segment(r.in, second); third > second {
			return third
		}
		return second
	case strings.HasPrefix(rest, "SG."):
		first := segment(r.in, r.i+2)
		second := segment(r.in, first)
		if first-r.i < 19 || second-first < 17 {
			return 0
		}
		return second
	case strings.HasPrefix(rest, "ya29."):
		if end := segment(r.in, r.i+4); end-r.i >= 24 {
			return end
		}
	}
	return 0
}

// segment is the end of a ".part" that begins at from, or from where there is none.
func segment(s string, from int) int {
	if from >= len(s) || s[from] != '.' {
		return from
	}
	end := from + 1
	for end < len(s) && (isWord(s[end]) || s[end] == '-') {
		end++
	}
	if end == from+1 {
		return from
	}
	return end
}
