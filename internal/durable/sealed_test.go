package durable_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// TestSealedKeepsItsForm: the files of a version before are read, and those of this one by it.
func TestSealedKeepsItsForm(t *testing.T) {
	t.Parallel()
	for file, s := range map[string]durable.Sealed{
		`{"schema":1,"sum":"7af2b315784869f21156ff9bb2dbf5b6","body":{"a":"\u003cb\u003e"}}` + "\n":    {Name: "f", Limit: 1 << 10, Schema: 1},
		`{"schema":1,"sum":"7af2b315784869f21156ff9bb2dbf5b6","entries":{"a":"\u003cb\u003e"}}` + "\n": {Name: "f", Limit: 1 << 10, Schema: 1, Body: "entries"},
	} {
		got, err := s.Encode(map[string]string{"a": "<b>"})
		if err != nil || string(got) != file {
			t.Errorf("it is written as\n%s%v, want\n%s", got, err, file)
		}
		d := folder(t)
		var v map[string]string
		if err := s.Load(d, &v); !durable.Absent(err) {
			t.Errorf("an absent file: %v", err)
		}
		for name, save := range map[string]func(durable.Dir, any) error{"save": s.Save, "leave": s.Leave} {
			v = nil
			if err := errors.Join(save(d, map[string]string{"a": "<b>"}), s.Load(d, &v)); err != nil || v["a"] != "<b>" {
				t.Errorf("%s: it is read as %v, %v", name, v, err)
			}
		}
		for damage, want := range map[string]string{
			"":   "it is no JSON",
			"[]": "it is no JSON",
			"{}": "checksum",
			strings.Replace(file, "003cb", "003cc", 1):           "checksum",
			strings.Replace(file, `"schema":1`, `"schema":2`, 1): "it is of schema 2, and this version reads 1",
			strings.Replace(file, `"schema":1`, `"schema":0`, 1): "checksum",
		} {
			if err := os.WriteFile(filepath.Join(d.Path(), "f"), []byte(damage), 0o600); err != nil {
				t.Fatal(err)
			}
			var bad *durable.DamageError
			if err := s.Load(d, &v); !errors.As(err, &bad) || bad.Path != filepath.Join(d.Path(), "f") || !strings.Contains(bad.Text, want) || strings.Contains(bad.Text, "\n") {
				t.Errorf("%q: %v, want one line that says %q", damage, err, want)
			}
		}
	}
}

// gate is a lock that somebody else holds for a while.
type gate struct {
	held  time.Duration
	tries []time.Duration
	began time.Time
}

func (g *gate) Try(bool) (bool, error) {
	g.tries = append(g.tries, time.Since(g.began))
	return time.Since(g.began) >= g.held, nil
}
func (g *gate) Unlock() error { return nil }
func (g *gate) Close() error  { return nil }

func TestAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{began: time.Now(), held: 100 * time.Millisecond}
		if err := durable.Await(t.Context(), g, 2*time.Millisecond); err != nil {
			t.Error(err)
		}
		for i := 1; i < len(g.tries); i++ {
			if rest := g.tries[i] - g.tries[i-1]; rest > 2*time.Millisecond {
				t.Errorf("%v between two tries", rest)
			}
		}
		if at := g.tries[len(g.tries)-1]; at > 102*time.Millisecond {
			t.Errorf("it was had at %v", at)
		}
		// A few dozen looks, and not thousands.
		if len(g.tries) > 70 {
			t.Errorf("%d tries within 100 ms", len(g.tries))
		}

		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		shut := &gate{began: time.Now(), held: time.Hour}
		time.AfterFunc(time.Second, func() { cancel(why) })
		if err := durable.Await(ctx, shut, time.Hour); !errors.Is(err, why) {
			t.Errorf("a wait that was ended: %v", err)
		}
		if err := durable.Await(ctx, &gate{}, time.Second); !errors.Is(err, why) {
			t.Errorf("a context that had ended has a lock: %v", err)
		}
	})
}

// TestTake: a lock that is held for ever is given up, and one that comes free in time is had.
//
// Seen to fail: without the bound.
func TestTake(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var held *durable.HeldError
		shut := &gate{began: time.Now(), held: 24 * time.Hour}
		if err := durable.Take(t.Context(), shut, 5*time.Millisecond, time.Minute); !errors.As(err, &held) || held.Waited != time.Minute {
			t.Errorf("one that is never free: %v", err)
		}
		if took := time.Since(shut.began); took < time.Minute || took > time.Minute+5*time.Millisecond {
			t.Errorf("it was waited for %v", took)
		}
		if err := durable.Take(t.Context(), &gate{began: time.Now(), held: 59 * time.Second}, 5*time.Millisecond, time.Minute); err != nil {
			t.Errorf("one that comes free in time: %v", err)
		}
	})
}
