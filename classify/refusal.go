package classify

import (
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/classify/text"
)

// Refusal is the evidence for a cause that lies with a provider: what the text says about who refused and when to come back.
// What the text does not say is left empty; nothing is guessed.
type Refusal struct {
	// Provider is the one that the text names: "anthropic", "openai", "azure", "google", "aws" and so on.
	Provider string `json:"provider,omitempty"`
	// Status is the HTTP status of the answer, 0 for none.
	Status int `json:"status,omitempty"`
	// Code is the provider's own word, or the name of a gRPC status: "overloaded_error", "RESOURCE_EXHAUSTED".
	Code string `json:"code,omitempty"`
	// RetryAfter is how long to wait, RetryAt when to come back, where the text says the one or the other.
	RetryAfter time.Duration `json:"-"`
	RetryAt    time.Time     `json:"retry_at,omitzero"`
	// RetrySeconds is RetryAfter for readers of JSON.
	RetrySeconds float64 `json:"retry_after_seconds,omitempty"`
}

// refused reports the reasons that a provider's answer gives.
func refused(r Reason) bool { return r == RateLimit || r == Auth || r == ProviderError || r == Timeout }

// evidenceLines is how far around the deciding lines a provider's answer goes on: headers and bodies have lines of their own.
const evidenceLines = 6

// refusalOf reads the evidence for a verdict out of the failure and the lines around it; nil where there is none.
func refusalOf(log *text.Log, f *Failure, first, last int) *Refusal {
	var b strings.Builder
	if f != nil {
		b.WriteString(f.TypeModule + "." + f.Type + ": " + f.Message + "\n" + f.Code + "\n")
		for i := range f.Frames {
			// The client library tells whose answer it is.
			if p := f.Frames[i].File; strings.Contains(p, "-packages/") || strings.Contains(p, "node_modules/") {
				b.WriteString(p[max(0, len(p)-120):] + "\n")
			}
		}
	}
	for i := max(0, first-evidenceLines); i < len(log.Lines) && i <= last+evidenceLines; i++ {
		if !log.Ignored(i) && b.Len() < 1<<14 {
			b.WriteString(log.Lines[i][:min(len(log.Lines[i]), 2048)] + "\n")
		}
	}
	r := ReadRefusal(b.String())
	if r == (Refusal{}) {
		return nil
	}
	return &r
}

// ReadRefusal reads what a text says about a provider's refusal: lines of a log, a header, an answer in JSON.
func ReadRefusal(s string) Refusal {
	l := string(lowered(s)) // byte for byte: places in one are places in the other, whatever the bytes are
	r := Refusal{Provider: provider(l), Status: httpStatus(l), Code: refusalCode(s, l)}
	r.RetryAfter, r.RetryAt = retry(s, l)
	r.RetrySeconds = r.RetryAfter.Seconds()
	return r
}

// providers are the words by which texts name them: hosts, packages, products. The more special come first, since one may
// serve the models of another.
var providers = []struct{ word, name string }{
	{"azure", "azure"}, {"bedrock", "aws"}, {"botocore", "aws"}, {"amazonaws", "aws"}, {"vertexai", "google"}, {"vertex ai", "google"}, {"aiplatform", "google"}, {"openrouter", "openrouter"},
	{"generativelanguage", "google"}, {"google.genai", "google"}, {"google/genai", "google"}, {"googleapis", "google"}, {"google.api_core", "google"}, {"gemini", "google"}, {"anthropic", "anthropic"}, {"claude", "anthropic"},
	{"mistralai", "mistral"}, {"mistral", "mistral"}, {"cohere", "cohere"}, {"groq", "groq"}, {"together.ai", "together"}, {"together.xyz", "together"}, {"fireworks", "fireworks"}, {"deepseek", "deepseek"},
	{"api.x.ai", "xai"}, {"huggingface", "huggingface"}, {"replicate.com", "replicate"}, {"perplexity", "perplexity"}, {"cerebras", "cerebras"}, {"dashscope", "alibaba"}, {"moonshot", "moonshot"},
	{"ollama", "ollama"}, {"openai", "openai"}, {"gpt-", "openai"},
}

