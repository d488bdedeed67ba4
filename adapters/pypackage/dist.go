package pypackage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/mulligan-dev/mulligan/internal/codetree"
	"github.com/mulligan-dev/mulligan/witness"
)

// dist is one installed distribution.
type dist struct {
	site    string   // the site-packages folder it is in
	info    string   // its dist-info folder
	version string   // as the folder's name has it
	record  []byte   // the content of RECORD
	written int64    // when RECORD was last modified, Unix nanoseconds
	aside   []string // what pip set aside and has not removed
}

// maxRecord bounds RECORD: some 500,000 files.
const maxRecord = 64 << 20

// find looks for the root's distribution. Its errors are reasons for people.
func find(r witness.Root) (*dist, error) {
	if normal(r.Package) == "" {
		return nil, errors.New("the root names no package")
	}
	if len(r.Dirs) == 0 {
		return nil, errors.New("the root has no folder")
	}
	var half string
	// A folder with half a distribution does not end the search: another may have all of it, as the interpreter would
	// find.
	for _, site := range r.Live().Dirs {
		d, why, err := findIn(site, r.Package)
		if err != nil || d != nil {
			return d, err
		}
		if half == "" {
			half = why
		}
	}
	if half != "" {
		return nil, errors.New(half)
	}
	return nil, fmt.Errorf("package %s is not installed in %s", r.Package, strings.Join(r.Dirs, ", "))
}

// findIn looks in one folder. Without a distribution there, why may say what is left of one.
func findIn(site, name string) (d *dist, why string, err error) {
	entries, err := os.ReadDir(site)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Sprintf("folder %s does not exist", site), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("folder %s cannot be read: %w", site, err)
	}
	want := normal(name)
	var infos, aside []string
	egg := ""
	for _, e := range entries {
		full := filepath.Join(site, e.Name())
		switch base, isInfo := strings.CutSuffix(e.Name(), ".dist-info"); {
		case isInfo && normal(nameOf(base)) == want:
			infos = append(infos, full)
		case setAside(e.Name(), want):
			aside = append(aside, full)
		case strings.HasSuffix(e.Name(), ".egg-info") && normal(nameOf(strings.TrimSuffix(e.Name(), ".egg-info"))) == want:
			egg = full
		}
	}
	switch {
	// Two lists of files cannot both be what is installed. pip leaves this state when it is killed between two
	// versions.
	case len(infos) > 1:
		return nil, "", fmt.Errorf("package %s is there twice (%s and %s): an installation is under way, or was cut off", name, filepath.Base(infos[0]), filepath.Base(infos[1]))
	case len(infos) == 1:
		d, err := read(site, infos[0], name)
		if err != nil {
			return nil, "", err
		}
		d.aside = aside
		return d, "", nil
	// Set aside and nothing in its place: the old version is gone, the new one not there yet.
	case len(aside) > 0:
		return nil, fmt.Sprintf("package %s has been set aside (%s) and not been put back: an installation is under way, or was cut off", name, filepath.Base(aside[0])), nil
	case egg != "":
		return nil, fmt.Sprintf("package %s was installed the old way (%s), which keeps no list of its files", name, filepath.Base(egg)), nil
	}
	return nil, "", nil
}

// nameOf is the distribution's name in the name of its folder: NAME-VERSION, and neither part has a dash of its own.
func nameOf(base string) string {
	name, _, _ := strings.Cut(base, "-")
	return name
}

// setAside reports that a name is what pip makes of a folder that it is about to remove: "~" takes the place of its
// first letter, or "~" and another sign that of the first two.
func setAside(name, want string) bool {
	if !strings.HasPrefix(name, "~") {
		return false
	}
	for n := 1; n <= 2 && n < len(name) && n < len(want); n++ {
		if rest := normal(nameOf(strings.TrimSuffix(name[n:], ".dist-info"))); rest != "" && rest == normal(want[n:]) {
			return true
		}
	}
	return false
}

