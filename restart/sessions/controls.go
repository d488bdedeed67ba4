package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// Say adds a message to the agent.
func (s *Service) Say(ctx context.Context, name string, content json.RawMessage) error {
	_, err := s.Append(ctx, name, session.Say(s.Now(), NewID(), content))
	return err
}

// Pause puts a gate before the session's next turn. The token answers it, and is shown this once; an empty interrupt
// makes one.
func (s *Service) Pause(ctx context.Context, name, interrupt string, question json.RawMessage) (id, token string, err error) {
	p, token, err := s.NewPause(name, interrupt, question)
	if err == nil {
		_, err = s.Append(ctx, name, session.NewGate(s.Now(), p))
	}
	if err != nil {
		return "", "", fmt.Errorf("pause: %w", err)
	}
	return p.Interrupt, token, nil
}

// NewPause is the payload of a gate or park with a token, for Turn.Park and for appends of the caller's own.
func (s *Service) NewPause(name, interrupt string, question json.RawMessage) (p session.Pause, token string, err error) {
	if interrupt == "" {
		interrupt = NewID()
	}
	token, expires, err := s.token(name, interrupt)
	if err != nil {
		return session.Pause{}, "", err
	}
	return session.Pause{Interrupt: interrupt, Question: question, Token: session.HashToken(token), Expires: expires}, token, nil
}

func (s *Service) token(name, interrupt string) (string, stamp.Time, error) {
	var random [16]byte
	if _, err := io.ReadFull(s.Random, random[:]); err != nil {
		return "", stamp.Time{}, fmt.Errorf("make a token: %w", err)
	}
	return session.Token(name, interrupt, random), s.Now().Add(session.TokenLife), nil
}

// Extend gives an open gate or park a new token; the old one is over. The new one is shown this once.
func (s *Service) Extend(ctx context.Context, name, interrupt string) (string, error) {
	h, err := s.Store.Head(ctx, name)
	if err != nil {
		return "", fmt.Errorf("extend %s: %w", interrupt, err)
	}
	kind := session.KindPark
	for _, g := range h.Gates {
		if g.Interrupt == interrupt {
			kind = session.KindGate
		}
	}
	token, expires, err := s.token(name, interrupt)
	if err != nil {
		return "", err
	}
	if _, err := s.Append(ctx, name, session.Extend(kind, s.Now(), NewID(), interrupt, token, expires)); err != nil {
		return "", fmt.Errorf("extend %s: %w", interrupt, err)
	}
	return token, nil
}

// Answer answers a gate or park by session and interrupt id.
func (s *Service) Answer(ctx context.Context, name string, a session.Answer) error {
	if _, err := s.Append(ctx, name, session.NewAnswer(s.Now(), a)); err != nil {
		return fmt.Errorf("answer %s: %w", a.Interrupt, err)
	}
	return nil
}

// AnswerToken answers the gate or park that a token is for.
func (s *Service) AnswerToken(ctx context.Context, token string, value json.RawMessage, by string) error {
	name, interrupt, err := session.ParseToken(token)
	if err != nil {
		return fmt.Errorf("answer by token: %w", err)
	}
	return s.Answer(ctx, name, session.Answer{Interrupt: interrupt, Value: value, Token: session.HashToken(token), By: by})
}

// Abort stops a session for good. Its owner cancels the open turn when it sees it.
func (s *Service) Abort(ctx context.Context, name, why string) error {
	if _, err := s.Append(ctx, name, session.NewAbort(s.Now(), NewID(), why)); err != nil {
		return fmt.Errorf("abort: %w", err)
	}
	return nil
}

// dead is the fence of a session's owner when that is proven dead, else zero.
func (s *Service) dead(ctx context.Context, name string) (uint64, error) {
	h, err := s.Store.Head(ctx, name)
	if err != nil {
		return 0, err
	}
	live, err := s.Liveness(ctx, h)
	if err != nil || live != ledger.Dead {
		return 0, err
	}
	return h.Fence, nil
}

// Ack accepts the unresolved calls up to a sequence, the one the operator was shown, as unknown.
func (s *Service) Ack(ctx context.Context, name string, through uint64, by string) error {
	dead, err := s.dead(ctx, name)
	if err == nil {
		_, err = s.Append(ctx, name, session.NewAck(s.Now(), NewID(), session.Ack{Through: through, Dead: dead, By: by}))
	}
	if err != nil {
		return fmt.Errorf("acknowledge through %d: %w", through, err)
	}
	return nil
}

// Resolve says what became of one unresolved call, by the sequence that the operator was shown. The Call and Dead of r are
// filled in.
func (s *Service) Resolve(ctx context.Context, name string, seq uint64, r session.Resolve) error {
	err := s.resolve(ctx, name, seq, r)
	if err != nil {
		return fmt.Errorf("resolve call %d: %w", seq, err)
	}
	return nil
}

func (s *Service) resolve(ctx context.Context, name string, seq uint64, r session.Resolve) error {
	page, err := s.Store.Read(ctx, name, max(seq, 1)-1, 1)
	if err != nil {
		return err
	}
	if len(page) == 0 || page[0].Seq != seq || page[0].Kind != session.KindCall {
		return &session.Refusal{Code: session.ErrNoSuchCall, Text: fmt.Sprintf("event %d is no call", seq), Seq: seq}
	}
	dead, err := s.dead(ctx, name)
	if err != nil {
		return err
	}
	r.Call, r.Dead = page[0].ID, dead
	_, err = s.Append(ctx, name, session.NewResolve(s.Now(), r))
	return err
}

// Release lifts a quarantine.
func (s *Service) Release(ctx context.Context, name, by string) error {
	if _, err := s.Append(ctx, name, session.Release(s.Now(), NewID(), by)); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	return nil
}

// Mark says durably that a turn was open when this process began to drain. It is refused with session.ErrNoOpenTurn
// when the turn has ended.
func (s *Service) Mark(ctx context.Context, name, turn, why string) error {
	if _, err := s.Append(ctx, name, session.NewMark(s.Now(), NewID(), turn, why)); err != nil {
		return fmt.Errorf("mark turn %s: %w", turn, err)
	}
	return nil
}

// Clear takes away the mark and interruption that stood at a sequence, when nothing came after that.
func (s *Service) Clear(ctx context.Context, name string, through uint64) error {
	if _, err := s.Append(ctx, name, session.Clear(s.Now(), NewID(), through)); err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	return nil
}
