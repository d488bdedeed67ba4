package drain

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
)

// Signals says what is done about the signals that ask a process to stop.
type Signals struct {
	// First is called with the first one: it begins the drain. Required.
	First func(os.Signal)
	// Again is called with the second: usually it ends the context of the drain. Required.
	Again func(os.Signal)
	// On are the signals; empty means SIGTERM and SIGINT. One that the process was started to ignore stays ignored.
	On []os.Signal
}

// Listener listens for signals.
type Listener struct {
	c    Signals
	in   chan os.Signal
	stop chan struct{}
	done chan struct{}
	once sync.Once
}

// Listen begins to listen. Each signal that it gets goes to one callback, in a goroutine of its own, and is not raised
// again. After the second the listener has let go: the next one does what it does without us, which is to end the process
// unless the host has a handler of its own. So a hang at stop is never one that our handler made.
//
// Handlers that the host has registered itself get every signal as well, by Go's own rule.
func Listen(c Signals) (*Listener, error) {
	var errs []error
	if c.First == nil {
		errs = append(errs, errors.New("First is missing"))
	}
	if c.Again == nil {
		errs = append(errs, errors.New("Again is missing: a second signal must not be swallowed"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("listen for signals: %w", err)
	}
	if len(c.On) == 0 {
		c.On = []os.Signal{syscall.SIGTERM, os.Interrupt}
	}
	c.On = slices.DeleteFunc(slices.Clone(c.On), signal.Ignored)
	l := &Listener{c: c, in: make(chan os.Signal, 16), stop: make(chan struct{}), done: make(chan struct{})}
	if len(c.On) > 0 { // none would mean all
		signal.Notify(l.in, c.On...)
	}
	go l.listen()
	return l, nil
}

// Close lets go of the signals, and returns when no callback will be started any more. It may be called in a callback.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.stop) })
	<-l.done
	return nil
}

func (l *Listener) listen() {
	defer close(l.done)
	told := 0
	tell := func(s os.Signal) {
		if told++; told == 1 {
			go l.c.First(s)
		} else {
			go l.c.Again(s)
		}
	}
	select {
	case s := <-l.in:
		tell(s)
		select {
		case s = <-l.in:
			signal.Stop(l.in) // first let go, then tell: who was told of the second may count on it
			tell(s)
		case <-l.stop:
		}
	case <-l.stop:
	}
	signal.Stop(l.in) // when it returns nothing comes any more, and what came between is still told
	for {
		select {
		case s := <-l.in:
			tell(s)
		default:
			return
		}
	}
}
