package process

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/probe"
	"golang.org/x/sys/unix"
)

// run sends the request, follows the report to its end and leaves nothing of the group behind.
func (s *session) run(ctx context.Context, plan probe.Plan, deadline time.Time) probe.Result {
	s.until(deadline)
	stop := context.AfterFunc(ctx, func() { s.until(time.Unix(1, 0)) })
	// A process that a module left behind may hold the pipes open: the interpreter's own end counts.
	watched := make(chan struct{})
	finished := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.exited:
			s.until(time.Unix(1, 0))
		case <-finished:
		}
	}()

	rep := report{nonce: s.nonce, names: plan.Modules}
	s.follow(&rep, plan)
	close(finished)
	<-watched
	stop()
	if !rep.done && !rep.broken {
		s.settle(ctx, &rep, deadline)
	}
	timedOut := !s.ended()

	// The leader is not reaped yet, so its group is still its own.
	_ = s.child.signalGroup(unix.SIGKILL)
	defer s.request.Close()
	defer s.report.Close()
	defer s.output.Close()
	if !s.endsWithin(killWait) {
		// It hangs in the kernel, on a dead file server for example. A timeout holds all the same.
		go func() {
			<-s.exited
			s.child.reap()
		}()
		return probe.Result{Outcome: probe.Unknown, Failed: rep.module(),
			Detail: "the interpreter cannot be ended: it hangs in a system call"}
	}
	exit := s.child.reap()
	_ = s.output.SetReadDeadline(time.Unix(1, 0))
	s.read.Wait()
	s.said.drain(s.output)
	return rep.result(exit, timedOut, ctx, s.said.String())
}

// until bounds everything that is said between the two.
func (s *session) until(t time.Time) {
	_ = s.request.SetDeadline(t)
	_ = s.report.SetDeadline(t)
}

// follow sends the request and reads the report until it is done, or broken off.
func (s *session) follow(rep *report, plan probe.Plan) {
	fields := append([]string{s.nonce, strconv.Itoa(len(plan.Path))}, plan.Path...)
	fields = append(fields, plan.Modules...)
	if _, err := s.request.WriteString(strings.Join(fields, "\x00")); err != nil {
		return // it ended before it listened
	}
	s.request.Close() // the end of the request
	buf := make([]byte, 4096)
	for !rep.done && !rep.broken {
		n, err := s.report.Read(buf)
		rep.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// settle waits for the interpreter after its report broke off, and takes what the pipe still holds.
func (s *session) settle(ctx context.Context, rep *report, deadline time.Time) {
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-s.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
	drainFile(s.report, 1<<20, rep.add)
}

func (s *session) endsWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-s.exited:
		return true
	case <-timer.C:
		return false
	}
}

func (s *session) ended() bool {
	select {
	case <-s.exited:
		return true
	default:
		return false
	}
}
