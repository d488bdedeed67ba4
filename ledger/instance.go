package ledger

// Instance is one living process of Mulligan.
type Instance struct {
	// ID is a random id. The process holds a kernel lock on instances/<ID> of its state folder for life.
	ID string `json:"id"`
	// Host tells machines apart where a store is shared; empty on a state folder.
	Host string `json:"host,omitempty"`
	// Boot and PIDNS say in which kernel boot and pid namespace PID and Start mean anything.
	Boot  string `json:"boot,omitempty"`
	PIDNS string `json:"pid_ns,omitempty"`
	PID   int    `json:"pid,omitempty"`
	// Start is the process's start time in clock ticks since boot (field 22 of /proc/PID/stat).
	Start uint64 `json:"start,omitempty"`
	// Unlocked is set for a process that holds no lock of its own (a program that was started held on a pipe): its
	// death is known from PID and Start alone.
	Unlocked bool `json:"unlocked,omitempty"`
}

// Same reports whether both are one process.
func (i Instance) Same(j Instance) bool { return i.ID != "" && i.ID == j.ID }

// Liveness is what is known of an instance.
type Liveness string

// The three answers. Only Dead allows anything to be taken from an instance before its lease is over.
const (
	Alive       Liveness = "alive"
	Dead        Liveness = "dead"
	LifeUnknown Liveness = "unknown"
)

// Instances tells whether processes of Mulligan live.
type Instances interface {
	// Self is this process.
	Self() Instance
	// Liveness proves an instance alive or dead, or says that it cannot.
	Liveness(i Instance) Liveness
}