// read takes up a dist-info folder. RECORD is read whole: its digest is half of the revision.
func read(site, info, name string) (*dist, error) {
	d := &dist{site: site, info: info}
	_, d.version, _ = strings.Cut(strings.TrimSuffix(filepath.Base(info), ".dist-info"), "-")
	// RECORD of an editable installation lists a pointer to the code, and would stay the same through every edit.
	if where, editable := editable(info); editable {
		return nil, fmt.Errorf("package %s is installed for editing, its code is in %s; declare that folder as a root", name, where)
	}
	at := filepath.Join(info, "RECORD")
	fi, err := os.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("package %s has no RECORD in %s: it is half installed, or its installer keeps no list of files", name, filepath.Base(info))
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", at, err)
	case fi.Size() > maxRecord:
		return nil, fmt.Errorf("%s holds more than %d bytes", at, maxRecord)
	}
	d.written = fi.ModTime().UnixNano()
	if d.record, err = os.ReadFile(at); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", at, err)
	}
	return d, nil
}

// editable reports where the code of an editable installation lies.
func editable(info string) (string, bool) {
	text, err := os.ReadFile(filepath.Join(info, "direct_url.json"))
	if err != nil {
		return "", false
	}
	var direct struct {
		URL string `json:"url"`
		Dir struct {
			Editable bool `json:"editable"`
		} `json:"dir_info"`
	}
	if json.Unmarshal(text, &direct) != nil || !direct.Dir.Editable {
		return "", false
	}
	return strings.TrimPrefix(direct.URL, "file://"), true
}

// revision is the version and the digest of RECORD.
func (d *dist) revision() string {
	sum := sha256.Sum256(d.record)
	return d.version + "@" + hex.EncodeToString(sum[:])[:16]
}

// dirty are the listed code files that are no longer what was installed.
func (d *dist) dirty(ctx context.Context, r witness.Root, most int) ([]witness.File, error) {
	m := codetree.NewMatcher(r, d.site, codetree.Exists)
	// RECORD is CSV: a path with a comma is quoted. Older writers leave fields out, so their number is not held
	// against it.
	rows := csv.NewReader(bytes.NewReader(d.record))
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	var out []witness.File
	for n := 0; ; n++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("RECORD in %s cannot be understood: %w", filepath.Base(d.info), err)
		}
		if n >= most {
			return nil, fmt.Errorf("RECORD in %s lists more than %d files", filepath.Base(d.info), most)
		}
		if n%256 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if len(row) < 3 || row[1] == "" || !m.Match(path.Clean(row[0])) {
			continue // its own line, a compiled cache, or no code of the root's
		}
		f, changed, err := d.compare(r, row[0], row[1], row[2])
		if err != nil {
			return nil, err
		}
		if changed {
			out = append(out, f)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Path < out[j].Path })
	return out, nil
}

// settling is how much newer than RECORD a file may be and still count as written by the same installation.
const settling = int64(2 * time.Second)

// compare holds one listed file against the disk: its size, and its content where the file is newer than RECORD.
func (d *dist) compare(r witness.Root, listed, hash, size string) (witness.File, bool, error) {
	// Scripts are listed relative to the folder with "..", data files sometimes by an absolute path.
	name := filepath.Join(d.site, filepath.FromSlash(listed))
	if path.IsAbs(listed) {
		name = filepath.FromSlash(listed)
	}
	rel, err := filepath.Rel(r.Live().Dirs[0], name)
	if err != nil {
		return witness.File{}, false, fmt.Errorf("listed file %s lies outside every folder: %w", listed, err)
	}
	f := witness.File{Path: filepath.ToSlash(rel)}
	fi, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, true, nil
	}
	if err != nil {
		return f, false, fmt.Errorf("listed file %s cannot be read: %w", name, err)
	}
	// The size costs nothing and catches nearly every edit; the content is read when the time says that it may differ.
	same := size == "" || size == strconv.FormatInt(fi.Size(), 10)
	if same && fi.ModTime().UnixNano() <= d.written+settling {
		return f, false, nil
	}
	if f.Digest, err = codetree.Digest(name, fi); err != nil {
		return f, false, fmt.Errorf("listed file %s cannot be read: %w", name, err)
	}
	if want, ok := strings.CutPrefix(hash, "sha256="); same && ok && fi.Size() <= codetree.DigestLimit {
		raw, err := hex.DecodeString(f.Digest)
		return f, err != nil || base64.RawURLEncoding.EncodeToString(raw) != strings.TrimRight(want, "="), nil
	}
	return f, true, nil
}

// normal is a distribution name as package indexes compare it: case and the kind of separator do not count.
func normal(name string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '-' || c == '_' || c == '.' }), "-")
}