// provider is the first provider that a text in lower case names as a word, or as part of a dotted one.
func provider(l string) string {
	for _, p := range providers {
		for from := 0; ; {
			at := strings.Index(l[from:], p.word)
			if at < 0 {
				break
			}
			at += from
			// "groq" is no part of another word, "@azure/openai" and "api.openai.com" are.
			if at == 0 || l[at-1] < 'a' || l[at-1] > 'z' {
				return p.name
			}
			from = at + len(p.word)
		}
	}
	return ""
}

// httpStatus is the status that a text in lower case gives with a word for it.
func httpStatus(l string) int {
	for i := 0; i+3 <= len(l); i++ {
		c := l[i]
		if c != '4' && c != '5' || i > 0 && (nameByte(l[i-1]) || l[i-1] == '.' || l[i-1] == '-') || i+3 < len(l) && (nameByte(l[i+3]) || l[i+3] == '.' && i+4 < len(l) && nameByte(l[i+4])) {
			continue
		}
		n, err := strconv.Atoi(l[i : i+3])
		if err != nil {
			continue
		}
		before := strings.TrimRight(l[max(0, i-24):i], " :=([\"'<")
		for _, w := range [...]string{"http", "http/1.1", "http/2", "http/2.0", "status", "status code", "status_code", "statuscode", "http_status", "error code", "api error", "response code", "response", "returned", "responded with", "answered", `"code`, "client error", "server error", "apierror", "api returned error"} {
			if strings.HasSuffix(before, w) {
				return n
			}
		}
		behind := strings.TrimLeft(l[i+3:], " :)]\"',-")
		for _, w := range [...]string{"too many requests", "unauthorized", "forbidden", "internal server error", "bad gateway", "service unavailable", "gateway timeout", "gateway time-out", "overloaded", "resource_exhausted", "unavailable", "{\"type\":\"error\"", "{\"error\"", "{'error'", "client error", "server error", "rate limit", "status code"} {
			if strings.HasPrefix(behind, w) {
				return n
			}
		}
	}
	return 0
}

// The names of gRPC's refusals, as they are printed: "StatusCode.RESOURCE_EXHAUSTED", "code = ResourceExhausted".
var grpcNames = []struct{ word, name string }{
	{"resource_exhausted", "RESOURCE_EXHAUSTED"}, {"code = resourceexhausted", "RESOURCE_EXHAUSTED"}, {"unauthenticated", "UNAUTHENTICATED"}, {"permission_denied", "PERMISSION_DENIED"}, {"code = permissiondenied", "PERMISSION_DENIED"},
	{"statuscode.unavailable", "UNAVAILABLE"}, {"code = unavailable", "UNAVAILABLE"}, {"14 unavailable", "UNAVAILABLE"}, {`"status": "unavailable"`, "UNAVAILABLE"}, {`"status":"unavailable"`, "UNAVAILABLE"},
	{"deadline_exceeded", "DEADLINE_EXCEEDED"}, {"code = deadlineexceeded", "DEADLINE_EXCEEDED"},
}

// refusalCode is the provider's word for a refusal, out of an answer or the name of a gRPC status.
func refusalCode(s, l string) string {
	for _, key := range [...]string{`"type"`, `'type'`, `"code"`, `'code'`, `\"type\"`, `\"code\"`, "error_type=", "code=", "type=", "(code: "} {
		for from := 0; ; {
			at := strings.Index(l[from:], key)
			if at < 0 {
				break
			}
			from += at + len(key)
			v := strings.TrimLeft(s[from:], " :=\\\"'")
			end := 0
			for end < len(v) && (nameByte(v[end]) || v[end] == '-') {
				end++
			}
			if word := strings.ToLower(v[:end]); says(word, "rate_limit", "too_many", "quota", "overloaded", "throttl", "authentication_error", "permission_error", "invalid_api_key", "api_error", "server_error", "timeout_error", "billing", "resource_exhausted", "context_length", "invalid_request_error", "not_found_error", "request_too_large", "unavailable") {
				return v[:end]
			}
		}
	}
	for _, g := range grpcNames {
		if strings.Contains(l, g.word) {
			return g.name
		}
	}
	for _, w := range [...]string{"overloaded_error", "rate_limit_error", "rate_limit_exceeded", "insufficient_quota", "authentication_error", "permission_error", "ThrottlingException", "ServiceQuotaExceededException", "ServiceUnavailableException", "ModelNotReadyException"} {
		if strings.Contains(s, w) {
			return w
		}
	}
	return ""
}

