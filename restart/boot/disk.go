package boot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// schema is the version of every file here.
const schema = 1

// fileLimit is far above what any of the files holds.
const fileLimit = 8 << 20

// DamageError is a file that cannot be used.
type DamageError struct {
	Path string
	Text string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("%s cannot be used: %s; move it away to begin anew", e.Path, e.Text)
}

// envelope is what each file holds around its content.
type envelope struct {
	Schema int             `json:"schema"`
	Sum    string          `json:"sum"`
	Body   json.RawMessage `json:"body"`
}

func seal(v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(envelope{Schema: schema, Sum: sum(body), Body: body})
	return append(b, '\n'), err
}

func sum(body []byte) string {
	h := sha256.Sum256(body)
	return hex.EncodeToString(h[:16])
}

// load reads a file into v. One that is absent is fs.ErrNotExist, one that is no use a *DamageError.
func load(d durable.Dir, name string, v any) error {
	b, _, err := durable.ReadFile(d, name, fileLimit)
	if err != nil {
		return err
	}
	bad := func(text string) error { return &DamageError{Path: d.Path() + "/" + name, Text: text} }
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return bad("it is no JSON: " + err.Error())
	}
	switch {
	case e.Schema > schema:
		return bad(fmt.Sprintf("it is of schema %d, and this version reads %d", e.Schema, schema))
	case e.Schema < 1 || sum(e.Body) != e.Sum:
		return bad("its checksum does not fit")
	}
	if err := json.Unmarshal(e.Body, v); err != nil {
		return bad(err.Error())
	}
	return nil
}

// save replaces a file durably. The caller excludes other writers of it.
func save(d durable.Dir, name string, v any) error {
	b, err := seal(v)
	if err != nil {
		return err
	}
	return durable.Replace(d, ".new-"+name, name, b, nil)
}

// lock waits for a kernel lock. The kernel offers no wait that a context could end, so the tries are spaced.
func lock(ctx context.Context, l durable.Lock) error {
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if ok, err := l.Try(false); ok || err != nil {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }
