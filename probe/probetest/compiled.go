package probetest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// C writes shared objects with a C compiler, for probers that look through objects and run none of their code. cc is its
// path.
func C(cc string) Language {
	return Language{PathVariable: "LD_LIBRARY_PATH", Inert: true, Write: func(dir, module string, does Behaviour, arg string) error {
		source, link := "", []string{}
		switch does {
		case Note:
			source = "#include <stdio.h>\n__attribute__((constructor)) static void run(void) { FILE *f = fopen(" + strconv.Quote(arg) +
				", \"a\"); if (f) { fputs(\"" + module + "\\n\", f); fclose(f); } }\n"
		case Raise:
			source = "extern int " + arg + "(void);\nint use(void) { return " + arg + "(); }\n"
		case Load: // an object that is there for the linker alone
			link = []string{"-Wl,--no-as-needed", "-l:" + arg + ".so"}
		default:
			return fmt.Errorf("%s: %w", does, ErrCannot)
		}
		return compile(dir, module+".so", func(work string) []string {
			file := filepath.Join(work, module+".c")
			if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
				return nil
			}
			if len(link) > 0 {
				empty := filepath.Join(work, "empty.c")
				stub := filepath.Join(work, arg+".so")
				if err := os.WriteFile(empty, nil, 0o600); err != nil {
					return nil
				}
				if err := exec.Command(cc, "-shared", "-o", stub, empty, "-Wl,-soname,"+arg+".so").Run(); err != nil {
					return nil
				}
				link = append([]string{"-L" + work}, link...)
			}
			return append([]string{cc, "-shared", "-fPIC", "-o", filepath.Join(work, module+".so"), file}, link...)
		})
	}}
}

// compile runs a compiler in a folder of its own, and moves what it makes to where it belongs.
func compile(dir, result string, command func(work string) []string) error {
	work, err := os.MkdirTemp("", "probetest-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }() // what cannot be removed is in the folder for temporary files
	args := command(work)
	if len(args) == 0 {
		return fmt.Errorf("write the sources of %s", result)
	}
	if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w: %s", result, err, out)
	}
	data, err := os.ReadFile(filepath.Join(work, result))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, result), data, 0o600)
}
