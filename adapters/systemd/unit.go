package systemd

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Manager is one of the two kinds of service manager.
type Manager string

// The managers.
const (
	System Manager = "system"
	User   Manager = "user"
)

// Unit is a unit of one manager.
type Unit struct {
	Name    string // "acme.service"; escapes are left as systemd writes them
	Manager Manager
	// UID is whose manager it is, of User.
	UID int
}

// Scope tells whether it is a scope: a group of processes that somebody else started. Nobody can restart one.
func (u Unit) Scope() bool { return strings.HasSuffix(u.Name, ".scope") }

func (u Unit) String() string {
	if u.Manager == User {
		return fmt.Sprintf("%s of user %d", u.Name, u.UID)
	}
	return u.Name
}

// ErrNoUnit means that a process runs in no unit of a manager that it could talk to.
var ErrNoUnit = errors.New("not in a unit")

// Self is the unit that this process runs in.
func Self() (Unit, error) { return OfProcess(os.Getpid()) }

// OfProcess is the unit that a process runs in. Errors match [ErrNoUnit].
func OfProcess(pid int) (Unit, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	if err != nil {
		return Unit{}, fmt.Errorf("find the unit of process %d: %w: %w", pid, ErrNoUnit, err)
	}
	u, err := ParseCgroup(string(b))
	if err != nil {
		return Unit{}, fmt.Errorf("find the unit of process %d: %w", pid, err)
	}
	return u, nil
}

// ParseCgroup finds the unit in the text of a process's cgroup file. A cgroup below a unit's own (a service may delegate
// its subtree) is that unit. Errors match [ErrNoUnit] and say what the process is in instead.
func ParseCgroup(text string) (Unit, error) {
	path, ok := cgroupPath(text)
	if !ok {
		return Unit{}, fmt.Errorf("%w: this system has no cgroup of systemd's", ErrNoUnit)
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "":
		return Unit{}, fmt.Errorf("%w: the process is at the root of what it can see, as in a container", ErrNoUnit)
	case parts[0] == "..":
		return Unit{}, fmt.Errorf("%w: the process's cgroup %s lies outside of what it can see", ErrNoUnit, path)
	}
	in := Unit{Manager: System}
	for i, part := range parts {
		name := unescape(part)
		uid, user := userManager(name)
		switch {
		case strings.HasSuffix(name, ".slice"):
			continue
		case user && in.Manager == System && i+1 < len(parts):
			in = Unit{Manager: User, UID: uid}
			continue
		case isContainer(name):
			return Unit{}, fmt.Errorf("%w: the process is in the container %s, whose host has the unit", ErrNoUnit, name)
		case name == "init.scope":
			return Unit{}, fmt.Errorf("%w: the process is in the manager's own scope", ErrNoUnit)
		case strings.HasSuffix(name, ".service"), strings.HasSuffix(name, ".scope"):
			in.Name = name
			return in, nil
		}
		break
	}
	return Unit{}, fmt.Errorf("%w: the cgroup %s is none of systemd's units", ErrNoUnit, path)
}

// cgroupPath is the process's place in the hierarchy that systemd manages.
func cgroupPath(text string) (path string, ok bool) {
	legacy, found := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		id, rest, _ := strings.Cut(line, ":")
		controllers, path, ok := strings.Cut(rest, ":")
		path = strings.TrimSuffix(path, " (deleted)")
		switch {
		case !ok:
		case id == "0" && controllers == "":
			return path, true
		case controllers == "name=systemd":
			legacy, found = path, true
		}
	}
	return legacy, found
}

// unescape takes away the underscore that systemd puts before a unit's name where it would look like a file of the
// kernel's.
func unescape(name string) string { return strings.TrimPrefix(name, "_") }

// userManager is the user whose manager the service is.
func userManager(name string) (uid int, ok bool) {
	id, found := strings.CutPrefix(strings.TrimSuffix(name, ".service"), "user@")
	if !found || !strings.HasSuffix(name, ".service") {
		return 0, false
	}
	uid, err := strconv.Atoi(id)
	return uid, err == nil
}

// isContainer knows the names that engines give to the cgroup of a container.
func isContainer(name string) bool {
	for _, engine := range [...]string{"docker-", "libpod-", "cri-containerd-", "crio-", "machine-"} {
		if strings.HasPrefix(name, engine) && strings.HasSuffix(name, ".scope") {
			return true
		}
	}
	return name == "docker" || name == "kubepods" || name == "lxc"
}
