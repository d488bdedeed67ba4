package systemd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Release is [Conn.Release].
func (p *Programs) Release(ctx context.Context, over func(launch string) bool) error {
	units, err := p.units(ctx, unitPrefix+"*", "Id", "ActiveState")
	if err != nil {
		return fmt.Errorf("list the failed units of launches: %w", err)
	}
	var failed []string
	for _, u := range units {
		if u["ActiveState"] == "failed" {
			failed = append(failed, u["Id"])
		}
	}
	return release(failed, over, func(unit string) error {
		_, err := p.exec(ctx, p.systemctl, "--no-ask-password", "reset-failed", "--", unit)
		if err == nil {
			return nil
		}
		// Another healer may have been faster, which no exit code tells.
		if s, e := p.look(ctx, unit); e == nil && s.active != "failed" {
			return nil
		}
		return err
	})
}

// look implements asker. systemctl takes no id of a start in a unit's place: it is looked for among all services.
func (p *Programs) look(ctx context.Context, ref string) (s seen, err error) {
	names := []string{"Id", "LoadState", "ActiveState", "Result"}
	if kind(ref) == "Service" {
		names = append(names, "ExecMainPID", "ExecMainCode", "ExecMainStatus", "NRestarts")
	}
	var v map[string]string
	if strings.Contains(ref, ".") {
		v, err = p.show(ctx, ref, names...)
	} else {
		v, err = p.started(ctx, ref, names...)
	}
	if err != nil || v == nil {
		return seen{}, err
	}
	s = seen{name: v["Id"], load: v["LoadState"], active: v["ActiveState"]}
	if s.load != "loaded" {
		return s, nil
	}
	s.result.Result = v["Result"]
	for name, to := range map[string]*int{"ExecMainPID": &s.main, "ExecMainCode": &s.result.Code, "ExecMainStatus": &s.result.Status,
		"NRestarts": &s.result.Restarts} {
		if text, ok := v[name]; ok {
			n, bad := strconv.Atoi(text)
			if bad != nil {
				err = errors.Join(err, fmt.Errorf("read %s of %s: %w", name, s.name, bad))
			}
			*to = n
		}
	}
	return s, err
}

// started is the service whose last start has this id, nil when there is none any more.
func (p *Programs) started(ctx context.Context, id string, names ...string) (map[string]string, error) {
	units, err := p.units(ctx, "*.service", append(names, "InvocationID")...)
	for _, u := range units {
		if u["InvocationID"] == id {
			return u, nil
		}
	}
	return nil, err
}

// units reads properties of all units whose names match a pattern and that the manager has loaded.
func (p *Programs) units(ctx context.Context, pattern string, names ...string) (out []map[string]string, err error) {
	args := []string{"show", "--all"}
	for _, n := range names {
		args = append(args, "-p", n)
	}
	text, err := p.exec(ctx, p.systemctl, append(args, "--", pattern)...)
	if err != nil {
		return nil, err
	}
	for block := range strings.SplitSeq(text, "\n\n") {
		if v := values(block); len(v) > 0 {
			out = append(out, v)
		}
	}
	return out, nil
}

// values are the properties in what systemctl prints of one unit.
func values(text string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			out[name] = value
		}
	}
	return out
}
