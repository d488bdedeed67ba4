package agentcli

import (
	"bytes"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
)

// Refusal is what one line says about why a run could not go on: the reason, and the evidence for it as a verdict carries it.
type Refusal struct {
	// Reason is the entry of the never list.
	Reason classify.Reason
	classify.Refusal
}

// codes are words that providers give to refusals in their answers, by what they begin or end with.
var codes = []struct {
	word   string
	reason classify.Reason
}{
	{"rate_limit", classify.RateLimit}, {"too_many_requests", classify.RateLimit}, {"resource_exhausted", classify.RateLimit}, {"insufficient_quota", classify.RateLimit}, {"quota_exceeded", classify.RateLimit},
	{"throttl", classify.RateLimit}, {"usage_limit", classify.RateLimit}, {"billing_hard_limit", classify.RateLimit},
	{"authentication", classify.Auth}, {"permission_error", classify.Auth}, {"permission_denied", classify.Auth}, {"unauthenticated", classify.Auth}, {"unauthorized", classify.Auth},
	{"invalid_api_key", classify.Auth}, {"invalid_x_api_key", classify.Auth}, {"token_expired", classify.Auth}, {"expired_token", classify.Auth}, {"account_deactivated", classify.Auth}, {"forbidden", classify.Auth},
	{"overloaded", classify.ProviderError}, {"api_error", classify.ProviderError}, {"server_error", classify.ProviderError}, {"internal_error", classify.ProviderError}, {"invalid_request", classify.ProviderError},
	{"request_too_large", classify.ProviderError}, {"context_length", classify.ProviderError}, {"not_found_error", classify.ProviderError}, {"model_not_found", classify.ProviderError}, {"content_filter", classify.ProviderError}, {"content_policy", classify.ProviderError},
	{"unavailable", classify.ProviderError}, {"timeout_error", classify.ProviderError}, {"bad_gateway", classify.ProviderError},
}

// The words of refusals, in lower case.
var (
	// announced say that a status follows, refusals stand behind one, and trade is what a line with one in brackets is about.
	announced = []string{
		"api error", "http", "http/1.1", "http/2", "status", "status code", "status_code", "statuscode", "error code", "provider", "server returned",
		"responded with", "response", "api returned", "\"code", "upstream",
	}
	refusals = []string{
		"too many requests", "unauthorized", "forbidden", "internal server error", "bad gateway", "service unavailable", "gateway timeout", "overloaded",
	}
	trade = []string{
		"api", "anbieter", "provider", "fournisseur", "proveedor", "quota", "配额", "请求", "token", "login", "anmeld", "auth", "model", "密钥", "提供商", "リクエスト",
		"プロバイダ", "认证", "rate", "limit", "limite", "запрос", "провайдер", "server", "gateway", "clé", "clave", "schlüssel", "anfragen",
	}
	// persons tell that somebody ended the run, limits and memories why a sandbox ended a command, unreached that the
	// provider was not reached: the first two in time.
	persons = []string{
		"interrupted by user", "cancelled by user", "canceled by user", "cancelled by the user", "canceled by the user", "user cancelled", "user canceled",
		"request interrupted by", "vom benutzer abgebrochen", "annulé par l'utilisateur", "cancelado por el usuario", "用户取消", "用户中断", "ユーザーによって",
	}
	limits    = []string{"killed after ", "timed out", "time limit", "exceeded its", "timeout after", "took longer than", "deadline"}
	memories  = []string{"out of memory", "memory limit", " oom", "oom ", "oom-", "oom_", "oomk"}
	unreached = []string{
		"etimedout", "connect timeout", "econnrefused", "econnreset", "enotfound", "eai_again", "enetunreach", "ehostunreach", "socket hang up",
		"connection refused", "connection reset", "network is unreachable", "name or service not known", "could not resolve host", "fetch failed",
	}
)

// maxLine bounds what is read of a line.
const maxLine = 4096

// Read tells what a line says about a refusal, a cancellation or an ended command; false for any other line.
func Read(line string) (Refusal, bool) {
	line = line[:min(len(line), maxLine)]
	reason, status, code := reasonOf(strings.ToLower(line))
	if reason == "" {
		return Refusal{}, false
	}
	r := Refusal{reason, classify.ReadRefusal(line)}
	// What gave the reason is the better evidence.
	if status != 0 {
		r.Status = status
	}
	if code != "" {
		r.Code = code
	}
	return r, true
}

