package systemd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"
)

// BusError means that no manager could be reached. Nothing is started then: a plain child would die with its launcher.
type BusError struct {
	Manager Manager
	// Tried are the addresses, Errs why each did not work.
	Tried []string
	Errs  []error
}

func (e *BusError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "no way to the %s manager of systemd", e.Manager)
	for i, address := range e.Tried {
		fmt.Fprintf(&b, "; %s: %v", address, e.Errs[i])
	}
	if e.Manager == User {
		fmt.Fprintf(&b, ". A user's manager runs while the user is logged in, or always after: loginctl enable-linger %d", os.Getuid())
	}
	return b.String()
}

func (e *BusError) Unwrap() []error { return e.Errs }

// Conn is a connection to one manager. It is safe for concurrent use.
type Conn struct {
	manager Manager
	bus     *dbus.Conn
	address string // the way by which it was reached
}

// Connect reaches a manager: over the bus that the environment names, the bus at its usual place, or the manager's private
// socket. A bus without the manager on it, as a desktop or dbus-run-session may have one, is passed over. The connection
// ends with ctx, so a timeout of a single question does not belong there. The error is a [*BusError].
func Connect(ctx context.Context, m Manager) (*Conn, error) {
	if m != System && m != User {
		return nil, fmt.Errorf("connect to systemd: manager %q: it is %q or %q", m, System, User)
	}
	return reach(ctx, m, ways(m, os.Getuid(), os.Getenv))
}

func reach(ctx context.Context, m Manager, by []way) (*Conn, error) {
	failed := &BusError{Manager: m}
	for _, way := range by {
		bus, err := way.dial(ctx)
		if err == nil {
			return &Conn{manager: m, bus: bus, address: way.address}, nil
		}
		failed.Tried, failed.Errs = append(failed.Tried, way.address), append(failed.Errs, err)
	}
	return nil, failed
}

// Manager is the manager at the other end.
func (c *Conn) Manager() Manager { return c.manager }

// Connected tells whether the manager is still at the other end.
func (c *Conn) Connected() bool { return c.bus != nil && c.bus.Connected() }

// Close releases the connection.
func (c *Conn) Close() error {
	c.bus.Close()
	return nil
}

// way is an address, and whether a bus or the manager itself listens there.
type way struct {
	address string
	private bool
}

// ways are the addresses in the order in which they are tried.
func ways(m Manager, uid int, env func(string) string) []way {
	run := "/run/user/" + strconv.Itoa(uid)
	if dir := env("XDG_RUNTIME_DIR"); dir != "" {
		run = dir
	}
	known := []way{{address: "unix:path=/run/dbus/system_bus_socket"}, {address: "unix:path=/run/systemd/private", private: true}}
	variable := "DBUS_SYSTEM_BUS_ADDRESS"
	if m == User {
		known = []way{{address: "unix:path=" + run + "/bus"}, {address: "unix:path=" + run + "/systemd/private", private: true}}
		variable = "DBUS_SESSION_BUS_ADDRESS"
	}
	if address := env(variable); address != "" && address != known[0].address {
		return append([]way{{address: address}}, known...)
	}
	return known
}

func (w way) dial(ctx context.Context) (*dbus.Conn, error) {
	return dbus.NewConnection(func() (*godbus.Conn, error) {
		c, err := godbus.Dial(w.address, godbus.WithContext(ctx))
		if err != nil {
			return nil, err
		}
		err = c.Auth([]godbus.Auth{godbus.AuthExternal(strconv.Itoa(os.Getuid()))})
		if err == nil && !w.private {
			if err = c.Hello(); err == nil {
				err = present(ctx, c)
			}
		}
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		return c, nil
	})
}

// present tells whether the manager is on a bus. A bus that has just been started waits for it to come.
func present(ctx context.Context, bus *godbus.Conn) error {
	manager := bus.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	if err := manager.CallWithContext(ctx, "org.freedesktop.DBus.Peer.Ping", 0).Err; err != nil {
		return fmt.Errorf("the bus is there, and no manager of systemd on it: %w", err)
	}
	return nil
}
