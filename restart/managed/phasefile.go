package managed

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger/run"
	"github.com/mulligan-dev/mulligan/probe/canary/inside"
)

// phasePath is where a program marks its phases, "" for a run that marks none. It is registered with the run: whoever
// finds the run without its runner has to look there, however soon that was killed.
func (h *Host) phasePath(r run.Run) string {
	if r.Recipe.Marking != run.Phases {
		return ""
	}
	return filepath.Join(h.cfg.Dir, r.ID+".phase")
}

// makePhaseFile makes the file in which a program marks its phases, if it does.
func makePhaseFile(path string) error {
	if path == "" {
		return nil
	}
	if err := put(path, []byte(run.MarksHead+"\n"+string(run.Booting)+"\n")); err != nil {
		return fmt.Errorf("make the phase file: %w", err)
	}
	return nil
}

// Mark appends a phase to the file that a managed program finds in MULLIGAN_PHASE_FILE. It is what `mulligan phase`
// does; a program may as well append the line itself. A file that is not there is no run's that is under way, and nobody
// would see the mark: that is an error.
func Mark(file string, p run.Phase) error {
	if _, err := run.ParsePhase(string(p)); err != nil {
		return err
	}
	if file == "" {
		return fmt.Errorf("%s is not set: start the program with `mulligan exec --phases`", PhaseFileVar)
	}
	if file == os.DevNull || inside.Inert() {
		return nil // a replacement that was started held, or a canary: its marks decide nothing
	}
	if err := appendLine(file, string(p)); err != nil {
		return fmt.Errorf("mark phase %s: %w", p, err)
	}
	return nil
}

// ReadPhase is the high-water mark of a phase file; unknown when the file cannot be read, was overwritten, or holds a
// line that is no phase.
func ReadPhase(file string) run.Phase {
	f, err := os.Open(file)
	if err != nil {
		return run.UnknownPhase
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, run.MarksLimit+1))
	if err != nil {
		return run.UnknownPhase
	}
	return run.ReadMarks(text)
}

// childEnv is the recipe's environment with the phase file as the only word of ours.
func childEnv(env []string, phases string) []string {
	out := CleanEnv(env)
	if phases != "" {
		out = append(out, PhaseFileVar+"="+phases)
	}
	return out
}

// runVars are the variables by which a runner is told what it runs. They are consumed: a program that is started by one
// never sees them, so that its own children do not take themselves for the run.
var runVars = []string{"MULLIGAN_RUN", "MULLIGAN_LAUNCH", "MULLIGAN_LINEAGE", PhaseFileVar}

// CleanEnv is an environment without Mulligan's run and launch variables.
func CleanEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		k, _, _ := strings.Cut(kv, "=")
		return slices.Contains(runVars, k)
	})
}
