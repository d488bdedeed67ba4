package sessiontest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

func nothing(ctx context.Context, b bench) error {
	h, err := b.store.Head(ctx, "none")
	if err != nil {
		return err
	}
	if err := same(h, session.Head{Session: "none"}); err != nil {
		return fmt.Errorf("the head of no session:\n%w", err)
	}
	if page, err := b.store.Read(ctx, "none", 0, 0); err != nil || len(page) != 0 {
		return fmt.Errorf("its log has %d events, %w", len(page), orNone(err))
	}
	if _, ok, err := b.store.Find(ctx, "none", "e"); err != nil || ok {
		return fmt.Errorf("it has an event: %v, %w", ok, orNone(err))
	}
	r, err := b.store.Append(ctx, "none", nil)
	if err != nil || len(r.Outcomes) != 0 || r.Head.Last != 0 {
		return fmt.Errorf("an empty batch gave %+v, %w", r, orNone(err))
	}
	if page, err := b.store.List(ctx, "", 0); err != nil || len(page) != 0 {
		return fmt.Errorf("looking made %d sessions, %w", len(page), orNone(err))
	}
	return nil
}

var errNone = errors.New("and no error")

func orNone(err error) error {
	if err == nil {
		return errNone
	}
	return err
}

func roundTrip(ctx context.Context, b bench) error {
	want := story(1, 1)
	awkwardTimes := []stamp.Time{{}, {Wall: time.Unix(0, 1).UTC()}, {Wall: day(0).Wall, Boot: "b", Uptime: 1, Grain: time.Second}}
	for i, at := range awkwardTimes {
		want = append(want, session.Say(at, fmt.Sprint("time", i), nil))
	}
	for i, payload := range []string{`null`, `""`, `"\u0000\u2028<>&é🙂"`, `{"b":1,"a":1,"a":2}`, `12345678901234567890.10e400`, `[[[]]]`} {
		want = append(want, session.Say(day(0), fmt.Sprint("payload", i), json.RawMessage(payload)))
	}
	for _, id := range awkward() {
		want = append(want, say("id"+id))
	}
	if _, err := put(ctx, b.store, "s", want...); err != nil {
		return err
	}
	got, err := all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("of %d events %d are there", len(want), len(got))
	}
	for i, d := range want {
		d.Seq = uint64(i) + 1
		if string(got[i].Payload) != compact(d.Payload) {
			return fmt.Errorf("event %d: the payload %s came back as %s", d.Seq, d.Payload, got[i].Payload)
		}
		if err := same(got[i], d.Event); err != nil {
			return fmt.Errorf("event %d:\n%w", d.Seq, err)
		}
	}
	return nil
}

// compact is a payload as Step makes it. The payloads here have no white space outside of strings but for one.
func compact(p json.RawMessage) string { return strings.ReplaceAll(string(p), "[1, 2]", "[1,2]") }

func unknownKinds(ctx context.Context, b bench) error {
	strange := session.New("from_the_future", day(0), "strange", json.RawMessage(`{"x":{"y":[1]}}`)).As(0, "turn")
	if _, err := put(ctx, b.store, "s", say("1"), strange, say("2")); err != nil {
		return err
	}
	got, err := all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	if len(got) != 3 {
		return fmt.Errorf("of 3 events %d are there", len(got))
	}
	strange.Seq = 2
	if err := same(got[1], strange.Event); err != nil {
		return err
	}
	h, err := b.store.Head(ctx, "s")
	if err != nil || h.Newer != 1 || h.Last != 3 {
		return fmt.Errorf("the head is %+v, %w", h, orNone(err))
	}
	return nil
}

func gapless(ctx context.Context, b bench) error {
	const writers, rounds = 8, 25
	seqs := make([][]uint64, writers)
	err := race(writers, func(w int) error {
		for i := range rounds {
			r, err := put(ctx, b.store, "s", say(fmt.Sprint(w, "/", i, "a")), say(fmt.Sprint(w, "/", i, "b")))
			if err != nil {
				return err
			}
			if r.Outcomes[1].Seq != r.Outcomes[0].Seq+1 {
				return fmt.Errorf("a batch was torn: %+v", r.Outcomes)
			}
			if r.Head.Last < r.Outcomes[1].Seq {
				return fmt.Errorf("the receipt's head is at %d after event %d", r.Head.Last, r.Outcomes[1].Seq)
			}
			seqs[w] = append(seqs[w], r.Outcomes[0].Seq, r.Outcomes[1].Seq)
		}
		return nil
	})
	if err != nil {
		return err
	}
	given := slices.Concat(seqs...)
	slices.Sort(given)
	for i, seq := range given {
		if seq != uint64(i)+1 {
			return fmt.Errorf("place %d was given as %d", i+1, seq)
		}
	}
	got, err := all(ctx, b.store, "s", 0)
	if err == nil && len(got) != len(given) {
		err = fmt.Errorf("%d events were acknowledged and %d are there", len(given), len(got))
	}
	return err
}

