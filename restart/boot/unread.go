package boot

import (
	"context"
	"slices"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// unread is a session that could not be read at the boot after a stop, with the marker of the instance that stopped: once
// it can be read, in this boot or a later one, that tells whether the stop cut it off.
type unread struct {
	Session string            `json:"session"`
	Marker  bootnotice.Marker `json:"marker"`
	// Corrupt is the marker's own field, which it does not write.
	Corrupt bool `json:"corrupt,omitempty"`
}

// at is the session as that stop left it.
func (u unread) at(st session.Status) bootnotice.Session {
	last := u.Marker
	last.Corrupt = u.Corrupt
	last.Active, last.Last = nil, bootnotice.Activity{} // the others are not asked about
	return bootnotice.Sessions(&last, []session.Status{st})[0]
}

// recall are the sessions at the stop, those among them that could not be read before judged by the stop that they missed,
// and which cannot be read now.
func recall(last *bootnotice.Marker, stored []session.Status, lost []string, before []unread) (out []bootnotice.Session, still []unread) {
	late := map[string]unread{}
	for _, u := range before {
		late[u.Session] = u
	}
	out = bootnotice.Sessions(last, stored)
	for _, st := range stored {
		if u, ok := late[st.Head.Session]; ok {
			out = merge(out, u.at(st))
		}
	}
	for _, name := range lost {
		u, ok := late[name]
		if !ok {
			u = unread{Session: name, Marker: *last, Corrupt: last.Corrupt}
		}
		still = append(still, u)
	}
	return out, still
}

// merge adds what is known of a session.
func merge(list []bootnotice.Session, s bootnotice.Session) []bootnotice.Session {
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(o bootnotice.Session) bool { return o.Name == s.Name })
	if i < 0 {
		return append(list, s)
	}
	list[i].MidTurn = list[i].MidTurn || s.MidTurn
	if s.Active.After(list[i].Active) {
		list[i].Active = s.Active
	}
	return list
}

// found notes that a session can be read. Nothing could be appended to it meanwhile, so it is as the stop left it.
func (k *Keeper) found(st session.Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := slices.IndexFunc(k.unread, func(u unread) bool { return u.Session == st.Head.Session })
	if i < 0 {
		return
	}
	k.input.Sessions = merge(k.input.Sessions, k.unread[i].at(st))
	k.unread = slices.Delete(slices.Clone(k.unread), i, i+1)
}

// look looks again at the sessions that could not be read.
func (k *Keeper) look(ctx context.Context) {
	k.mu.Lock()
	missing := k.unread
	k.mu.Unlock()
	for _, u := range missing {
		if st, err := k.c.Sessions.Status(ctx, u.Session); err == nil {
			k.found(st)
		}
	}
}

// decide writes down who has to be told, as far as is known by now.
func (k *Keeper) decide(c *contents, present []string, over bool) {
	k.mu.Lock()
	in, missing := k.input, k.unread
	k.mu.Unlock()
	in.Present, in.Over = present, over
	add(c, bootnotice.Decide(in), k.c.Now())
	if k.boot.Kind.Restart() {
		c.Unread = missing
	}
}

// recalled is decide for a turn that takes a session up which could not be read before: its notice has to be there when
// the turn asks for it.
func (k *Keeper) recalled(c *contents) {
	k.mu.Lock()
	more := len(c.Unread) != len(k.unread)
	k.mu.Unlock()
	if more && k.boot.Kind.Restart() {
		k.decide(c, k.there(), false)
	}
}
