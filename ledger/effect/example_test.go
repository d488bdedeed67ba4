package effect_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/adapters/memory"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/effect"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func clock() stamp.Time {
	return stamp.Time{Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// openTurn is a turn on a store in memory, begun by plain appends.
func openTurn(store session.Log, turn string) effect.Turn {
	ctx := context.Background()
	head, err := store.Head(ctx, "s1")
	if err != nil {
		panic(err)
	}
	receipt, err := store.Append(ctx, "s1", []session.Draft{
		session.Own(clock(), "own/"+turn, ledger.Instance{ID: "daemon/" + turn}, head.Fence),
		session.Begin(clock(), "begin/"+turn, session.TurnBegun{Invocation: "request-1"}).As(head.Fence+1, turn),
	})
	if err == nil {
		err = receipt.Err()
	}
	if err != nil {
		panic(err)
	}
	return effect.On(store, "s1", receipt.Head.Fence, turn, "request-1")
}

func ExampleNew() {
	guard, err := effect.New(effect.Config{
		Turn:  openTurn(memory.NewSessions(memory.SessionsConfig{}), "turn-1"),
		Tools: effect.Tools{"status": session.ReadOnly},
		Now:   clock,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	scale := func(context.Context) (effect.Result, error) {
		fmt.Println("scaling")
		return effect.Result{Value: json.RawMessage(`"12 replicas"`)}, nil
	}
	call := effect.Call{ID: "call-1", Tool: "scale", Args: json.RawMessage(`{"to":12}`)}
	for range 2 {
		r, err := guard.Do(context.Background(), call, scale)
		fmt.Println(string(r.Value), r.Replayed, err)
	}
	// Output:
	// scaling
	// "12 replicas" false <nil>
	// "12 replicas" true <nil>
}

// A crash between the effect and its completion: the next turn is told, and runs nothing that could repeat it.
func ExampleGuard_Do() {
	ctx := context.Background()
	store := memory.NewSessions(memory.SessionsConfig{})
	guard, err := effect.New(effect.Config{Turn: openTurn(store, "turn-1"), Now: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := effect.Call{ID: "call-1", Tool: "scale"}
	if _, err = guard.Begin(ctx, call); err != nil { // and the process is gone
		fmt.Println(err)
		return
	}

	guard, err = effect.New(effect.Config{Turn: openTurn(store, "turn-2"), Now: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = guard.Do(ctx, effect.Call{ID: "call-2", Tool: "scale"}, func(context.Context) (effect.Result, error) {
		panic("not reached")
	})
	fmt.Println(err)
	// Output:
	// begin call call-2 of scale: scale does not run: call 3 (scale) of an earlier turn began and nobody knows whether it happened; resolve or acknowledge it, and run a new turn (ambiguous_prior_effect)
}

// A plain table of functions, each behind the guard.
func Example_functionTable() {
	type tool func(ctx context.Context, args json.RawMessage) (json.RawMessage, error)
	table := map[string]tool{
		"status": func(context.Context, json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`"ok"`), nil },
		"scale": func(_ context.Context, args json.RawMessage) (json.RawMessage, error) {
			return json.RawMessage(`{"scaled":` + string(args) + `}`), nil
		},
	}
	guard, err := effect.New(effect.Config{
		Turn:  openTurn(memory.NewSessions(memory.SessionsConfig{}), "turn-1"),
		Tools: effect.Tools{"status": session.ReadOnly},
		Now:   clock,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := func(ctx context.Context, c effect.Call) (effect.Result, error) {
		f, ok := table[c.Tool]
		if !ok { // an error of the tool, and no effect: nothing to guard
			return effect.Result{Value: json.RawMessage(`"no such tool"`), Failed: true}, nil
		}
		return guard.Do(ctx, c, func(ctx context.Context) (effect.Result, error) {
			value, err := f(ctx, c.Args)
			return effect.Result{Value: value}, err
		})
	}
	r, err := call(context.Background(), effect.Call{ID: "1", Tool: "scale", Args: json.RawMessage(`12`)})
	fmt.Println(string(r.Value), err)
	r, err = call(context.Background(), effect.Call{ID: "2", Tool: "status"})
	fmt.Println(string(r.Value), err)
	// Output:
	// {"scaled":12} <nil>
	// "ok" <nil>
}

// A tool server over HTTP. The path names the tool and the Idempotency-Key the call; a client that did not get its
// answer asks again, and the effect does not happen again.
func Example_httpServer() {
	guard, err := effect.New(effect.Config{Turn: openTurn(memory.NewSessions(memory.SessionsConfig{}), "turn-1"), Now: clock})
	if err != nil {
		fmt.Println(err)
		return
	}
	replicas := 0
	scale := func(context.Context) (effect.Result, error) {
		replicas++
		return effect.Result{Value: json.RawMessage(fmt.Sprintf(`{"replicas":%d}`, replicas))}, nil
	}
	server := httptest.NewServer(guarded(guard, "scale", scale))
	defer server.Close()

	for _, body := range []string{`{"by":1}`, `{"by":1}`, `{"by":2}`} {
		fmt.Println(post(server.URL, "call-1", body))
	}
	fmt.Println(replicas)
	// Output:
	// 200 {"replicas":1}
	// 200 {"replicas":1}
	// 409 effect_key_conflict
	// 1
}

// guarded is the middleware: one tool behind the guard.
func guarded(guard *effect.Guard, tool string, f func(context.Context) (effect.Result, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		args, err := io.ReadAll(http.MaxBytesReader(w, r.Body, session.MaxPayload/2))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		result, err := guard.Do(r.Context(), effect.Call{ID: r.Header.Get("Idempotency-Key"), Tool: tool, Args: args}, f)
		switch code := session.CodeOf(err); {
		case code != "":
			http.Error(w, string(code), http.StatusConflict)
		case err != nil: // the call is dangling, and the client must not take that for a no
			http.Error(w, "outcome unknown", http.StatusBadGateway)
		default:
			_, _ = w.Write(result.Value)
		}
	})
}

func post(url, key, body string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(res.StatusCode, " ", strings.TrimSpace(string(b)))
}