func repeated(ctx context.Context, b bench) error {
	if _, err := put(ctx, b.store, "s", say("1"), say("2"), say("3")); err != nil {
		return err
	}
	r, err := put(ctx, b.store, "s", say("2"), say("4"), say("4"), say("1"))
	if err != nil {
		return err
	}
	want := []session.Outcome{{Seq: 2, Repeated: true}, {Seq: 4}, {Seq: 4, Repeated: true}, {Seq: 1, Repeated: true}}
	if err := same(r.Outcomes, want); err != nil {
		return err
	}
	// At once, from many: one is the first, and all are told its sequence.
	err = race(8, func(int) error {
		r, err := put(ctx, b.store, "s", say("5"))
		if err == nil && r.Outcomes[0].Seq != 5 {
			err = fmt.Errorf("event 5 was acknowledged as %d", r.Outcomes[0].Seq)
		}
		return err
	})
	if err != nil {
		return err
	}
	got, err := all(ctx, b.store, "s", 0)
	if err == nil && len(got) != 5 {
		err = fmt.Errorf("5 events became %d", len(got))
	}
	return err
}

func conflicts(ctx context.Context, b bench) error {
	if _, err := put(ctx, b.store, "s", story(1, 1)...); err != nil {
		return err
	}
	call := func(tool, args string) session.Draft {
		return session.NewCall(day(time.Hour), session.Call{Invocation: "i", Call: "1", Tool: tool, Args: json.RawMessage(args),
			Class: session.Mutating}).As(1, "turn")
	}
	answer := func(token, value string) session.Draft {
		a := session.Answer{Interrupt: "q", Value: json.RawMessage(value)}
		if token != "" {
			a.Token = session.HashToken(token)
		}
		return session.NewAnswer(day(time.Hour), a)
	}
	for _, c := range []struct {
		what string
		d    session.Draft
		code session.Code
	}{
		{"the same call", call("scale", ` { "to" : 12 } `), ""},
		{"a call with other arguments", call("scale", `{"to":13}`), session.ErrEffectKeyConflict},
		{"a call of another tool", call("drop", `{"to":12}`), session.ErrEffectKeyConflict},
		{"the same answer", answer("", "true"), ""},
		{"the same answer by its token", answer("another", "true"), ""},
		{"another answer", answer("", "false"), session.ErrAnswerConflict},
		{"another answer by its token", answer("another", "false"), session.ErrAnswerConflict},
		{"an answer by a token that is over", answer("token", "true"), session.ErrWrongToken},
		{"a message with a turn's id", say("begin"), session.ErrIDConflict},
		{"another message", session.Say(day(0), "message", json.RawMessage(`1`)), session.ErrIDConflict},
	} {
		r, err := b.store.Append(ctx, "s", []session.Draft{c.d})
		if err != nil {
			return err
		}
		if err := wants(r.Err(), c.code, c.what); err != nil {
			return err
		}
		if c.code == "" && !r.Outcomes[0].Repeated {
			return fmt.Errorf("%s was written again", c.what)
		}
	}
	return sameLog(ctx, b.store, "s", len(story(1, 1)))
}

// sameLog wants a number of events, and nothing else.
func sameLog(ctx context.Context, s session.Store, name string, n int) error {
	got, err := all(ctx, s, name, 0)
	if err == nil && len(got) != n {
		err = fmt.Errorf("the log has %d events, and %d were accepted", len(got), n)
	}
	return err
}

