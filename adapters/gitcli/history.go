package gitcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/ledger/stamp"
	"github.com/mulligan-dev/mulligan/witness"
)

// At implements [witness.History] from the reflog of HEAD. Its entries are coarse to the second.
func (s *Source) At(ctx context.Context, r witness.Root, t stamp.Time) (string, stamp.Window, bool, error) {
	if err := ctx.Err(); err != nil {
		return "", stamp.Window{}, false, fmt.Errorf("read the history of root %s: %w", r.Name, err)
	}
	g, err := open(r)
	if err != nil {
		return "", stamp.Window{}, false, fmt.Errorf("read the history of root %s: %w", r.Name, err)
	}
	if g.linked.After(t.Wall) {
		return "", stamp.Window{}, false, nil // the link led elsewhere then: this repository's past is not the root's
	}
	text, err := tail(filepath.Join(g.gitDir, "logs", "HEAD"), maxReflog)
	if errors.Is(err, fs.ErrNotExist) {
		return "", stamp.Window{}, false, nil // reflogs are switched off, or kept in another format
	}
	if err != nil {
		return "", stamp.Window{}, false, fmt.Errorf("read the history of root %s: %w", r.Name, err)
	}
	rev, in, ok := inForce(parseReflog(text), t)
	return rev, in, ok, nil
}

// maxReflog bounds what is read of a reflog, from its end: some 50,000 moves.
const maxReflog = 8 << 20

// tail is the end of a file, from a whole line on. A reflog that is larger than the bound loses its oldest moves, which
// no run that still lives can have booted before.
func tail(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	cut := fi.Size() > most
	if cut {
		if _, err := f.Seek(-most, io.SeekEnd); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(f, most))
	if cut {
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text = text[i+1:] // the first line is cut in half
		}
	}
	return text, err
}

// moveOfHead is one line of the reflog.
type moveOfHead struct {
	old, new string
	when     stamp.Time
}

// parseReflog reads "old new name <mail> seconds zone\tmessage" lines, oldest first. A line that is not one is left
// out.
func parseReflog(text []byte) []moveOfHead {
	var out []moveOfHead
	for line := range bytes.Lines(text) {
		head, _, _ := strings.Cut(strings.TrimRight(string(line), "\n"), "\t")
		old, rest, ok1 := strings.Cut(head, " ")
		new, rest, ok2 := strings.Cut(rest, " ")
		_, rest, ok3 := cutLast(rest, "> ")
		seconds, _, _ := strings.Cut(rest, " ")
		at, err := strconv.ParseInt(seconds, 10, 64)
		if !ok1 || !ok2 || !ok3 || err != nil || !isRevision(old) || !isRevision(new) {
			continue
		}
		out = append(out, moveOfHead{old, new, stamp.Wall(time.Unix(at, 0), time.Second)})
	}
	return out
}

// cutLast cuts at the last separator: people have names and addresses with every sign in them.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// inForce is the revision whose beginning is certainly not after t.
func inForce(moves []moveOfHead, t stamp.Time) (string, stamp.Window, bool) {
	last := -1
	for i, m := range moves {
		if m.when.Before(t) {
			last = i
		}
	}
	// The order of the lines is the truth. Where their times contradict it, no moment can be placed between them.
	for i := range moves[:last+1] {
		if moves[i].when.After(t) {
			return "", stamp.Window{}, false // the clock ran backwards between the moves: the log contradicts itself
		}
	}
	if last < 0 {
		// The log begins after t, or in the very second of t. In the second case nothing can be missing between.
		if len(moves) == 0 || moves[0].when.After(t) || strings.Trim(moves[0].old, "0") == "" {
			return "", stamp.Window{}, false
		}
		return moves[0].old, stamp.Window{To: moves[0].when}, true
	}
	in := stamp.Window{From: moves[last].when}
	if last+1 < len(moves) {
		in.To = moves[last+1].when
	}
	return moves[last].new, in, true
}

// Changed implements [witness.History].
func (s *Source) Changed(ctx context.Context, r witness.Root, from, to string) ([]witness.Change, error) {
	g, err := s.question(r, from, to)
	if err != nil {
		return nil, fmt.Errorf("compare two revisions of root %s: %w", r.Name, err)
	}
	args := []string{"diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--name-status", from, to, "--"}
	out, err := s.past(ctx, g, nil, nil, append(args, g.dirs...)...)
	if err != nil {
		return nil, fmt.Errorf("compare two revisions of root %s: %w", r.Name, err)
	}
	// With -z a status and a path alternate, and no name is quoted.
	fields := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	var changes []witness.Change
	for i := 0; i+1 < len(fields); i += 2 {
		c := witness.Change{Path: printable(g.toRoot(fields[i+1])), Deleted: fields[i] == "D"}
		if len(changes) < maxStat {
			c.At = g.changeTime(fields[i+1], c.Deleted)
		}
		changes = append(changes, c)
	}
	return changes, nil
}

