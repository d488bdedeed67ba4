package freshimport

import (
	"fmt"
	"strings"
)

// withValue are the one-letter flags of Python that take a value, attached or as the next argument.
const withValue = "XWQ"

// flagSet is what the interpreter's own flags come to.
type flagSet struct {
	// kept are the flags that change what is imported or how, normalised to one flag an argument.
	kept []string
	// ignoreEnv (-E, -I) drops PYTHON variables; safePath (-I, -P) drops the script's folder.
	ignoreEnv, safePath bool
}

// take folds one flag letter into the set.
func (f *flagSet) take(letter byte, value string) {
	switch letter {
	case 'I':
		f.ignoreEnv, f.safePath = true, true
	case 'E':
		f.ignoreEnv = true
	case 'P':
		f.safePath = true
	}
	switch letter {
	case 'I', 'E', 'P', 's', 'S', 'B', 'O', 'R', 'b', '3':
		f.kept = append(f.kept, "-"+string(letter))
	case 'Q':
		if value != "" { // the interpreter refuses it
			f.kept = append(f.kept, "-Q"+value)
		}
	case 'X':
		// What only reports would fill the output.
		if name, _, _ := strings.Cut(value, "="); name != "importtime" && name != "showrefcount" && name != "presite" {
			f.kept = append(f.kept, "-X", value)
		}
	case 'W':
		// A warning turned into an error changes what an import does.
		f.kept = append(f.kept, "-W", value)
	}
}

// CheckFlags refuses interpreter flags that would make a probe run something else: only what [Parse] keeps may stand in
// a plan.
func CheckFlags(args []string) error {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-X" || a == "-W":
			i++
			if i == len(args) {
				return fmt.Errorf("%q has no value", a)
			}
		case len(a) > 2 && (strings.HasPrefix(a, "-X") || strings.HasPrefix(a, "-W") || strings.HasPrefix(a, "-Q")):
		case len(a) >= 2 && a[0] == '-' && strings.Trim(a[1:], "IEPsSBORb3uvqdt") == "":
		default:
			return fmt.Errorf("%q is no flag that a probe passes on: give only the interpreter's own import flags", a)
		}
	}
	return nil
}
