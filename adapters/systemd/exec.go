package systemd

import (
	"context"
	"fmt"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
)

// Command is one command of a unit, as the manager holds it.
type Command struct {
	Path string
	// Args is the whole argument list; the first is the program's own name for itself.
	Args []string
	// IgnoreFailure is the "-" before a command.
	IgnoreFailure bool
}

// ExecStart are the commands of a service, word by word. Variables in them are not expanded yet, which is also what a
// unit that is made of them wants.
func (c *Conn) ExecStart(ctx context.Context, unit string) ([]Command, error) {
	p, err := c.bus.GetServicePropertyContext(ctx, unit, "ExecStart")
	if err != nil {
		return nil, fmt.Errorf("read the command of %s: %w", unit, err)
	}
	rows, ok := p.Value.Value().([][]any)
	if !ok {
		return nil, fmt.Errorf("read the command of %s: the manager answers with %s", unit, p.Value.Signature())
	}
	var out []Command
	for _, row := range rows {
		if len(row) < 3 {
			return nil, fmt.Errorf("read the command of %s: the manager answers with %d fields", unit, len(row))
		}
		path, ok1 := row[0].(string)
		args, ok2 := row[1].([]string)
		ignore, ok3 := row[2].(bool)
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("read the command of %s: the manager answers with %s", unit, p.Value.Signature())
		}
		out = append(out, Command{Path: path, Args: args, IgnoreFailure: ignore})
	}
	return out, nil
}

// property is one property of a unit; kind is "Unit", or the interface of its kind.
func property[T any](ctx context.Context, c *Conn, unit, kind, name string) (out T, err error) {
	var p *dbus.Property
	if kind == "Unit" {
		p, err = c.bus.GetUnitPropertyContext(ctx, unit, name)
	} else {
		p, err = c.bus.GetUnitTypePropertyContext(ctx, unit, kind, name)
	}
	if err != nil {
		return out, fmt.Errorf("read %s of %s: %w", name, unit, err)
	}
	out, ok := p.Value.Value().(T)
	if !ok {
		return out, fmt.Errorf("read %s of %s: the manager answers with %s", name, unit, p.Value.Signature())
	}
	return out, nil
}

// kind is the D-Bus name of a unit's kind.
func kind(unit string) string {
	if strings.HasSuffix(unit, ".scope") {
		return "Scope"
	}
	return "Service"
}

// Supervised says what restarts a unit by itself ("acme.service (Restart=on-failure)"); empty for nothing. It belongs into
// a run's Supervised when the run is the unit's main process.
func (c *Conn) Supervised(ctx context.Context, unit string) (string, error) {
	if kind(unit) == "Scope" {
		return "", nil // nothing restarts a scope
	}
	policy, err := property[string](ctx, c, unit, "Service", "Restart")
	if err != nil || policy == "no" {
		return "", err
	}
	return fmt.Sprintf("%s (Restart=%s)", unit, policy), nil
}
