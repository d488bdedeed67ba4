package boot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/internal/faultfs"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/notify/bootnotice"
)

// chain is a random history of boots over one disk in memory, and all that was seen of it.
type chain struct {
	t    *rapid.T
	disk *faultfs.Disk
	now  stamp.Time
	boot int // kernel boots
	n    int // instances
	// requests counts those that were made.
	requests int
	// dead is set at the operation at which the running instance is killed or the power goes; after holds what is left.
	dead  bool
	after *faultfs.Disk
	fail  bool // what the host says to a delivery, and
	seen  bool

	k    *Keeper
	self ledger.Instance
	// What the last instance that left a marker was at, as far as it was told so: it is what the next has to tell of.
	last string
	busy map[string]func() error
	asks []bootnotice.Request // durable requests
	// owed are notices that have to be there, by id, until they are over; only are the sessions that may be told of a stop
	// that was asked for.
	owed map[string]string
	only map[string][]string

	deliveries map[string][]string // by notice, the instances that delivered it
	told       map[string]int      // by instance and session, the messages
	acked      map[string]bool
	gaveUp     map[string]bool
}

var chainSessions = []string{"a", "b", "c"}

// Deliver implements Deliverer.
func (c *chain) Deliver(_ context.Context, d bootnotice.Delivery) (bool, error) {
	if c.dead {
		return false, errors.New("nobody is there")
	}
	// What is on the disk now is all that the next instance would know of this delivery.
	var out contents
	dir, err := c.disk.Boot(faultfs.Survival{}).Open("/boot")
	if err != nil {
		c.t.Fatal(err)
	}
	if err := load(dir, outboxName, &out); err != nil {
		c.t.Fatalf("the outbox during a delivery: %v", err)
	}
	at := c.self.ID + " " + d.Session
	if c.told[at]++; c.told[at] > 1 {
		c.t.Fatalf("session %s got %d messages from instance %s", d.Session, c.told[at], c.self.ID)
	}
	for _, id := range d.Notices {
		if c.acked[id] {
			c.t.Fatalf("%s was delivered after it was acknowledged", id)
		}
		if c.gaveUp[id] {
			c.t.Fatalf("%s was delivered after it was given up", id)
		}
		i := slices.IndexFunc(out.Notices, func(n bootnotice.Notice) bool { return n.ID == id })
		if i < 0 || !out.Notices[i].Tried(c.self.ID) {
			c.t.Fatalf("%s is delivered, and the attempt is not durable", id)
		}
		if age := c.now.Sub(out.Notices[i].Made); age > 24*time.Hour {
			c.t.Fatalf("%s was delivered at the age of %v", id, age)
		}
		c.deliveries[id] = append(c.deliveries[id], c.self.ID)
		if len(c.deliveries[id]) > 3 {
			c.t.Fatalf("%s was delivered in the boots %v", id, c.deliveries[id])
		}
	}
	if c.seen && !c.fail {
		for _, id := range d.Notices {
			c.acked[id] = true // nothing else stands between; a kill before it is durable is told apart below
		}
	}
	if c.fail {
		return false, errors.New("not now")
	}
	return c.seen, nil
}

// Undeliverable implements Deliverer.
func (c *chain) Undeliverable(_ context.Context, n bootnotice.Notice) error {
	if c.dead {
		return errors.New("nobody is there")
	}
	if c.gaveUp[n.ID] {
		c.t.Fatalf("it is told twice that %s is undeliverable", n.ID)
	}
	if c.acked[n.ID] {
		c.t.Fatalf("%s was acknowledged, and is undeliverable", n.ID)
	}
	c.gaveUp[n.ID] = true
	return nil
}

func (c *chain) must(err error) {
	if err != nil {
		c.t.Fatal(err)
	}
}

// up starts the next instance, which is killed before its n-th operation; 0 lets it live.
func (c *chain) up(kill int, cut *faultfs.Survival) {
	c.n++
	c.self = ledger.Instance{ID: fmt.Sprint("i", c.n), Boot: fmt.Sprint("k", c.boot), PIDNS: "ns1", PID: 1, Start: uint64(c.n)}
	c.dead, c.after = false, nil
	disk := c.disk
	hook := func(op faultfs.Op) error {
		if op.Kind != faultfs.Look && op.N == kill && !c.dead {
			c.dead = true
			if c.after = disk.Kill(); cut != nil {
				c.after = disk.Boot(*cut)
			}
		}
		if c.dead {
			return faultfs.ErrPowerCut
		}
		return nil
	}
	k, err := New(context.Background(), Config{Dir: "/boot", Instance: c.self, Deliver: c, Startup: chainSessions, Notice: noWait,
		Beat: time.Hour, Now: func() stamp.Time { return c.now }, fs: faultfs.Tap(disk, hook)})
	if err != nil && !c.dead {
		c.t.Fatal(err)
	}
	if c.k = k; c.dead {
		c.down(cut)
		var m bootnotice.Marker
		dir, err := c.disk.Open("/boot")
		c.must(err)
		if err := load(dir, markerName, &m); err != nil && !durable.Absent(err) {
			c.t.Fatal(err)
		}
		if m.Instance.ID != c.self.ID {
			return // the next one finds the marker of the one before
		}
	}
	c.succeeds()
}

