package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/internal/durable"
	"github.com/mulligan-dev/mulligan/ledger"
)

const (
	manifestName = "manifest.json"
	// evidenceLimit bounds one file of evidence or of a report.
	evidenceLimit = 64 << 20
)

// evidence is a folder for each lineage, which appears as a whole: it is filled under a hidden name and renamed.
type evidence struct {
	h   *Home
	dir durable.Dir
}

// manifest is what a folder of evidence holds: the caller's names, and the hash of each file.
type manifest struct {
	Schema int               `json:"schema"`
	Key    ledger.Key        `json:"key"`
	Files  map[string]string `json:"files"`
}

func manifestOf(k ledger.Key, files map[string][]byte) manifest {
	m := manifest{Schema: 1, Key: k, Files: map[string]string{}}
	for name, b := range files {
		sum := sha256.Sum256(b)
		m.Files[name] = hex.EncodeToString(sum[:])
	}
	return m
}

// onDisk names a file of evidence; no name of the caller's can meet the manifest's.
func onDisk(name string) string { return "f-" + durable.Escape(name) }

// Put implements ledger.Evidence.
func (s *evidence) Put(ctx context.Context, k ledger.Key, files map[string][]byte) (string, error) {
	name := fileName(k)
	at := path.Join("evidence", name)
	err := s.h.locks.with(ctx, shard("evidence", name), func() error {
		want := manifestOf(k, files)
		switch have, err := s.manifest(k); {
		case err == nil && maps.Equal(have.Files, want.Files):
			return nil
		case err == nil:
			return ledger.ErrExists
		case !errors.Is(err, ledger.ErrNotFound):
			return err
		}
		return s.write(name, want, files)
	})
	if err != nil {
		if !errors.Is(err, ledger.ErrExists) {
			at = ""
		}
		return at, fmt.Errorf("put evidence of %s: %w", k, err)
	}
	return at, nil
}

// write fills the folder under a hidden name, flushes all of it and gives it its name. What a killed process left under
// the hidden name goes first.
func (s *evidence) write(name string, m manifest, files map[string][]byte) (err error) {
	temp := ".new-" + shard("evidence", name)
	if err := durable.RemoveAll(s.dir, temp); err != nil {
		return err
	}
	d, err := s.dir.Make(temp)
	if err != nil {
		return err
	}
	defer d.Close()
	defer func() {
		if err != nil {
			_ = durable.RemoveAll(s.dir, temp)
		}
	}()
	b, _, err := sealed(m)
	if err != nil {
		return err
	}
	all := []durable.Entry{{Name: manifestName, Content: b}}
	for _, n := range slices.Sorted(maps.Keys(files)) {
		all = append(all, durable.Entry{Name: onDisk(n), Content: files[n]})
	}
	if err := durable.StageAll(d, all); err != nil {
		return err
	}
	if err := s.dir.Rename(temp, name); err != nil {
		return err
	}
	return s.dir.Sync()
}

// folder opens a lineage's evidence, which must be there.
func (s *evidence) folder(k ledger.Key) (durable.Dir, error) {
	name := fileName(k)
	if _, err := s.dir.Stat(name); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("evidence of %s: %w", k, ledger.ErrNotFound)
		}
		return nil, err
	}
	return inhabited(s.dir, name, "evidence of "+k.String())
}

// inhabited opens a folder that was seen and appears as a whole. Opening makes what is not there: one that is empty was
// taken away between the look and now, or by a process that ended here, and is none.
func inhabited(dir durable.Dir, name, what string) (durable.Dir, error) {
	d, err := dir.Sub(name)
	if err != nil {
		return nil, err
	}
	names, err := d.Names(1)
	if err == nil && len(names) > 0 {
		return d, nil
	}
	d.Close()
	if err == nil {
		_ = dir.Remove(name) // refused when somebody has filled it meanwhile
		err = fmt.Errorf("%s: %w", what, ledger.ErrNotFound)
	}
	return nil, err
}

func (s *evidence) manifest(k ledger.Key) (m manifest, err error) {
	d, err := s.folder(k)
	if err != nil {
		return m, err
	}
	defer d.Close()
	return readManifest(d, k)
}

