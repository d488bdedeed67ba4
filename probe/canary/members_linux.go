package canary

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// running is a process as /proc shows it.
type running struct {
	parent, group int
	start         uint64 // with the pid it names one process for good
}

// processes are all that run, zombies left out.
func processes() map[int]running {
	out := map[int]running{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if r, ok := look(pid); ok {
			out[pid] = r
		}
	}
	return out
}

func look(pid int) (r running, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return r, false
	}
	// pid (command) state parent group, and the start time as the 22nd
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 20 || f[0][0] == 'Z' || f[0][0] == 'X' {
		return r, false
	}
	r.parent, _ = strconv.Atoi(string(f[1]))
	r.group, _ = strconv.Atoi(string(f[2]))
	r.start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return r, err == nil
}

// members are the candidate's processes, whatever group and session they are in by now: its group, all that carry its id
// in their environment, what was one of them before, and what these started. The environment alone does not do: a
// program that sets its title writes over it, and one that starts a daemon may clear it.
func (t *trial) members() (out []int) {
	all := processes()
	in := map[int]bool{}
	for pid, p := range all {
		start, known := t.known[pid]
		in[pid] = known && start == p.start || t.root != 0 && (pid == t.root || p.group == t.root) || t.marked(pid)
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range all {
			if !in[pid] && in[p.parent] {
				in[pid], grown = true, true
			}
		}
	}
	for pid, p := range all {
		if in[pid] {
			t.known[pid] = p.start
			out = append(out, pid)
		}
	}
	return out
}

// marked reports whether a process carries the candidate's id.
func (t *trial) marked(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // another user's, or gone
	}
	mark := []byte(inside.Var + "=" + t.id)
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if bytes.Equal(kv, mark) {
			return true
		}
	}
	return false
}

// strays are the members that are left when the group has been ended, and whoever holds a socket of theirs: that is
// handed down by fork alone, short of a process which was there before the candidate, and such a one is left in peace.
func (t *trial) strays() map[int]uint64 {
	out := map[int]uint64{}
	for _, pid := range t.members() {
		out[pid] = t.known[pid]
	}
	if len(t.sockets) == 0 || t.since == 0 {
		return out
	}
	for pid, p := range processes() {
		if _, is := out[pid]; is || p.start < t.since {
			continue
		}
		for _, target := range descriptors(pid) {
			if t.sockets[target] {
				out[pid] = p.start
				break
			}
		}
	}
	return out
}

// began notes the candidate's first process.
func (t *trial) began(pid int) {
	t.root = pid
	if p, ok := look(pid); ok {
		t.since, t.known[pid] = p.start, p.start
	}
}

// inherited notes the socket that is handed to the candidate.
func (t *trial) inherited(f *os.File) error {
	in, err := f.Stat()
	if err != nil {
		return err
	}
	if st, ok := in.Sys().(*syscall.Stat_t); ok {
		t.sockets[socket(strconv.FormatUint(st.Ino, 10))] = true
	}
	return nil
}

// socket is what a descriptor of a socket shows.
func socket(inode string) string { return "socket:[" + inode + "]" }

// kill kills one process, unless its number has changed hands.
func kill(pid int, start uint64) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if p, ok := look(pid); ok && p.start == start {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}
