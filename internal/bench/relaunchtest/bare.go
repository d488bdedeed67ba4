package relaunchtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mulligan-dev/mulligan/internal/require"
)

// Bare is the shortest code that does the same as the engine: the same git reads, one after the other, the same files
// made durable, the same processes started. It decides nothing, locks nothing and checks nothing.
type Bare struct {
	BareConfig
	tb  testing.TB
	dir string
	n   int
}

// BareConfig says what a Bare does.
type BareConfig struct {
	Repo *require.Repo
	// Probe is the command of the probe, empty for none.
	Probe []string
	// Start starts a runner; nil starts a plain child.
	Start func(id string, command, env []string) error
}

var gitFlags = []string{"--no-pager", "--literal-pathspecs", "-c", "core.fsmonitor=false", "-c", "log.follow=false",
	"-c", "i18n.logOutputEncoding=UTF-8"}

func git(dir, stdin string, args ...string) error {
	cmd := exec.Command("git", append(append([]string(nil), gitFlags...), args...)...)
	cmd.Dir = dir
	if stdin != "" {
		cmd.Stdin = strings.NewReader(stdin)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, out)
	}
	return nil
}

func status(dir string) error {
	return git(dir, "", "status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all",
		"--ignore-submodules=none", "--no-ahead-behind", "--", ".")
}

// witnesses are the reads by which the engine finds W1 and W3 for this tree.
func witnesses(dir string) error {
	for _, read := range []func() error{
		func() error {
			return git(dir, "", "diff-tree", "-r", "-z", "--no-renames", "--no-ext-diff", "--ignore-submodules=none", "--name-status", "HEAD~1", "HEAD", "--", ".")
		},
		func() error { return git(dir, "HEAD~1:acme/wire.py\nHEAD:acme/wire.py\n", "cat-file", "--batch") },
		func() error {
			return git(dir, "", "log", "-z", "--date-order", "--format=%x01%H%x00%P%x00%ct%x00%s", "--max-count=4096", "--full-diff",
				"--name-status", "--find-renames", "-l400", "--no-ext-diff", "--no-color", "--no-show-signature", "--no-notes", "HEAD", "^HEAD~1", "--", "acme/wire.py")
		},
	} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// The sizes are those of the engine's files.
var (
	note     = bytes.Repeat([]byte("n"), 1200)
	record   = bytes.Repeat([]byte("r"), 3500)
	state    = bytes.Repeat([]byte("s"), 2000)
	dossier  = bytes.Repeat([]byte("d"), 6000)
	failure  = bytes.Repeat([]byte("f"), 300)
	manifest = bytes.Repeat([]byte("m"), 400)
)

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		return err
	}
	return f.Sync()
}

