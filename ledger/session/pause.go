package session

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"time"
)

// TokenLife is how long a token answers a pause.
const TokenLife = 7 * 24 * time.Hour

// tokenPrefix tells a token of this form from others.
const tokenPrefix = "mlgn1"

// Token makes the token that answers one pause, from 128 random bits. It names the session and the interrupt, so that
// it is all that an answer needs. It is shown once: the log keeps what HashToken makes of it.
func Token(session, interrupt string, random [16]byte) string {
	enc := base64.RawURLEncoding
	return strings.Join([]string{tokenPrefix, enc.EncodeToString([]byte(session)), enc.EncodeToString([]byte(interrupt)),
		enc.EncodeToString(random[:])}, ".")
}

// ParseToken is the session and the interrupt that a token is for. It says nothing about whether the token is right: the
// log does, when the answer is appended. The error never contains the token.
func ParseToken(token string) (session, interrupt string, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 4 || parts[0] != tokenPrefix {
		return "", "", refuse(ErrWrongToken, "this is no token of a pause")
	}
	var raw [3][]byte
	for i, p := range parts[1:] {
		b, bad := base64.RawURLEncoding.DecodeString(p)
		err = errors.Join(err, bad)
		raw[i] = b
	}
	if err != nil || CheckName(string(raw[0])) != nil || CheckName(string(raw[1])) != nil || len(raw[2]) != 16 {
		return "", "", refuse(ErrWrongToken, "this is no token of a pause: a part of it is missing or was changed")
	}
	return string(raw[0]), string(raw[1]), nil
}

// HashToken is what the log keeps of a token. Its 128 random bits make a plain hash enough.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func judgePause(h Head, e Event) *Refusal {
	var p Pause
	if r := payload(e, &p); r != nil {
		return r
	}
	if err := CheckName(p.Interrupt); err != nil {
		return refuse(ErrMalformed, "the interrupt id: %v", err)
	}
	if p.Extend {
		list := h.Gates
		if e.Kind == KindPark {
			list = h.Parks
		}
		if find(list, p.Interrupt) < 0 {
			return refuse(ErrNoSuchInterrupt, "no %s %s is open", e.Kind, p.Interrupt)
		}
		if p.Token == "" {
			return refuse(ErrMalformed, "an extension brings a new token")
		}
		return nil
	}
	if e.ID != PauseID(p.Interrupt) {
		return refuse(ErrMalformed, "the id of a pause is made by PauseID from its interrupt")
	}
	return nil
}

func judgeAnswer(h Head, e Event) *Refusal {
	var p Answer
	if r := payload(e, &p); r != nil {
		return r
	}
	if e.ID != AnswerID(p.Interrupt) {
		return refuse(ErrMalformed, "the id of an answer is made by AnswerID from its interrupt")
	}
	o, ok := h.Pause(p.Interrupt)
	switch {
	case !ok:
		return refuse(ErrNoSuchInterrupt, "no gate or park %s is open", p.Interrupt)
	case p.Token == "":
		return nil // by session and interrupt id
	case !sameHash(o.Token, p.Token):
		return refuse(ErrWrongToken, "the token is not that of %s: a later one may have taken its place", p.Interrupt).at(o.Seq)
	case !o.Expires.IsZero() && !e.At.Before(o.Expires):
		return refuse(ErrTokenExpired, "the token of %s was good until %s: it still waits, extend it for a new token",
			p.Interrupt, o.Expires).at(o.Seq)
	}
	return nil
}

func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