// succeeds is what holds from the moment at which the instance's marker stands in the place of the last one.
func (c *chain) succeeds() {
	if c.last != "" {
		var want []string
		for _, r := range c.asks {
			if c.now.Sub(r.At) <= bootnotice.Expiry {
				want = append(want, r.Session)
			}
		}
		if len(want) > 0 {
			c.only[c.last] = want
		} else {
			want = slices.Collect(maps.Keys(c.busy))
		}
		for _, s := range want {
			c.owed[bootnotice.NoticeID(c.last, s)] = s
		}
	}
	c.last, c.busy, c.asks = c.self.ID, map[string]func() error{}, nil
}

// down is the end of the instance that was killed. The goroutines of a process that is gone are gone.
func (c *chain) down(cut *faultfs.Survival) {
	if c.after == nil {
		if c.after = c.disk.Kill(); cut != nil {
			c.after = c.disk.Boot(*cut)
		}
	}
	c.dead = true
	if c.k != nil {
		_ = c.k.Close() // on a disk that nobody sees again
	}
	if cut != nil {
		c.boot++
	}
	c.settle()
	c.k, c.disk = nil, c.after
}

// run delivers, and when the instance lived through it nothing that is owed may be left out.
func (c *chain) run(cut *faultfs.Survival) {
	err := c.k.Run(context.Background())
	if c.dead {
		c.settle()
		// An acknowledgement by delivery may not have become durable.
		for id := range c.acked {
			if list := c.listed(c.after)[id]; list.State == bootnotice.Pending {
				delete(c.acked, id)
			}
		}
		for id := range c.gaveUp {
			if list := c.listed(c.after)[id]; list.State == bootnotice.Undeliverable && !list.Told {
				delete(c.gaveUp, id)
			}
		}
		c.down(cut)
		return
	}
	c.must(err)
	all := c.listed(c.disk)
	for id, n := range all {
		if only, asked := c.only[n.Boot.ID]; asked && !slices.Contains(only, n.Session) {
			c.t.Fatalf("the restart after %s was asked for by %v, and %s is told of it", n.Boot.ID, only, n.Session)
		}
		switch n.State {
		case bootnotice.Pending:
			if !n.Tried(c.self.ID) || c.told[c.self.ID+" "+n.Session] != 1 {
				c.t.Fatalf("%s of session %s was passed over by instance %s", id, n.Session, c.self.ID)
			}
		case bootnotice.Acknowledged:
			if !c.acked[id] {
				c.t.Fatalf("nobody acknowledged %s", id)
			}
		case bootnotice.Undeliverable:
			if age := c.now.Sub(n.Made); age <= bootnotice.Expiry && len(n.Attempts) < bootnotice.Boots || !c.gaveUp[id] {
				c.t.Fatalf("%s was given up at the age of %v after %d attempts, told %v", id, age, len(n.Attempts), c.gaveUp[id])
			}
		default:
			c.t.Fatalf("%s is %s (%s)", id, n.State, n.By)
		}
	}
	for id, s := range c.owed {
		if _, ok := all[id]; !ok {
			c.t.Fatalf("the notice %s of session %s is lost", id, s)
		}
		if st := all[id].State; st != bootnotice.Pending {
			delete(c.owed, id) // it is over, and may be forgotten one day
		}
	}
}

// listed are the notices on a disk.
func (c *chain) listed(d *faultfs.Disk) map[string]bootnotice.Notice {
	dir, err := d.Open("/boot")
	c.must(err)
	var out contents
	if err := load(dir, outboxName, &out); err != nil && !durable.Absent(err) {
		c.t.Fatal(err)
	}
	all := map[string]bootnotice.Notice{}
	for _, n := range out.Notices {
		all[n.ID] = n
	}
	return all
}

