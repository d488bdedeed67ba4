package require

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const installersHint = ".ci/run packages"

// Installer is the command line of an installer of Node.js packages, at the version that .ci/installers fixes: "pnpm", "yarn" (1),
// "berry" (the yarn after it) or "bun". They are kept outside the clone; a test downloads nothing.
func Installer(t testing.TB, name string) []string {
	t.Helper()
	cache, err := os.UserCacheDir()
	Possible(t, "set HOME", "finding the user's cache", err)
	dir := filepath.Join(cache, "mulligan-installers")
	have, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil {
		missing(t, installersHint, name+" is not in "+dir)
	}
	want, err := os.ReadFile(above(t, ".ci", "installers", "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		missing(t, installersHint, "the installers in "+dir+" are of other versions")
	}
	if script := map[string]string{"yarn": "yarn", "berry": "@yarnpkg/cli-dist"}[name]; script != "" {
		return []string{Program(t, "node", "apt-get install nodejs"), filepath.Join(dir, "node_modules", filepath.FromSlash(script), "bin", "yarn.js")}
	}
	// These are programs. Their packages pick that of this machine when their scripts run, which they do not here.
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(map[string]string{"pnpm": "@pnpm/exe.*/pnpm", "bun": "@oven/bun-*/bin/bun"}[name])))
	if err != nil || len(found) == 0 {
		missing(t, "a machine that it is built for", "no "+name+" is in "+dir)
	}
	return found[:1]
}
