package pypackage_test

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/adapters/pypackage"
	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/internal/require"
	"github.com/mulligan-dev/mulligan/witness"
)

// What pip really writes is what the source understands.
func TestPip(t *testing.T) {
	t.Parallel()
	require.Works(t, "apt-get install python3-pip python3-venv", "python3", "-c", "import pip, venv")
	dir := t.TempDir()
	env := filepath.Join(dir, "env")
	do := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_CONFIG_FILE=/dev/null", "PIP_NO_INPUT=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
	}
	do("python3", "-m", "venv", "--without-pip", env)
	site, err := filepath.Glob(filepath.Join(env, "lib", "python3*", "site-packages"))
	if err != nil || len(site) != 1 {
		t.Fatalf("site-packages is %v, %v", site, err)
	}
	root := witness.Root{Root: classify.Root{Name: "wire", Dirs: site, Modules: []string{"acme_wire"}}, Kind: pypackage.Kind, Package: "Acme.Wire"}
	var ids []witness.Identity
	for _, version := range []string{"1.0", "2.0"} {
		do("python3", "-m", "pip", "--python", filepath.Join(env, "bin", "python"), "install", "-q", "--no-index", "--no-deps", wheel(t, dir, version))
		id, err := newSource(t).Identify(t.Context(), root)
		if err != nil || !strings.HasPrefix(id.Revision, version+"@") || len(id.Dirty) != 0 {
			t.Fatalf("after pip installed %s the identity is %+v, %v", version, id, err)
		}
		ids = append(ids, id)
	}
	_, since, err := newSource(t).InForce(t.Context(), root)
	if err != nil || since.Sub(ids[1].At) > 0 {
		t.Errorf("version 2.0 is in force since %s, %v; it was read at %s", since, err, ids[1].At)
	}
	do("python3", "-m", "pip", "--python", filepath.Join(env, "bin", "python"), "uninstall", "-q", "-y", "acme-wire")
	if id, err := newSource(t).Identify(t.Context(), root); err != nil || !strings.Contains(id.Unknown, "is not installed") {
		t.Errorf("after pip uninstalled it the identity is %+v, %v", id, err)
	}
}

// wheel builds the smallest archive that pip accepts.
func wheel(t *testing.T, dir, version string) string {
	t.Helper()
	name := filepath.Join(dir, "acme_wire-"+version+"-py3-none-any.whl")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	info := "acme_wire-" + version + ".dist-info/"
	record := ""
	for _, file := range [][2]string{
		{"acme_wire/__init__.py", ""},
		{"acme_wire/wire.py", "version = '" + version + "'\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: acme-wire\nVersion: " + version + "\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
	} {
		sum := sha256.Sum256([]byte(file[1]))
		record += fmt.Sprintf("%s,sha256=%s,%d\n", file[0], base64.RawURLEncoding.EncodeToString(sum[:]), len(file[1]))
		put(t, z, file[0], file[1])
	}
	put(t, z, info+"RECORD", record+info+"RECORD,,\n")
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func put(t *testing.T, z *zip.Writer, name, text string) {
	t.Helper()
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}
