package config

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/mulligan-dev/mulligan/ledger/session"
	"github.com/mulligan-dev/mulligan/restart/resume"
)

// SessionsBlock is the name of the block about sessions. It is a block of its own, because a host may keep sessions
// without a healer, and a healer without sessions.
const SessionsBlock = "sessions"

// Driver says what keeps the logs of sessions.
type Driver string

// The drivers.
const (
	DriverSQLite   Driver = "sqlite"   // one database file; any process on the machine may write
	DriverLog      Driver = "log"      // one log file; its host writes, others read
	DriverPostgres Driver = "postgres" // a server; processes on several machines may write
)

// Drivers are all drivers, the default first.
func Drivers() []Driver { return []Driver{DriverSQLite, DriverLog, DriverPostgres} }

// Sessions is what the block about sessions says, with the defaults filled in.
type Sessions struct {
	// Driver says what keeps the logs (driver).
	Driver Driver
	// DSN says where (dsn): the file of sqlite and log, absolute, or the address of a Postgres server. Empty is the file
	// sessions.db or sessions.log in the state folder.
	DSN string
	// AutoResume lets a host take up interrupted sessions by itself (auto_resume).
	AutoResume bool
	// Window is how long after its owner's last proof of life a session is still taken up (auto_resume_window).
	Window time.Duration
	// Attempts is how many attempts without a completed turn mean quarantine (attempts).
	Attempts int
	// PerBoot bounds the sessions that one instance takes up (per_boot).
	PerBoot int
}

// DefaultSessions is the block without a line in it.
func DefaultSessions() Sessions {
	return Sessions{Driver: DriverSQLite, AutoResume: true, Window: resume.DefaultWindow, Attempts: session.DefaultAttempts, PerBoot: resume.DefaultPerBoot}
}

// Limits are the bounds as auto-resume takes them. Whether it runs at all is AutoResume, which the host looks at.
func (s Sessions) Limits() resume.Limits {
	return resume.Limits{Window: s.Window, Attempts: s.Attempts, PerBoot: s.PerBoot}
}

func sessionKeys() []string {
	return []string{"driver", "dsn", "auto_resume", "auto_resume_window", "attempts", "per_boot"}
}

// slippedSessionKeys are those that no other program's file has at its top by chance.
func slippedSessionKeys() []string { return []string{"auto_resume", "auto_resume_window"} }

// sessions reads the block into c, and says which keys it has.
func (p *parser) sessions(c *Sessions, n *yaml.Node) map[string]bool {
	present := map[string]bool{}
	pairs, ok := p.mapping(n, SessionsBlock)
	if !ok {
		return present
	}
	var dsn string
	var dsnLine int
	for _, kv := range pairs {
		present[kv.key] = true
		key := SessionsBlock + "." + kv.key
		switch kv.key {
		case "driver":
			driver := string(c.Driver)
			p.choice(&driver, kv.value, key, driverNames())
			c.Driver = Driver(driver)
		case "dsn":
			p.text(&dsn, kv.value, key)
			dsnLine = kv.value.Line
		case "auto_resume":
			p.boolean(&c.AutoResume, kv.value, key)
		case "auto_resume_window":
			p.span(&c.Window, kv.value, key)
		case "attempts":
			p.count(&c.Attempts, kv.value, key)
		case "per_boot":
			p.count(&c.PerBoot, kv.value, key)
		default:
			p.problem(kv.line, key, "no such key, want one of %s", strings.Join(sessionKeys(), ", "))
		}
	}
	// The driver says how a dsn is read, and may stand below it.
	switch {
	case c.Driver == DriverPostgres && !present["dsn"]:
		p.problem(n.Line, SessionsBlock+".dsn", "missing, want the address of the server: postgres://user@host/database")
	case c.Driver == DriverPostgres && dsn != "" && !postgresURL(dsn):
		// What was written is not repeated: it may hold a password.
		p.problem(dsnLine, SessionsBlock+".dsn", "this is no address of a Postgres server, want postgres://user@host/database")
	case c.Driver == DriverPostgres:
		c.DSN = dsn
	case strings.Contains(dsn, "://"):
		p.problem(dsnLine, SessionsBlock+".dsn", "this is an address, and driver %s wants a file: set driver: postgres", c.Driver)
	case dsn != "":
		c.DSN = p.resolved(dsn, dsnLine, SessionsBlock+".dsn", p.future)
	}
	return present
}

func driverNames() (out []string) {
	for _, d := range Drivers() {
		out = append(out, string(d))
	}
	return out
}

func postgresURL(dsn string) bool {
	u, err := url.Parse(dsn)
	return err == nil && slices.Contains([]string{"postgres", "postgresql"}, u.Scheme)
}

// span wants a time span above zero. A bare number would leave its unit to the reader.
func (p *parser) span(out *time.Duration, n *yaml.Node, key string) {
	const least, most = time.Second, 365 * 24 * time.Hour
	v := deref(n)
	if v.Kind == yaml.ScalarNode && v.ShortTag() == "!!str" {
		if d, err := time.ParseDuration(v.Value); err == nil && d >= least && d <= most {
			*out = d
			return
		}
	}
	p.problem(n.Line, key, "%s, want a time span with its unit like 90s, 30m or 1h, from 1s to %dh", describe(n), int(most.Hours()))
}