// maxStat bounds the files that are looked at on disk for one comparison; later ones have no change time.
const maxStat = 20000

var fullName = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// isRevision accepts full SHA-1 and SHA-256 names alone: nothing that git could take for an option or a branch.
func isRevision(rev string) bool { return fullName.MatchString(rev) }

// question opens the repository for a question about revisions.
func (s *Source) question(r witness.Root, revisions ...string) (*repo, error) {
	if i := slices.IndexFunc(revisions, func(rev string) bool { return !isRevision(rev) }); i >= 0 {
		return nil, fmt.Errorf("%q is not a full commit name", revisions[i])
	}
	return open(r)
}

// Commits implements [witness.History]. Renames are followed: where a commit gave one of the paths its name, the
// commits of the old name are listed too.
func (s *Source) Commits(ctx context.Context, r witness.Root, from, to string, paths []string, limit int) ([]witness.Commit, error) {
	g, err := s.question(r, from, to)
	if err != nil {
		return nil, fmt.Errorf("list commits of root %s: %w", r.Name, err)
	}
	var tracked []string
	for _, p := range paths {
		if at, ok := g.toTop(p); ok {
			tracked = append(tracked, at)
		}
	}
	if len(tracked) == 0 || limit <= 0 || from == to {
		return nil, nil
	}
	// Each round follows one rename further back; a chain of more is not worth a process.
	for round := 0; ; round++ {
		out, err := s.log(ctx, g, from, to, tracked, limit)
		if err != nil {
			return nil, fmt.Errorf("list commits of root %s: %w", r.Name, err)
		}
		commits, renames, err := parseLog(out)
		if err != nil {
			return nil, fmt.Errorf("list commits of root %s: %w", r.Name, err)
		}
		more := false
		for _, n := range renames {
			if slices.Contains(tracked, n.to) && !slices.Contains(tracked, n.from) {
				tracked, more = append(tracked, n.from), true
			}
		}
		if !more || round == 3 {
			return commits, nil
		}
	}
}

// log asks for the commits with everything each of them changed, not only the given paths: a rename shows as one only
// when both of its names are seen. The range is written as two revisions, and the paths after a double dash, so that no
// name can be taken for anything else.
func (s *Source) log(ctx context.Context, g *repo, from, to string, paths []string, limit int) ([]byte, error) {
	args := []string{"log", "-z", "--date-order", "--format=" + logFormat, "--max-count=" + strconv.Itoa(limit),
		"--full-diff", "--name-status", "--find-renames", "-l400", "--no-ext-diff", "--no-color", "--no-show-signature", "--no-notes", to, "^" + from, "--"}
	return s.past(ctx, g, nil, nil, append(args, paths...)...)
}

// logFormat begins each commit with a byte that no status letter begins with.
const logFormat = "%x01%H%x00%P%x00%ct%x00%s"

// rename is one file that a commit gave another name.
type rename struct{ from, to string }

// parseLog reads the output of log: four fields for a commit, then a status and one path, or two for a rename, for each
// file.
func parseLog(out []byte) ([]witness.Commit, []rename, error) {
	var commits []witness.Commit
	var renames []rename
	fields := strings.Split(string(out), "\x00")
	take := func() string {
		if len(fields) == 0 {
			return ""
		}
		f := fields[0]
		fields = fields[1:]
		return f
	}
	for len(fields) > 0 {
		f := strings.TrimLeft(take(), "\n")
		switch {
		case f == "":
		case f[0] == 1:
			parents, seconds, subject := take(), take(), take()
			at, err := strconv.ParseInt(seconds, 10, 64)
			if err != nil || !isRevision(f[1:]) {
				return nil, nil, fmt.Errorf("git log printed a commit that is not understood: %q", f)
			}
			commits = append(commits, witness.Commit{Revision: f[1:], Parents: strings.Fields(parents), Subject: shorten(subject), When: stamp.Wall(time.Unix(at, 0), time.Second)})
		case f[0] == 'R' || f[0] == 'C':
			renames = append(renames, rename{take(), take()})
		default:
			take()
		}
	}
	return commits, renames, nil
}

// shorten bounds a subject: it ends up in ledgers and notices.
func shorten(subject string) string {
	subject = strings.ToValidUTF8(subject, "�")
	const most = 200
	if r := []rune(subject); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return subject
}
