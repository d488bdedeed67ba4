package canary_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/probe/canary"
)

// A candidate that cannot even start is stopped here, and the service stays up.
func ExampleNew() {
	c, err := canary.New(canary.Config{
		Command:   []string{"/opt/acme/new/acmed", "--listen", "{addr}"},
		Overrides: []canary.Override{{Var: "ACME_STATE"}},
		Live:      []string{"/var/lib/acme"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result := c.Run(context.Background())
	fmt.Println(result.Outcome, result.Code, result.Proceed())
	// Output: failed not_started false
}

func TestNewSaysAllAtOnce(t *testing.T) {
	t.Parallel()
	_, err := canary.New(canary.Config{Live: []string{"state", "/"}, Port: -1, Path: "healthz", Within: -time.Second, Env: []string{"X"},
		Overrides: []canary.Override{{Var: "A=B"}, {Var: "S", Path: "../live"}}})
	for _, want := range []string{`"state"`, `"/"`, "Port", "healthz", "Within", `"X"`, "A=B", "../live"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %s: %v", want, err)
		}
	}
}

// TestSkipped is loud, and lets the caller go on.
func TestSkipped(t *testing.T) {
	t.Parallel()
	c, err := canary.New(canary.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Run(t.Context()); r.Outcome != canary.Skipped || r.Code != canary.CodeNoCommand || !r.Proceed() || r.Text == "" {
		t.Errorf("%+v", r)
	}
}

// TestDefaults pins what users know.
func TestDefaults(t *testing.T) {
	t.Parallel()
	if canary.DefaultPreflight != 20*time.Second || canary.DefaultWithin != 45*time.Second || canary.DefaultAttempt != 800*time.Millisecond {
		t.Error("preflight 20 s, liveness within 45 s, 800 ms an attempt")
	}
}
