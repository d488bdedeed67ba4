package agentcli_test

import (
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/agentcli"
	"github.com/mulligan-dev/mulligan/internal/vectortest"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, agentcli.New()), "testdata/corpus", vectortest.Corpus)
}

func TestVectors(t *testing.T) {
	t.Parallel()
	vectortest.Hold(t, vectortest.New(t, agentcli.New()), "testdata/vectors", vectortest.Exact)
}

func FuzzClassify(f *testing.F) {
	vectortest.Fuzz(f, vectortest.New(f, agentcli.New()), "testdata/corpus", "testdata/vectors")
}

func TestRead(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]classify.Reason{
		"read 429 files in 401 ms":                                 "",
		"wrote 503 lines to notes/429.md":                          "",
		"listening on 127.0.0.1:500":                               "",
		"v4.503.1 installed":                                       "",
		"error at src/429.ts:500":                                  "",
		"GET /v1/messages -> HTTP/1.1 503":                         classify.ProviderError,
		`529 {"type":"error","error":{"type":"overloaded_error"}}`: classify.ProviderError,
		"provider answered: status=429":                            classify.RateLimit,
		"sandbox ready":                                            "",
	} {
		if got, _ := agentcli.Read(line); got.Reason != want {
			t.Errorf("%q reads as %q, want %q", line, got.Reason, want)
		}
	}
}

func ExampleRead() {
	r, ok := agentcli.Read(`API Error: 429 {"type":"error","error":{"type":"rate_limit_error"}} retry-after: 33`)
	fmt.Println(ok, r.Reason, r.Status, r.Code, r.RetryAfter)
	// Output: true rate_limit 429 rate_limit_error 33s
}

func ExampleRuntime() {
	c, err := classify.New(classify.Config{Runtimes: []classify.Runtime{agentcli.New()}})
	if err != nil {
		fmt.Println(err)
		return
	}
	v := c.Classify(classify.Input{Text: []byte("> kes run\nAPI Error: 401 {\"error\":{\"type\":\"authentication_error\"}}\ngiving up\n"), Exit: classify.Exit{Code: 1}})
	fmt.Println(v.Disposition, v.Reason)
	// Output: never auth
}

// TestHintIsCertain holds that the quick search never hides a failure.
func TestHintIsCertain(t *testing.T) {
	t.Parallel()
	vectortest.Hinted(t, agentcli.New(), "testdata/corpus", "testdata/vectors")
}
