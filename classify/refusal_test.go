package classify_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/classify"
)

// TestReadRefusal: what client libraries, gRPC and headers print, a kind each.
func TestReadRefusal(t *testing.T) {
	t.Parallel()
	at := func(s string) time.Time {
		v, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for text, want := range map[string]classify.Refusal{
		`anthropic.RateLimitError: Error code: 429 - {'type': 'error', 'error': {'type': 'rate_limit_error', 'message': 'slow down'}}`:                                                  {Provider: "anthropic", Status: 429, Code: "rate_limit_error"},
		`anthropic.InternalServerError: Error code: 529 - {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`:                                                  {Provider: "anthropic", Status: 529, Code: "overloaded_error"},
		`openai.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached for gpt-x. Please try again in 1.898s.', 'type': 'tokens', 'code': 'rate_limit_exceeded'}}`: {Provider: "openai", Status: 429, Code: "rate_limit_exceeded", RetryAfter: 1898 * time.Millisecond},
		`openai.RateLimitError: Please try again in 6m0s. Visit https://platform.openai.com`:                                                                                            {Provider: "openai", RetryAfter: 6 * time.Minute},
		`Error code: 429 Requests to the operation have exceeded the rate limit of your Azure OpenAI tier. Please retry after 26 seconds.`:                                              {Provider: "azure", Status: 429, RetryAfter: 26 * time.Second},
		`google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED. {'error': {'code': 429, 'details': [{'retryDelay': '37s'}]}}`:                                            {Provider: "google", Status: 429, Code: "RESOURCE_EXHAUSTED", RetryAfter: 37 * time.Second},
		`rpc error: code = ResourceExhausted desc = quota`:                                                            {Code: "RESOURCE_EXHAUSTED"},
		`grpc._channel._InactiveRpcError: status = StatusCode.UNAVAILABLE`:                                            {Code: "UNAVAILABLE"},
		`botocore.errorfactory.ThrottlingException: An error occurred (ThrottlingException) when calling InvokeModel`: {Provider: "aws", Code: "ThrottlingException"},
		"HTTP/1.1 503 Service Unavailable\nRetry-After: 120":                                                          {Status: 503, RetryAfter: 2 * time.Minute},
		"status 429\nretry-after: Wed, 02 Dec 2026 07:28:00 GMT":                                                      {Status: 429, RetryAt: at("2026-12-02T07:28:00Z")},
		"usage limit reached, resets at 2026-12-02T07:28:00Z":                                                         {RetryAt: at("2026-12-02T07:28:00Z")},
		"HTTP 429\nx-ratelimit-reset: 1796196480":                                                                     {Status: 429, RetryAt: time.Unix(1796196480, 0).UTC()},
		"HTTP 429, retry-after-ms: 1500":                                                                              {Status: 429, RetryAfter: 1500 * time.Millisecond},
		"mistral answered 502 Bad Gateway, wait 2 minutes and 3 seconds":                                              {Provider: "mistral", Status: 502, RetryAfter: 123 * time.Second},
		"at wire.js:429:12 agents-500 version 4.2.9":                                                                  {},
		"line 429, in main: 503 files":                                                                                {},
	} {
		want.RetrySeconds = want.RetryAfter.Seconds()
		if d := cmp.Diff(want, classify.ReadRefusal(text)); d != "" {
			t.Errorf("%s (-want +got):\n%s", text, d)
		}
	}
}

// TestRefusalOnVerdict: the evidence comes with the verdict, and only with one that a provider caused.
func TestRefusalOnVerdict(t *testing.T) {
	t.Parallel()
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{scripted{name: "none"}}})
	if err != nil {
		t.Fatal(err)
	}
	in := classify.Input{Exit: classify.Exit{Code: 1}, Text: []byte("INFO calling anthropic\nretry-after: 30\nagent: API Error: 429 rate limit reached\n")}
	v := c.Classify(in)
	if v.Reason != classify.RateLimit || v.Refusal == nil || v.Refusal.Provider != "anthropic" || v.Refusal.Status != 429 || v.Refusal.RetryAfter != 30*time.Second {
		t.Errorf("verdict %+v, refusal %+v", v, v.Refusal)
	}
	in.Text = []byte("INFO calling anthropic\nretry-after: 30\ncancelled by user\n")
	if v := c.Classify(in); v.Reason != classify.Killed || v.Refusal != nil {
		t.Errorf("verdict %+v has a refusal: %+v", v, v.Refusal)
	}
}

// TestRefusalOfAnyBytes: a byte that is no character takes more room in lower case, and moves no place.
func TestRefusalOfAnyBytes(t *testing.T) {
	t.Parallel()
	got := classify.ReadRefusal("\x97\x97\x97\x97 API Error: 400 \"TYPE\"")
	if want := (classify.Refusal{Status: 400}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
