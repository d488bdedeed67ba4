package run_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mulligan-dev/mulligan/ledger/run"
)

// TestRecipeIsKeptToTheByte: a run is put back unchanged, also one whose arguments are no text.
func TestRecipeIsKeptToTheByte(t *testing.T) {
	t.Parallel()
	for _, want := range []run.Recipe{
		{},
		{Command: []string{"python3", "caf\xe9", "", "{\"base64\":\"\"}"}, Dir: "/tmp/\xff", Env: []string{"ODD=\xe9\x00", "A=\u2028"}, Marking: run.Phases},
	} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got run.Recipe
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the recipe came back changed (-want +got):\n%s", diff)
		}
	}
}
