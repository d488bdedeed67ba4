package sessionlog

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/framelog"
	"github.com/mulligan-dev/mulligan/ledger/session"
)

// A log of the format's first version (testdata/v1.log: every kind of name and payload, its zeros ahead cut off) is read as
// it was written, what is written now has the same bytes, and it is gone on with.
func TestLogOfTheFirstVersion(t *testing.T) {
	t.Parallel()
	was, err := os.ReadFile("testdata/v1.log")
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Path: filepath.Join(t.TempDir(), "sessions.log")}
	if err := os.WriteFile(c.Path, was, 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, c)
	want := map[string]string{
		"plain": "[1:own-1 2:say-1 3:begin-1 4:call/f2cb25a39cb88e17c20cfda842a00312/1 5:result/call/f2cb25a39cb88e17c20cfda842a00312/1 " +
			"6:reply-1 7:end-1]",
		"überall \"<&>\"\u2028": "[1:é/\\\"<&>\u2028\x7f 2:pause/größe? 3:answer/größe?]",
		"later":                 "[1:x-1 2:x-2]",
	}
	for name, ids1 := range want {
		if got := fmt.Sprint(ids(t, s, name)); got != ids1 {
			t.Errorf("%s has\n%s, want\n%s", name, got, ids1)
		}
	}
	if l, err := s.List(t.Context(), "", 0); err != nil || len(l) != len(want) {
		t.Errorf("%d sessions, %v", len(l), err)
	}
	if h, err := s.Head(t.Context(), "plain"); err != nil || h.Turn != nil || h.Ended != session.EndDone || len(h.Calls) != 0 || !h.Clean || h.Fence != 1 {
		t.Errorf("the head of plain is %+v, %v", h, err)
	}
	records := 0
	err = s.log.Scan(func(e framelog.Entry) bool {
		name, events, err := decode(e.Record)
		if err != nil {
			t.Fatal(err)
		}
		now, err := new(scratch).encode(name, session.Plan{Events: events})
		if err != nil || !bytes.Equal(now, e.Record) {
			t.Errorf("%s is written as\n%q (%v), and was\n%q", name, now, err, e.Record)
		}
		records++
		return true
	})
	if err != nil || records != 7 {
		t.Errorf("%d records, %v", records, err)
	}
	if r, err := s.Append(t.Context(), "later", []session.Draft{say("x-1"), say("x-3")}); err != nil || r.Outcomes[0].Refused == nil || r.Outcomes[1].Seq != 3 {
		t.Errorf("an append to it: %+v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, mustOpen(t, c), "later"); fmt.Sprint(got) != "[1:x-1 2:x-2 3:x-3]" {
		t.Errorf("later on it has %q", got)
	}
}