func readManifest(d durable.Dir, k ledger.Key) (m manifest, err error) {
	b, _, err := durable.ReadFile(d, manifestName, recordLimit)
	if err != nil {
		return m, damaged(&ledger.DamageError{Why: "its manifest cannot be read: " + err.Error()}, d, manifestName, k)
	}
	bad := open(b, &m, func() int { return m.Schema }, 1)
	if bad == nil && m.Key != k {
		bad = &ledger.DamageError{Why: "it is the evidence of " + m.Key.String()}
	}
	if bad != nil {
		return m, damaged(bad, d, manifestName, k)
	}
	return m, nil
}

// Get implements ledger.Evidence.
func (s *evidence) Get(_ context.Context, k ledger.Key) (map[string][]byte, error) {
	d, err := s.folder(k)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	m, err := readManifest(d, k)
	if err != nil {
		return nil, fmt.Errorf("evidence of %s: %w", k, err)
	}
	files := map[string][]byte{}
	for name, want := range m.Files {
		b, _, err := durable.ReadFile(d, onDisk(name), evidenceLimit)
		if err != nil {
			return nil, fmt.Errorf("evidence of %s: %w", k, damaged(&ledger.DamageError{Why: err.Error()}, d, onDisk(name), k))
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			return nil, fmt.Errorf("evidence of %s: %w", k, damaged(&ledger.DamageError{Why: "its content does not fit the manifest"}, d, onDisk(name), k))
		}
		files[name] = b
	}
	return files, nil
}

// reports is a folder for each episode. A report can be made again from the ledger, so its files carry no checksum.
type reports struct {
	h   *Home
	dir durable.Dir
}

// PutReport implements ledger.Reports.
func (s *reports) PutReport(ctx context.Context, episode string, files map[string][]byte) error {
	for n := range files {
		if n == "" || durable.Escape(n) != n {
			return fmt.Errorf("put report of episode %s: file name %q: want letters, digits, '-' and '.'", episode, n)
		}
	}
	name := durable.Escape(episode)
	err := s.h.locks.with(ctx, shard("episodes", name), func() error {
		d, err := s.dir.Sub(name)
		if err != nil {
			return err
		}
		defer d.Close()
		names := slices.Sorted(maps.Keys(files))
		for _, n := range names {
			if err := durable.Stage(d, ".new-"+n, files[n], nil); err != nil {
				return err
			}
		}
		// The last file first: whoever is killed on the way leaves the first one as it was, so that a report is as new as
		// its first file (report.json) says.
		for _, n := range slices.Backward(names) {
			if err := d.Rename(".new-"+n, n); err != nil {
				return err
			}
		}
		return d.Sync()
	})
	if err != nil {
		return fmt.Errorf("put report of episode %s: %w", episode, err)
	}
	return nil
}

// GetReport implements ledger.Reports.
func (s *reports) GetReport(_ context.Context, episode string) (map[string][]byte, error) {
	name := durable.Escape(episode)
	if _, err := s.dir.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("report of episode %s: %w", episode, ledger.ErrNotFound)
	}
	d, err := s.dir.Sub(name)
	if err != nil {
		return nil, fmt.Errorf("report of episode %s: %w", episode, err)
	}
	defer d.Close()
	names, err := d.Names(0)
	if err != nil {
		return nil, fmt.Errorf("report of episode %s: %w", episode, err)
	}
	files := map[string][]byte{}
	for _, n := range names {
		if strings.HasPrefix(n, ".") {
			continue
		}
		b, _, err := durable.ReadFile(d, n, evidenceLimit)
		if errors.Is(err, fs.ErrNotExist) {
			err = ledger.ErrNotFound // it is being discarded
		}
		if err != nil {
			return nil, fmt.Errorf("report of episode %s: %w", episode, err)
		}
		files[n] = b
	}
	// What is discarded is taken away first, and emptied then: a part of it is no report.
	if _, err := s.dir.Stat(name); len(files) == 0 || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("report of episode %s: %w", episode, ledger.ErrNotFound)
	}
	return files, nil
}
