package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/classify/pack"
)

// classifyCommand shows the classifier alone: no state folder, no config, nothing is decided. It is how a host tries its
// own failure texts, and how the classifier is measured.
type classifyCommand struct {
	*shared
	managed, workspaces []string
	exit                int
	signal              string
	json, explain       bool
	packs               []string
}

func newClassify(s *shared) *cobra.Command {
	k := &classifyCommand{shared: s}
	c := &cobra.Command{
		Use:   "classify [-j] [--explain] [--pack FILE] [--managed NAME=DIR] [--workspace DIR] [FILE...]",
		Short: "Say what failure texts look like, deciding nothing",
		Long: "Say what failure texts look like: an update's doing (skew) or not. A FILE holds cases as JSON objects, or plain\n" +
			"text; without a FILE standard input is read. A case has an id, a text (or text_base64), managed (modules, roots,\n" +
			"bindings), workspace_roots and exit (code, signal). For plain text --managed and --workspace say whose code is\n" +
			"what: NAME is a module, DIR the folder it lies in. Where one of the flags for plain text is given, no FILE is JSON.\n\n" +
			"With --explain every verdict is followed by the lines that decided, marked, and by what was ruled out and why; with\n" +
			"-j too they are byte offsets into the text. --pack adds the failures that a YAML file describes. Of a long file only\n" +
			"the end is read.\n\n" +
			"With -j there is one JSON object for each case, on a line of its own. A file that cannot be read is an error that\n" +
			"names the file and the field; the others go on, and the exit code is 1.",
		Args: s.args(cobra.ArbitraryArgs),
		RunE: s.run(k.run),
	}
	c.Flags().StringArrayVar(&k.managed, "managed", nil, "managed code for plain text, `NAME=DIR`; repeatable")
	c.Flags().StringArrayVar(&k.workspaces, "workspace", nil, "a `DIR` of user code for plain text; repeatable")
	c.Flags().IntVar(&k.exit, "exit", 1, "the exit `CODE` for plain text")
	c.Flags().StringVar(&k.signal, "signal", "", "the `SIGNAL` for plain text, such as SIGKILL")
	c.Flags().BoolVar(&k.explain, "explain", false, "say what decided, and what was ruled out")
	c.Flags().StringArrayVar(&k.packs, "pack", nil, "a `FILE` of signatures in YAML; repeatable")
	jsonFlag(c, &k.json)
	return c
}

// caseView is one verdict, in the order in which people read it.
type caseView struct {
	ID string `json:"id"`
	classify.Verdict
	// Explanation is there with --explain, and Skipped where the beginning of a long file was not read: offsets and lines
	// count from there.
	Explanation *classify.Explanation `json:"explanation,omitempty"`
	Skipped     int64                 `json:"skipped_bytes,omitempty"`

	text []byte
}

// caseError is a case that could not be read.
type caseError struct {
	File  string `json:"file"`
	ID    string `json:"id,omitempty"`
	Field string `json:"field,omitempty"`
	Err   string `json:"error"`
}

func (e *caseError) Error() string {
	at := e.File
	if e.Field != "" {
		at += ": " + e.Field
	}
	return at + ": " + e.Err
}

