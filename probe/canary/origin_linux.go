package canary

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// where an answer came from, as far as the kernel tells.
type origin int

const (
	unknown origin = iota
	proven         // from the candidate
	foreign        // from somebody else
)

// origin compares the sockets that listen on the port with the descriptors of the candidate's processes. All of them have
// to be the candidate's: with SO_REUSEPORT several processes can share a port, and any may have answered.
func (t *trial) origin() origin {
	listening := listeners(t.port)
	if len(listening) == 0 {
		return unknown
	}
	held := map[string]bool{}
	for _, pid := range t.members() {
		for _, target := range descriptors(pid) {
			held[target] = true
		}
	}
	ours := 0
	for _, inode := range listening {
		if held[socket(inode)] {
			t.sockets[socket(inode)] = true
			ours++
		}
	}
	switch ours {
	case len(listening):
		return proven
	case 0:
		return foreign
	}
	return unknown
}

// listeners are the inodes of the sockets that listen on a port, of both families.
func listeners(port int) (out []string) {
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		out = append(out, parseListeners(b, port)...)
	}
	return out
}

// parseListeners reads lines of "sl local remote state queues timer retransmits uid timeout inode".
func parseListeners(b []byte, port int) (out []string) {
	const listen = "0A"
	for line := range bytes.Lines(b) {
		f := strings.Fields(string(line))
		if len(f) < 10 || f[3] != listen {
			continue
		}
		i := strings.LastIndexByte(f[1], ':')
		n, err := strconv.ParseUint(f[1][i+1:], 16, 16)
		if err == nil && int(n) == port && f[9] != "0" {
			out = append(out, f[9])
		}
	}
	return out
}

// descriptors are what a process has open.
func descriptors(pid int) (out []string) {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			out = append(out, target)
		}
	}
	return out
}

// openLive is a live path that a process of the candidate's has open, empty for none.
func (t *trial) openLive() string {
	if len(t.live) == 0 {
		return ""
	}
	for _, pid := range t.members() {
		for _, target := range descriptors(pid) {
			for _, live := range t.live {
				if within(live, strings.TrimSuffix(target, " (deleted)")) {
					return target
				}
			}
		}
	}
	return ""
}

// within reports whether path is dir or lies below it. Both are absolute and resolved.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
