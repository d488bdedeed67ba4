package doorbell_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mulligan-dev/mulligan/ledger/doorbell"
)

func FuzzText(f *testing.F) {
	f.Add([]byte("plain"))
	f.Add([]byte{0xff, 0, '\n'})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := json.Marshal(doorbell.Text(b))
		if err != nil {
			t.Fatal(err)
		}
		var got doorbell.Text
		if err := json.Unmarshal(raw, &got); err != nil || !bytes.Equal(got, b) {
			t.Fatalf("%q came back as %q, %v", b, got, err)
		}
	})
}

func TestTextRefusesOtherShapes(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{"1", "[]", `{"base64":"!"}`, `{"base64":1}`} {
		var got doorbell.Text
		if err := json.Unmarshal([]byte(raw), &got); err == nil {
			t.Errorf("%s is read as %q", raw, got)
		}
	}
}

// A program in any language leaves such a file in the doorbell folder.
func ExampleNote_Validate() {
	var n doorbell.Note
	err := json.Unmarshal([]byte(`{"schema": 1, "run": "r1", "text": "ImportError: cannot import name 'SCHEMA'"}`), &n)
	fmt.Println(err, n.Validate(), string(n.Text))
	fmt.Println(doorbell.Note{Schema: 1}.Validate())
	// Output:
	// <nil> <nil> ImportError: cannot import name 'SCHEMA'
	// run: empty, want the run's id
}