func (k *classifyCommand) run(c *cobra.Command, args []string) error {
	plain, err := k.plain()
	if err != nil {
		return err
	}
	more, err := k.readPacks(k.packs)
	if err != nil {
		return err
	}
	judge, err := classifier(more...)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		args = []string{"-"}
	}
	asText := len(k.managed) > 0 || len(k.workspaces) > 0 || c.Flags().Changed("exit") || k.signal != ""
	failed := false
	for _, file := range args {
		err := k.file(file, asText, plain, func(id string, in classify.Input, skipped int64) error {
			if !k.explain {
				return k.print(caseView{ID: id, Verdict: judge.Classify(in)})
			}
			v, e := judge.Explain(in)
			return k.print(caseView{ID: id, Verdict: v, Explanation: &e, Skipped: skipped, text: in.Text})
		})
		var bad *caseError
		if errors.As(err, &bad) {
			failed = true
			fmt.Fprintf(k.env.Stderr, "%s: %s\n", c.CommandPath(), bad)
			if k.json {
				err = printLine(k.env.Stdout, bad)
			} else {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	if failed {
		return silent(CodeFailed)
	}
	return nil
}

// packLimit bounds a file of signatures.
const packLimit = 1 << 20

// readPacks makes a runtime of each file of signatures. A mistake in one is the caller's, as in the config.
func (s *shared) readPacks(files []string) ([]classify.Runtime, error) {
	var out []classify.Runtime
	var bad []error
	for _, file := range files {
		path, err := s.env.path(file)
		if err != nil {
			return nil, err
		}
		p, err := readPack(file, path)
		if err != nil {
			bad = append(bad, err)
			continue
		}
		out = append(out, p)
	}
	if len(bad) > 0 {
		return nil, usage("%w", errors.Join(bad...))
	}
	return out, nil
}

func readPack(file, path string) (*pack.Pack, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read signature pack %s: %s", file, plainError(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, packLimit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read signature pack %s: %s", file, plainError(err))
	case len(data) > packLimit:
		return nil, fmt.Errorf("read signature pack %s: more than %d bytes: split it", file, packLimit)
	}
	return pack.Read(file, data)
}

// plain is what the flags say about plain text.
func (k *classifyCommand) plain() (classify.Input, error) {
	in := classify.Input{Exit: classify.Exit{Code: k.exit}}
	if k.signal != "" {
		name, ok := signalName(k.signal)
		if !ok {
			return in, usage("--signal is %q, want the name of a signal, such as SIGKILL, or its number", k.signal)
		}
		in.Exit = classify.Exit{Code: -1, Signal: name} // a process that a signal ended has no exit code
	}
	for _, m := range k.managed {
		module, dir, ok := strings.Cut(m, "=")
		if !ok || module == "" || dir == "" {
			return in, usage("--managed is %q, want NAME=DIR: a module and the folder it lies in", m)
		}
		// The folder may be of another machine: it is taken as it is written.
		in.Roots = append(in.Roots, classify.Root{Name: module, Dirs: []string{dir}, Modules: []string{module}})
	}
	in.Workspaces = k.workspaces
	return in, nil
}

// signalName is a signal's name as the system writes it: of its number, and of a name without its prefix or in small
// letters, as kill(1) takes them.
func signalName(s string) (name string, ok bool) {
	if n, err := strconv.Atoi(s); err == nil {
		name = unix.SignalName(unix.Signal(n))
		return name, name != ""
	}
	name = "SIG" + strings.TrimPrefix(strings.ToUpper(s), "SIG")
	return name, unix.SignalNum(name) != 0
}

// file reads one file and hands its cases on.
func (k *classifyCommand) file(file string, asText bool, plain classify.Input, each caseFunc) error {
	id := file
	var r io.Reader = k.env.Stdin
	if file == "-" {
		id = "stdin"
	} else {
		path, err := k.env.path(file)
		if err != nil {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return &caseError{File: file, Err: plainError(err)}
		}
		defer f.Close()
		r = f
	}
	return readCases(r, file, id, asText, plain, each)
}

// plainError leaves the path out of an error that is printed behind the file's name.
func plainError(err error) string {
	var at *os.PathError
	if errors.As(err, &at) {
		return at.Err.Error()
	}
	return err.Error()
}

func (k *classifyCommand) print(v caseView) error {
	if k.json {
		return printLine(k.env.Stdout, v)
	}
	what := string(v.Disposition)
	if v.Family != classify.NoFamily {
		what += " " + string(v.Family)
	}
	if v.Reason != "" {
		what += " " + string(v.Reason)
	}
	about := v.Module
	if v.Symbol != "" {
		about += ":" + v.Symbol
	}
	said := fmt.Sprintf("%s: %s (%s) %s\n", v.ID, what, cmp.Or(v.Exception, "no exception"), about)
	if v.Refusal != nil {
		said += "  refused by: " + refusalText(v.Refusal) + "\n"
	}
	if v.Explanation != nil {
		said += explanationText(v, isTerminal(k.env.Stdout) && k.env.get("NO_COLOR") == "")
	}
	return printText(k.env.Stdout, said)
}
