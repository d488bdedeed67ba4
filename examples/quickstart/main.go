// Quickstart shows Mulligan at work, in some seconds and on real parts: six Python agents run from a git checkout, an
// update removes a name underneath them, and a healer decides for each, by evidence, what becomes of it.
//
//	go run ./examples/quickstart [-dir DIR]
//
// It needs Go, git and python3. The folder stays for you to look at. It is also the example of embedding: wire.go is
// all that a host has to set up, cast.go how its agents are run, and this file how it updates its code.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

func main() {
	dir := flag.String("dir", "", "an empty or new `folder` to work in (default: a temporary one)")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := play(ctx, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		stop()
		os.Exit(1)
	}
}

func play(ctx context.Context, dir string) error {
	if err := need(); err != nil {
		return err
	}
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "mulligan-quickstart-"); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	w, err := newWorld(ctx, dir)
	if err != nil {
		return err
	}
	h, err := newHost(ctx, w)
	if err != nil {
		return err
	}
	defer h.close()

	say("Six agents start from the checkout in %s.", w.live)
	for _, name := range cast {
		if err := h.start(ctx, name); err != nil {
			return err
		}
	}
	for _, name := range cast {
		if err := h.until(ctx, name+" waits", func() bool { return w.has(name + "-waits-for-" + waitsFor(name)) }); err != nil {
			return err
		}
	}

	say("An update renames a class underneath them: mulligan's update API runs git pull.")
	if err := w.renameFrame(ctx); err != nil {
		return err
	}
	if err := h.update(ctx); err != nil {
		return err
	}
	if err := w.signal("update"); err != nil {
		return err
	}
	say("They go on, import what is no longer there, and die. The healer looks at each death.")
	err = h.until(ctx, "scout and herald to finish", func() bool {
		return w.has("scout-is-done") && w.has("herald-is-done") && w.has("warden-waits-for-second-update")
	})
	if err != nil {
		return err
	}

	say("A second update removes a module, while warden's restart is still at its start.")
	if err := w.dropNotes(ctx); err != nil {
		return err
	}
	if err := h.update(ctx); err != nil {
		return err
	}
	if err := w.signal("second-update"); err != nil {
		return err
	}
	if err := h.settled(ctx); err != nil {
		return err
	}
	return h.show(ctx)
}

// need says how to get what is missing.
func need() error {
	var errs []error
	for _, p := range []struct{ name, get string }{
		{"git", "install the package git (https://git-scm.com/downloads)"},
		{"python3", "install the package python3 (https://www.python.org/downloads/)"},
	} {
		if _, err := exec.LookPath(p.name); err != nil {
			errs = append(errs, fmt.Errorf("%s is not there: %s", p.name, p.get))
		}
	}
	return errors.Join(errs...)
}

func say(format string, args ...any) { fmt.Printf("· "+format+"\n", args...) }