// retryWords stand in front of a time to wait or to come back.
var retryWords = []string{"retry-after-ms", "retry-after", "retry_after_ms", "retry_after_seconds", "retry_after", "retryafter", "retrydelay", "retry_delay", "retry after", "retry in", "try again in", "try again after", "retrying in", "resets in", "reset in", "wait",
	"try again at", "retry at", "resets at", "reset at", "will reset at", "available again at", "ratelimit-reset-requests", "ratelimit-reset-tokens", "ratelimit-reset"}

// retry reads how long to wait, or when to come back.
func retry(s, l string) (time.Duration, time.Time) {
	for _, w := range retryWords {
		for from := 0; ; {
			at := strings.Index(l[from:], w)
			if at < 0 {
				break
			}
			from += at + len(w)
			v := s[min(from, len(s)):]
			v = strings.TrimLeft(v[:min(len(v), 96)], " :=\"'\\(){")
			v = strings.TrimPrefix(v, "for ")
			v = strings.TrimPrefix(v, "seconds: ")
			if t, ok := moment(v); ok {
				return 0, t
			}
			if d, ok := span(v, strings.HasSuffix(w, "ms")); ok {
				if d > 0 && strings.HasSuffix(w, "reset") && d > 10*365*24*time.Hour {
					return 0, time.Unix(int64(d/time.Second), 0).UTC() // seconds since 1970
				}
				return d, time.Time{}
			}
		}
	}
	return 0, time.Time{}
}

// moment reads a date as HTTP and RFC 3339 write them.
func moment(v string) (time.Time, bool) {
	for _, layout := range [...]string{time.RFC1123, time.RFC3339, "2006-01-02 15:04:05 MST", "2006-01-02 15:04 MST"} {
		// How much of the text is the date is found by trying: the layout's own length, and a fraction or zone more.
		for n := min(len(v), len(layout)+11); n >= min(len(v), len(layout)-5) && n >= 16; n-- {
			if t, err := time.Parse(layout, v[:n]); err == nil {
				return t.UTC(), true
			}
		}
	}
	return time.Time{}, false
}

// span reads "20", "1.5s", "6m0s", "20 seconds", "2 minutes and 3 seconds", "120ms". A bare number is of seconds, or of
// milliseconds where the name says so.
func span(v string, milli bool) (time.Duration, bool) {
	total, found := time.Duration(0), false
	for {
		v = strings.TrimPrefix(strings.TrimLeft(v, " ,"), "and ")
		end := 0
		for end < len(v) && (v[end] >= '0' && v[end] <= '9' || v[end] == '.' && end > 0 && end+1 < len(v) && v[end+1] >= '0' && v[end+1] <= '9') {
			end++
		}
		n, err := strconv.ParseFloat(v[:end], 64)
		if end == 0 || end > 15 || err != nil {
			return total, found
		}
		v = strings.TrimLeft(v[end:], " ")
		word := 0
		for word < len(v) && (v[word] >= 'a' && v[word] <= 'z' || v[word] >= 'A' && v[word] <= 'Z') {
			word++
		}
		unit := time.Second
		switch strings.ToLower(v[:word]) {
		case "ms", "msec", "millis", "milliseconds", "millisecond":
			unit = time.Millisecond
		case "m", "min", "mins", "minute", "minutes":
			unit = time.Minute
		case "h", "hr", "hrs", "hour", "hours":
			unit = time.Hour
		case "d", "day", "days":
			unit = 24 * time.Hour
		case "s", "sec", "secs", "second", "seconds":
		default:
			if found {
				return total, true // a number that follows and has no unit is another one
			}
			if milli {
				unit = time.Millisecond
			}
			if n > 1e10 {
				return 0, false
			}
			return time.Duration(n * float64(unit)), true
		}
		if n > 1e6 {
			return total, found
		}
		total, found = total+time.Duration(n*float64(unit)), true
		v = v[word:]
	}
}