func create(path string, b []byte) error {
	if err := writeSynced(path, b); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func replace(path string, b []byte) error {
	if err := writeSynced(path+".new", b); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// told is what each death costs before anybody looks at the tree: its own reading, its note, its record.
func (b *Bare) told(id string) error {
	return inTurn(
		func() error { return status(b.Repo.Dir) },
		func() error { return create(filepath.Join(b.dir, "doorbell", id), note) },
		func() error { return create(filepath.Join(b.dir, "ledger", id), record) },
	)
}

// found is what one update costs once, however many died of it.
func (b *Bare) found() error {
	if err := inTurn(
		func() error { return status(b.Repo.Dir) },
		func() error { return witnesses(b.Repo.Dir) },
	); err != nil || len(b.Probe) == 0 {
		return err
	}
	return inTurn(
		func() error {
			cmd := exec.Command(b.Probe[0], b.Probe[1:]...)
			cmd.Dir, cmd.Env = b.dir, []string{} // as alone as the prober's
			return cmd.Run()
		},
		func() error { return status(b.Repo.Dir) },
	)
}

// back is what each costs again, to the start of its runner.
func (b *Bare) back(id string) error {
	return inTurn(
		func() error { return evidence(filepath.Join(b.dir, "evidence"), id) },
		func() error { return replace(filepath.Join(b.dir, "ledger", id), record) },
		func() error { return b.startRunner(id) },
	)
}

func (b *Bare) slots() error { return replace(filepath.Join(b.dir, "state"), state) }

func inTurn(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func evidence(dir, id string) error {
	tmp := filepath.Join(dir, ".new-"+id)
	if err := os.Mkdir(tmp, 0o700); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	for name, b := range map[string][]byte{"facts.json": dossier, "failure.txt": failure, "log.txt": failure, "manifest.json": manifest} {
		if err := writeSynced(filepath.Join(tmp, name), b); err != nil {
			return err
		}
	}
	if err := syncDir(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(dir, id)); err != nil {
		return err
	}
	return syncDir(dir)
}

func (b *Bare) startRunner(id string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	agent, err := json.Marshal(Agent(b.beat(id), "/", b.Repo.Dir))
	if err != nil {
		return err
	}
	return b.Start(id, []string{self, id}, append(os.Environ(), RoleVar+"=bare-runner", stateVar+"="+b.dir, rootVar+"="+b.Repo.Dir,
		agentVar+"="+string(agent)))
}

func startChild(_ string, command, env []string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = env
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // how it ends shows in what it wrote
	return nil
}

// bareRunner reads the boot identity, writes the run, its name and the bound record, and starts the program.
func bareRunner() error {
	d, id := os.Getenv(stateVar), os.Args[1]
	for _, step := range []func() error{
		func() error { return status(os.Getenv(rootVar)) },
		func() error { return replace(filepath.Join(d, "names", id), note) },
		func() error { return create(filepath.Join(d, "runs", id), record) },
		func() error { return replace(filepath.Join(d, "ledger", id), record) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	var agent []string
	if err := json.Unmarshal([]byte(os.Getenv(agentVar)), &agent); err != nil {
		return err
	}
	return exec.Command(agent[0], agent[1:]...).Run()
}

// NewBare makes its folders.
func NewBare(tb testing.TB, c BareConfig) *Bare {
	tb.Helper()
	if c.Start == nil {
		c.Start = startChild
	}
	b := &Bare{BareConfig: c, tb: tb, dir: tb.TempDir()}
	for _, d := range []string{"doorbell", "ledger", "evidence", "runs", "names"} {
		if err := os.Mkdir(filepath.Join(b.dir, d), 0o700); err != nil {
			tb.Fatal(err)
		}
	}
	return b
}

func (b *Bare) beat(id string) string { return filepath.Join(b.dir, "beat-"+id) }

// First begins n first lives that are relaunched as soon as all of them are gone, and returns where they write and what
// they wait for. What each of them costs goes on side by side; the tree is looked at and probed once.
func (b *Bare) First(n int) (beats []string, goFile string) {
	b.tb.Helper()
	b.n++
	goFile = filepath.Join(b.dir, "go-"+strconv.Itoa(b.n))
	var ids []string
	var lives []*exec.Cmd
	for i := range n {
		id := strconv.Itoa(b.n) + "-" + strconv.Itoa(i)
		agent := Agent(b.beat(id), goFile, b.Repo.Dir)
		cmd := exec.Command(agent[0], agent[1:]...)
		cmd.Stderr = &bytes.Buffer{}
		if err := cmd.Start(); err != nil {
			b.tb.Fatal(err)
		}
		ids, lives, beats = append(ids, id), append(lives, cmd), append(beats, b.beat(id))
	}
	go func() {
		if err := b.heal(ids, lives); err != nil {
			b.tb.Error(err)
		}
	}()
	for _, beat := range beats {
		Await(b.tb, beat)
	}
	return beats, goFile
}

// heal is the whole way from the deaths to the start of the runners.
func (b *Bare) heal(ids []string, lives []*exec.Cmd) error {
	err := beside(ids, func(i int, id string) error {
		_ = lives[i].Wait() // it ends with code 1, as it should
		return b.told(id)
	})
	if err != nil {
		return err
	}
	return inTurn(b.found, b.slots, func() error {
		return beside(ids, func(_ int, id string) error { return b.back(id) })
	})
}

// beside does something for each, all at once.
func beside(ids []string, do func(i int, id string) error) error {
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = do(i, id) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
