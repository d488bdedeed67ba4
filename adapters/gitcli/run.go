package gitcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// maxOutput bounds what git may print: a tree with more to say is not one that a healer can judge.
const maxOutput = 64 << 20

// always are the settings under which git's output and behaviour do not depend on the user. The user's files are still
// read, because only they can allow a repository that belongs to somebody else (safe.directory).
var always = []string{
	"--no-pager", "--literal-pathspecs",
	"-c", "core.fsmonitor=false",
	"-c", "log.follow=false",
	"-c", "i18n.logOutputEncoding=UTF-8",
}

// kept are the variables of git that may pass; every other would point git at another repository, trace or rewrite.
var kept = map[string]bool{
	"GIT_EXEC_PATH": true, "GIT_CONFIG_GLOBAL": true, "GIT_CONFIG_SYSTEM": true, "GIT_CONFIG_NOSYSTEM": true,
	"GIT_TEST_ASSUME_DIFFERENT_OWNER": true,
}

// environment is what git gets to see. A hook of git that starts the host leaves GIT_DIR and GIT_INDEX_FILE behind, and
// with them every question would be answered for another repository.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		if (strings.HasPrefix(name, "GIT_") && !kept[name]) || name == "LC_ALL" || name == "LANGUAGE" {
			continue
		}
		env = append(env, v)
	}
	return append(env, "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1")
}

// git runs one command in the repository and returns what it printed. Its errors are reasons for people.
func (s *Source) git(ctx context.Context, g *repo, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, errSlow)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.cfg.Git, append(append([]string(nil), always...), args...)...)
	cmd.Dir = g.top
	cmd.Env = environment()
	if stdin != nil {
		cmd.Stdin = bytes.NewReader(stdin)
	}
	// Both outputs are bounded: what is beyond is swallowed, so that git ends instead of waiting for a reader.
	var out, errs bounded
	out.limit, errs.limit = maxOutput, 4<<10
	cmd.Stdout, cmd.Stderr = &out, &errs
	killGroup(cmd)
	// A grandchild that holds the pipe open must not hold us.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	switch {
	case ctx.Err() != nil:
		if errors.Is(context.Cause(ctx), errSlow) {
			return nil, fmt.Errorf("git %s did not answer within %v", args[0], s.cfg.Timeout)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], ctx.Err())
	// Three ways of not having git, each with its own remedy.
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("the git program (%s) is not installed", s.cfg.Git)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("the git program (%s) cannot be run: %w", s.cfg.Git, err)
	case err != nil:
		return nil, refusal(args[0], errs.String(), err)
	case out.over:
		return nil, fmt.Errorf("git %s printed more than %d MiB", args[0], maxOutput>>20)
	}
	return out.Bytes(), nil
}

// errSlow tells our own bound from the end of the caller's context: the one is an unknown identity, the other an error.
var errSlow = errors.New("git was too slow")

// refusal is the reason that git gave, in words where they are known.
func refusal(command, stderr string, err error) error {
	line := strings.TrimSpace(stderr)
	for l := range strings.Lines(stderr) {
		if rest, ok := strings.CutPrefix(l, "fatal: "); ok {
			line = strings.TrimSpace(rest)
			break
		}
	}
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	switch {
	case strings.Contains(line, "dubious ownership"):
		return fmt.Errorf("git refuses the repository because it belongs to another user; allow it with: git config --global --add safe.directory DIR (%s)", line)
	case line == "":
		return fmt.Errorf("git %s failed: %w", command, err)
	}
	return fmt.Errorf("git %s failed: %s", command, line)
}

// bounded keeps the first bytes and swallows the rest, so that a program which prints too much still ends.
type bounded struct {
	bytes.Buffer
	limit int
	over  bool
}

// Write never fails: a short write would end git with a broken pipe and hide what it had to say.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.limit - b.Len(); room < len(p) {
		b.over = true
		b.Buffer.Write(p[:max(room, 0)])
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
