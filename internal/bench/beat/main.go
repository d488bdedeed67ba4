// Beat is the program that the benchmarks relaunch, as small as a Go program can be: it writes down when its first
// instruction ran. Its first life waits for a file and then dies of a name that is gone; its second ends well.
package main

import (
	"bytes"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

func clock() string {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		os.Exit(3)
	}
	return strconv.FormatInt(ts.Nano(), 10)
}

// main takes the file to write to, the file to wait for, and what to say at the death.
func main() {
	born := clock()
	beat, wait, last := os.Args[1], os.Args[2], os.Args[3]
	f, err := os.OpenFile(beat, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		os.Exit(3)
	}
	if _, err := f.WriteString("born " + born + "\n"); err != nil {
		os.Exit(3)
	}
	if b, err := os.ReadFile(beat); err != nil || bytes.Count(b, []byte("born")) > 1 {
		os.Exit(0)
	}
	for {
		if _, err := os.Stat(wait); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := os.Stderr.WriteString(last); err != nil {
		os.Exit(3)
	}
	if _, err := f.WriteString("died " + clock() + "\n"); err != nil {
		os.Exit(3)
	}
	os.Exit(1)
}
