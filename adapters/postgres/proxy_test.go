package postgres

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/session"
)

// proxy stands between a store and its server. Once a client has said the word, it passes on what the client says, and of
// what the server answers nothing: it holds it back, or cuts the connection when the answer comes.
type proxy struct {
	to   string
	word []byte
	cut  bool

	mu     sync.Mutex
	l      net.Listener
	conns  []net.Conn
	closed bool
	wg     sync.WaitGroup
}

// between puts a proxy in front of a config's server.
func between(t *testing.T, c *Config, word string, cut bool) *proxy {
	t.Helper()
	u, err := url.Parse(c.DSN)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: u.Host, word: []byte(word), cut: cut}
	if p.l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	u.Host = p.l.Addr().String()
	c.DSN = u.String()
	p.wg.Go(func() {
		for {
			client, err := p.l.Accept()
			if err != nil {
				return
			}
			p.wg.Go(func() { p.serve(client) })
		}
	})
	t.Cleanup(p.close)
	return p
}

func (p *proxy) close() {
	p.l.Close()
	p.mu.Lock()
	p.closed = true
	for _, c := range p.conns {
		c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.to)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	if p.closed { // accepted before, and dialed beside it
		client.Close()
		server.Close()
	}
	p.mu.Unlock()
	said := make(chan struct{})
	p.wg.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			select {
			case <-said:
				if p.cut && n > 0 {
					return
				}
			default:
				if _, errWrite := client.Write(buf[:n]); errWrite != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	defer server.Close()
	buf := make([]byte, 64<<10)
	for done := false; ; {
		n, err := client.Read(buf)
		if !done && bytes.Contains(buf[:n], p.word) {
			done = true
			close(said)
		}
		if _, errWrite := server.Write(buf[:n]); err != nil || errWrite != nil {
			return
		}
	}
}

// The event is in the log, and the answer that says so is lost with the connection, or does not come before the context or
// the Timeout ends. Asked again, the store knows.
func TestAnswerIsLost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what    string
		cut     bool
		timeout time.Duration
		want    error
	}{
		{what: "with the connection", cut: true},
		{what: "and the context ends", want: context.Canceled},
		{what: "and time is over", timeout: 20 * time.Second, want: context.DeadlineExceeded},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			config := fresh(t)
			direct := mustOpen(t, config).Sessions()
			config.Timeout = c.timeout
			between(t, &config, "the word", c.cut)
			db := mustOpen(t, config)
			s := db.Sessions()
			if _, err := s.Append(t.Context(), "s", []session.Draft{say("before")}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan error, 1)
			go func() {
				_, err := s.Append(ctx, "s", []session.Draft{say("the word")})
				done <- err
			}()
			until(t, "the event is written", func() bool {
				_, ok, err := direct.Find(t.Context(), "s", "the word")
				return ok && err == nil
			})
			switch {
			case errors.Is(c.want, context.Canceled):
				cancel()
			case c.timeout > 0:
				overdue(t, db)
			}
			err := <-done
			if !errors.Is(err, session.ErrOutcomeUnknown) || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("the answer is lost %s: %v", c.what, err)
			}
			r, err := direct.Append(t.Context(), "s", []session.Draft{say("the word")})
			if err != nil || !r.Outcomes[0].Repeated || r.Outcomes[0].Seq != 2 {
				t.Errorf("asked again: %+v, %v", r.Outcomes, err)
			}
			wants(t, direct, "s", []string{"before", "the word"})
		})
	}
}

// Without a server nothing is written, and the store says that it is sure; it goes on when there is one.
func TestNoServer(t *testing.T) {
	t.Parallel()
	c := fresh(t)
	direct := mustOpen(t, c).Sessions()
	p := between(t, &c, "never", false)
	s := mustOpen(t, c).Sessions()
	p.close()
	// The first may have found a connection that looked well.
	var err error
	until(t, "the store has seen that the server is gone", func() bool {
		_, err = s.Append(t.Context(), "s", []session.Draft{say("a")})
		return err != nil && !errors.Is(err, session.ErrOutcomeUnknown)
	})
	if !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("without a server: %v", err)
	}
	if h, err := direct.Head(t.Context(), "s"); err != nil || h.Last != 0 {
		t.Errorf("%d events, %v", h.Last, err)
	}
}