func refusals(ctx context.Context, b bench) error {
	batch := []session.Draft{
		say("1"),
		session.Begin(day(0), "begin", session.TurnBegun{}).As(3, "turn"),
		say("2"),
		session.Say(day(0), "", nil),
		session.Say(day(0), "no json", json.RawMessage(`{`)),
		session.Say(day(0), "no text", json.RawMessage("\"\xff\"")),
		session.NewAnswer(day(0), session.Answer{Interrupt: "nobody asked"}),
		say("3").Seen(1),
		say("4"),
		say("5").After(),
		session.NewMark(day(0), "mark", "turn", ""),
		say("6").After(),
	}
	codes := []session.Code{"", session.ErrFenced, "", session.ErrMalformed, session.ErrMalformed, session.ErrMalformed,
		session.ErrNoSuchInterrupt, session.ErrSuperseded, "", "", session.ErrNoOpenTurn, session.ErrChained}
	r, err := b.store.Append(ctx, "s", batch)
	if err != nil {
		return fmt.Errorf("a batch with refused events failed as a whole: %w", err)
	}
	if len(r.Outcomes) != len(batch) {
		return fmt.Errorf("%d events had %d outcomes", len(batch), len(r.Outcomes))
	}
	var seq uint64
	for i, o := range r.Outcomes {
		if err := wants(o.Err(), codes[i], fmt.Sprint("event ", i, " of the batch")); err != nil {
			return err
		}
		if codes[i] == "" {
			seq++
			if o.Seq != seq {
				return fmt.Errorf("event %d of the batch got sequence %d, want %d", i, o.Seq, seq)
			}
		}
	}
	if _, ok, err := b.store.Find(ctx, "s", "mark"); err != nil || ok {
		return fmt.Errorf("a refused event is there: %v, %w", ok, orNone(err))
	}
	// A batch of which all is refused makes no session, and no event of it takes a sequence.
	if _, err := b.store.Append(ctx, "t", []session.Draft{batch[1]}); err != nil {
		return err
	}
	if page, err := b.store.List(ctx, "s", 0); err != nil || len(page) != 0 {
		return fmt.Errorf("a refused event made a session: %d, %w", len(page), orNone(err))
	}
	return sameLog(ctx, b.store, "s", int(seq))
}

func judgedInOrder(ctx context.Context, b bench) error {
	r, err := b.store.Append(ctx, "s", []session.Draft{
		session.Own(day(0), "own", someone(1), 0),
		session.Begin(day(0), "begin", session.TurnBegun{}).As(1, "turn"),
		session.NewAbort(day(0), "abort", ""),
		session.NewCall(day(0), session.Call{Invocation: "turn", Call: "1", Tool: "x", Class: session.Mutating}).As(1, "turn"),
		session.Finish(day(0), "end", session.TurnEnded{End: session.EndFailed}).As(1, "turn"),
		session.Begin(day(0), "begin 2", session.TurnBegun{}).As(1, "turn 2"),
	})
	if err != nil {
		return err
	}
	for i, code := range []session.Code{"", "", "", session.ErrAborted, "", session.ErrAborted} {
		if err := wants(r.Outcomes[i].Err(), code, fmt.Sprint("event ", i)); err != nil {
			return err
		}
	}
	return nil
}

func sizes(ctx context.Context, b bench) error {
	sized := func(id string, n int) session.Draft {
		return session.Say(day(0), id, json.RawMessage(`"`+strings.Repeat("x", n-2)+`"`))
	}
	r, err := b.store.Append(ctx, "s", []session.Draft{
		sized("large", session.MaxPayload), sized("too large", session.MaxPayload+1), say("1"),
	})
	if err != nil {
		return fmt.Errorf("an event that is too large failed its batch: %w", err)
	}
	for i, code := range []session.Code{"", session.ErrOversize, ""} {
		if err := wants(r.Outcomes[i].Err(), code, fmt.Sprint("event ", i)); err != nil {
			return err
		}
	}
	got, err := all(ctx, b.store, "s", 0)
	if err != nil {
		return err
	}
	if len(got) != 2 || len(got[0].Payload) != session.MaxPayload {
		return fmt.Errorf("the largest payload did not come back whole, or %d events are there", len(got))
	}
	return nil
}

func names(ctx context.Context, b bench) error {
	for _, name := range []string{"", strings.Repeat("x", session.MaxID+1), "s\x00", "\xff"} {
		_, err := b.store.Append(ctx, name, []session.Draft{say("1")})
		if err := wants(err, session.ErrMalformed, fmt.Sprintf("append to session %.20q", name)); err != nil {
			return err
		}
	}
	return nil
}

func apart(ctx context.Context, b bench) error {
	for round := range 3 {
		for _, name := range awkward() {
			r, err := put(ctx, b.store, name, session.Say(day(0), fmt.Sprint("event", round), json.RawMessage(quote(name))))
			if err != nil {
				return err
			}
			if r.Outcomes[0].Seq != uint64(round)+1 || r.Outcomes[0].Repeated {
				return fmt.Errorf("event %d of session %q was acknowledged as %+v", round+1, name, r.Outcomes[0])
			}
		}
	}
	for _, name := range awkward() {
		got, err := all(ctx, b.store, name, 0)
		if err != nil {
			return err
		}
		if len(got) != 3 || string(got[0].Payload) != quote(name) {
			return fmt.Errorf("session %q has %d events, or those of another", name, len(got))
		}
		if h, err := b.store.Head(ctx, name); err != nil || h.Session != name || h.Last != 3 {
			return fmt.Errorf("the head of %q is %+v, %w", name, h, orNone(err))
		}
	}
	return nil
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