// reasonOf reads a line in lower case: the reason, empty for none, with the status and the provider's word that it rests on.
func reasonOf(l string) (reason classify.Reason, answer int, word string) {
	if !strings.Contains(l, "probe") { // a keeper that asks a service whether it lives is told a status too
		answer = status([]byte(l))
	}
	word = code(l)
	// The provider's own word is finer than the status: a quota may come with 403, an overload with 200.
	if word != "" {
		for _, c := range codes {
			if strings.Contains(word, c.word) {
				reason = c.reason
				break
			}
		}
		if reason == classify.ProviderError && answer == 429 && !strings.Contains(word, "overloaded") {
			reason = classify.RateLimit
		}
	}
	if reason == "" {
		reason = byStatus(answer)
	}
	if reason == "" {
		reason = sandbox(l)
	}
	if reason == "" {
		reason = person(l)
	}
	if reason == "" {
		reason = network(l)
	}
	return reason, answer, word
}

// byStatus is what a status of a provider's answer means.
func byStatus(s int) classify.Reason {
	switch {
	case s == 429:
		return classify.RateLimit
	case s == 401 || s == 403:
		return classify.Auth
	case s >= 400 && s <= 599:
		return classify.ProviderError
	}
	return ""
}

// status finds an HTTP status. A bare number is none: the line must say what it is, by a word before it, by parentheses
// around it beside a word of the trade, or by an answer in JSON behind it.
func status(l []byte) int {
	for i := 0; i+3 <= len(l); i++ {
		if l[i] != '4' && l[i] != '5' || !digits(l[i:i+3]) || i > 0 && nameByte(l[i-1]) || i+3 < len(l) && nameByte(l[i+3]) {
			continue
		}
		if i > 0 && (l[i-1] == '.' || l[i-1] == '/' || l[i-1] == '-') || i+4 < len(l) && l[i+3] == '.' && digits(l[i+4:i+5]) {
			continue
		}
		n := int(l[i]-'0')*100 + int(l[i+1]-'0')*10 + int(l[i+2]-'0')
		before, behind := bytes.TrimRight(l[:i], " :=([\"'"), bytes.TrimLeft(l[i+3:], " :)]\"',-")
		for _, w := range announced {
			if hasSuffix(before, w) {
				return n
			}
		}
		enclosed := i > 0 && l[i-1] == '(' && i+3 < len(l) && l[i+3] == ')'
		if enclosed && holdsOne(l, trade) {
			return n
		}
		if hasPrefix(behind, "{\"") && index(behind, "error") >= 0 {
			return n
		}
		for _, w := range refusals {
			if hasPrefix(behind, w) {
				return n
			}
		}
	}
	return 0
}

// code is the provider's word for a refusal, out of a JSON answer or a word with underscores at its place.
func code(l string) string {
	for _, key := range [...]string{`"type"`, `"code"`, `"status"`, `"error"`, "error_type=", "code=", "type=", `\"type\"`, `\"code\"`} {
		for from := 0; ; {
			at := strings.Index(l[from:], key)
			if at < 0 {
				break
			}
			at += from + len(key)
			from = at
			v := strings.TrimLeft(l[at:], " :=\\\"'")
			end := 0
			for end < len(v) && (nameByte(v[end]) || v[end] == '-') {
				end++
			}
			v = strings.ReplaceAll(v[:end], "-", "_")
			for _, c := range codes {
				if strings.Contains(v, c.word) {
					return v
				}
			}
		}
	}
	return ""
}

// sandbox reads that a sandbox or a tool runner ended a command, or a tool failed.
func sandbox(l string) classify.Reason {
	if !has(l, "sandbox", "tool", "command", "hook") {
		return ""
	}
	switch {
	case has(l, limits...):
		return classify.Timeout
	case has(l, memories...) || has(l, "oom"):
		return classify.OOM
	}
	return ""
}

// network reads that the provider was not reached. A socket of the machine's own is no provider.
func network(l string) classify.Reason {
	if has(l, "127.0.0.1", "localhost", ".sock", "[::1]") || !has(l, "provider", "api", "llm", "model", "upstream") {
		return ""
	}
	switch {
	case has(l, unreached[:2]...):
		return classify.Timeout
	case has(l, unreached[2:]...):
		return classify.ProviderError
	}
	return ""
}

// person reads that somebody ended the run by hand.
func person(l string) classify.Reason {
	if has(l, persons...) {
		return classify.Killed
	}
	return ""
}

func digits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

func hasPrefix(b []byte, w string) bool { return len(b) >= len(w) && string(b[:len(w)]) == w }

func hasSuffix(b []byte, w string) bool { return len(b) >= len(w) && string(b[len(b)-len(w):]) == w }

func holdsOne(b []byte, words []string) bool {
	for _, w := range words {
		if index(b, w) >= 0 {
			return true
		}
	}
	return false
}

func nameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}