// history draws one chain of boots and follows it.
func history(t *rapid.T) {
	c := &chain{t: t, disk: &faultfs.Disk{}, busy: map[string]func() error{}, owed: map[string]string{}, only: map[string][]string{},
		deliveries: map[string][]string{}, told: map[string]int{}, acked: map[string]bool{}, gaveUp: map[string]bool{},
		now: stamp.Time{Wall: time.Date(2026, 3, 4, 10, 0, 0, 0, time.UTC)}}
	defer func() {
		if c.k != nil {
			_ = c.k.Close()
		}
	}()
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		if pass := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 30, 600, 7200, 43200}).Draw(t, "seconds")) * time.Second; pass > 0 {
			c.now = c.now.Add(pass)
		}
		var cut *faultfs.Survival
		if rapid.IntRange(0, 3).Draw(t, "power") == 0 {
			cut = &faultfs.Survival{Seed: rapid.Uint64Range(1, 1<<20).Draw(t, "survival")}
		}
		c.now.Boot = fmt.Sprint("k", c.boot)
		if c.k == nil {
			kill := 0
			if rapid.IntRange(0, 2).Draw(t, "kill") == 0 {
				kill = rapid.IntRange(1, 25).Draw(t, "at")
			}
			c.up(kill, cut)
			continue
		}
		session := rapid.SampledFrom(chainSessions).Draw(t, "session")
		switch rapid.SampledFrom([]string{"busy", "idle", "ask", "withdraw", "run", "run", "run", "take", "ack", "stop", "kill", "restart", "restart", "restart"}).Draw(t, "do") {
		case "busy":
			if c.busy[session] == nil {
				idle, err := c.k.Busy(session)
				if c.dead {
					c.down(cut)
					continue
				}
				c.must(err)
				c.busy[session] = idle
			}
		case "idle":
			if idle := c.busy[session]; idle != nil {
				err := idle()
				delete(c.busy, session) // whether or not it is durable: nothing is owed to it any more
				if c.dead {
					c.down(cut)
					continue
				}
				c.must(err)
			}
		case "ask":
			c.requests++
			r := bootnotice.Request{ID: fmt.Sprint("r", c.requests), Session: session, Reason: "x", At: c.now}
			err := c.k.Outbox().Request(context.Background(), r)
			if c.dead {
				// Nobody knows whether it is durable, so nothing is owed but to those who asked before.
				c.asksAfter()
				c.down(cut)
				continue
			}
			c.must(err)
			c.asks = append(c.asks, r)
		case "withdraw":
			if len(c.asks) > 0 {
				err := c.k.Outbox().Withdraw(context.Background(), c.asks[0].ID)
				if c.dead {
					c.asksAfter()
					c.down(cut)
					continue
				}
				c.must(err)
				c.asks = c.asks[1:]
			}
		case "run":
			c.fail, c.seen = rapid.Bool().Draw(t, "fails"), rapid.IntRange(0, 3).Draw(t, "seen") == 0
			c.run(cut)
		case "take": // the turn that resumes the session takes its notice along
			d, ok, err := c.k.Take(context.Background(), session)
			if c.dead {
				c.down(cut)
				continue
			}
			c.must(err)
			if ok {
				c.fail, c.seen = false, false
				_, err = c.Deliver(context.Background(), d)
				c.must(err)
			}
		case "ack":
			for id := range c.listed(c.disk) {
				if len(c.deliveries[id]) == 0 {
					continue
				}
				err := c.k.Ack(context.Background(), id, "ada")
				for other, n := range c.listed(c.disk) {
					if n.State == bootnotice.Acknowledged {
						c.acked[other] = true
					}
				}
				if c.dead {
					c.settle()
					for id := range c.acked {
						if c.listed(c.after)[id].State == bootnotice.Pending {
							delete(c.acked, id)
						}
					}
					c.down(cut)
					break
				}
				c.must(err)
				break
			}
		case "stop":
			c.must(c.stopped())
		case "kill":
			c.down(cut)
		case "restart": // what happens most
			c.down(cut)
			c.now.Boot = fmt.Sprint("k", c.boot)
			c.up(0, nil)
			c.fail, c.seen = rapid.Bool().Draw(t, "fails"), false
			c.run(nil)
		}
	}
}

// settle makes durable what the killed instance has left: what was in the middle of being written has a known end then.
func (c *chain) settle() { c.after = c.after.Boot(faultfs.Survival{All: true}) }

// asksAfter reads which requests outlive the end of the instance.
func (c *chain) asksAfter() {
	c.settle()
	dir, err := c.after.Open("/boot")
	c.must(err)
	var out contents
	if err := load(dir, outboxName, &out); err != nil && !durable.Absent(err) {
		c.t.Fatal(err)
	}
	c.asks = out.Requests
}

func (c *chain) stopped() error {
	err := c.k.Close()
	c.k = nil
	if c.dead {
		c.disk, err = c.after, nil
	}
	return err
}

// TestNoticesFold follows random histories of boots, deliveries, acknowledgements, requests that are taken back, kills and
// power cuts at any operation: a session gets at most one message in a boot, a notice is delivered in three boots at most
// and within a day, never lost before it is acknowledged or given up, never delivered afterwards, and a restart that was
// asked for is told to those who asked alone.
func TestNoticesFold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, history)
}

func FuzzNoticesFold(f *testing.F) { f.Fuzz(rapid.MakeFuzz(history)) }
