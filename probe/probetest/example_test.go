package probetest_test

import (
	"os"
	"testing"

	"github.com/mulligan-dev/mulligan/probe"
	"github.com/mulligan-dev/mulligan/probe/probetest"
)

// newProber stands for the constructor of the prober under test.
var newProber func() probe.Prober

// These three lines are all that a prober's own test needs.
func ExampleRun() {
	_ = func(t *testing.T) {
		probetest.Run(t, probetest.Subject{
			Prober: newProber(), Interpreter: "/usr/bin/python3", Env: os.Environ(), Language: probetest.Python,
		})
	}
}
