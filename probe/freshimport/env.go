package freshimport

import (
	"slices"
	"strings"
)

// allowed are the variables that a probe keeps: what decides where an interpreter, its libraries and the user's own
// packages are found, and how text and certificates are read. PYTHONPATH is not among them: the plan's Path carries it.
var allowed = map[string]bool{
	"PATH": true, "HOME": true, "USER": true, "LOGNAME": true, "LANG": true, "LANGUAGE": true, "TZ": true, "TZDIR": true,
	"VIRTUAL_ENV": true, "CONDA_PREFIX": true,
	"LD_LIBRARY_PATH":    true,
	"SSL_CERT_FILE":      true,
	"SSL_CERT_DIR":       true,
	"REQUESTS_CA_BUNDLE": true,
}

// python are the variables of that language.
var python = map[string]bool{
	"PYTHONHOME": true, "PYTHONPLATLIBDIR": true, "PYTHONUSERBASE": true, "PYTHONNOUSERSITE": true,
	"PYTHONOPTIMIZE": true, "PYTHONDONTWRITEBYTECODE": true, "PYTHONPYCACHEPREFIX": true,
	"PYTHONUTF8": true, "PYTHONIOENCODING": true, "PYTHONCOERCECLOCALE": true, "PYTHONWARNINGS": true,
	"PYTHONDEVMODE": true, "PYTHONHASHSEED": true, "PYTHONCASEOK": true, "PYTHON_GIL": true, "PYTHON_JIT": true,
}

// Env is the part of a run's environment that a probe of it keeps: PATH, HOME, USER, LOGNAME, LANG, LANGUAGE, LC_*, TZ,
// TZDIR, VIRTUAL_ENV, CONDA_PREFIX, LD_LIBRARY_PATH, SSL_CERT_FILE, SSL_CERT_DIR, REQUESTS_CA_BUNDLE, and those PYTHON
// variables that change what an import finds or how it is compiled. Everything else stays out: keys and tokens, what
// the run was told about itself, and Mulligan's own variables. The order is kept; of duplicates the last counts.
func Env(env []string) []string {
	return filterEnv(env, func(key string) bool { return allowed[key] || python[key] })
}

// filterEnv keeps the variables that keep names, and the locale's.
func filterEnv(env []string, keep func(key string) bool) []string {
	at := map[string]int{}
	out := []string{}
	for _, kv := range env {
		key, _, ok := strings.Cut(kv, "=")
		if !ok || !keep(key) && !strings.HasPrefix(key, "LC_") {
			continue
		}
		if i, dup := at[key]; dup {
			out[i] = kv
			continue
		}
		at[key] = len(out)
		out = append(out, kv)
	}
	return out
}

// EnvWith is [Env] without what belongs to Python, and with the named variables besides: the environment of a command that
// a host declares.
func EnvWith(env, names []string) []string {
	return filterEnv(env, func(key string) bool { return allowed[key] || slices.Contains(names, key) })
}
