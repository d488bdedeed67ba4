package systemd

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// Recipe is how the manager starts a service, as far as somebody else can do the same: what a canary boots.
type Recipe struct {
	// Command is the program with its arguments, as the program gets them: variables are put in.
	Command []string
	// Dir is the working folder.
	Dir string
	// Env is KEY=value, the given environment with the unit's Environment= over it.
	Env []string
}

// Recipe reads how a service is started. env is what its environment lies on: for a process of the service its own, which
// has everything; for another one a plain one, and then a unit with an EnvironmentFile= is refused, since what stands in
// the file is not known here. A unit with more than one command is refused too: nobody can say which of them serves.
func (c *Conn) Recipe(ctx context.Context, unit string, env []string, inside bool) (Recipe, error) {
	fail := func(err error) (Recipe, error) { return Recipe{}, fmt.Errorf("read how %s is started: %w", unit, err) }
	commands, err := c.ExecStart(ctx, unit)
	if err != nil {
		return Recipe{}, err
	}
	if len(commands) != 1 || len(commands[0].Args) == 0 {
		return fail(fmt.Errorf("it has %d commands, and exactly one can be tried", len(commands)))
	}
	r := Recipe{Env: slices.Clone(env)}
	if !inside {
		files, err := property[[][]any](ctx, c, unit, "Service", "EnvironmentFiles")
		if err != nil {
			return Recipe{}, err
		}
		if len(files) > 0 {
			return fail(fmt.Errorf("it has EnvironmentFile=%v, which the manager alone reads", files[0][0]))
		}
		own, err := property[[]string](ctx, c, unit, "Service", "Environment")
		if err != nil {
			return Recipe{}, err
		}
		r.Env = append(r.Env, own...)
	}
	if r.Dir, err = property[string](ctx, c, unit, "Service", "WorkingDirectory"); err != nil {
		return Recipe{}, err
	}
	r.Dir = workingDir(r.Dir, c.manager, r.Env)
	args := commands[0].Args[1:]
	if c.expands(ctx, unit) {
		args = expand(args, r.Env)
	}
	r.Command = append([]string{commands[0].Path}, args...)
	return r, nil
}

// workingDir is a unit's WorkingDirectory=: "!" marks one that may be missing, "~" is the user's own; without one it is
// the manager's.
func workingDir(dir string, m Manager, env []string) string {
	dir = strings.TrimPrefix(dir, "!")
	if dir == "~" || dir == "" && m == User {
		return lookup(env, "HOME")
	}
	if dir == "" {
		return "/"
	}
	return dir
}

// expands tells whether the manager puts variables into the command, which a ":" before it forbids. A manager that is too
// old to say so knows no ":".
func (c *Conn) expands(ctx context.Context, unit string) bool {
	rows, err := property[[][]any](ctx, c, unit, "Service", "ExecStartEx")
	if err != nil || len(rows) == 0 || len(rows[0]) < 3 {
		return true
	}
	flags, ok := rows[0][2].([]string)
	return !ok || !slices.Contains(flags, "no-env-expand")
}

// expand puts variables into words as the manager does: ${X} anywhere, $X where it is a word of its own, which then becomes
// as many words as it holds, and $$ for a dollar sign. What is not set is empty.
func expand(words, env []string) (out []string) {
	for _, w := range words {
		if name, ok := strings.CutPrefix(w, "$"); ok && variableName(name) {
			out = append(out, strings.Fields(lookup(env, name))...)
			continue
		}
		var b strings.Builder
		for rest := w; rest != ""; {
			before, after, found := strings.Cut(rest, "$")
			b.WriteString(before)
			rest = after
			if !found {
				break
			}
			name, tail, closed := strings.Cut(strings.TrimPrefix(after, "{"), "}")
			switch {
			case strings.HasPrefix(after, "$"):
				b.WriteByte('$')
				rest = after[1:]
			case strings.HasPrefix(after, "{") && closed && variableName(name):
				b.WriteString(lookup(env, name))
				rest = tail
			default:
				b.WriteByte('$')
			}
		}
		out = append(out, b.String())
	}
	return out
}

func variableName(s string) bool {
	for i, r := range s {
		switch {
		case r == '_', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', i > 0 && r >= '0' && r <= '9':
		default:
			return false
		}
	}
	return s != ""
}

// lookup is the last value of a variable, which is the one that counts.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
