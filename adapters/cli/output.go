package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mulligan-dev/mulligan/adapters/config"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// printJSON prints one document for people and programs alike.
func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// printLine prints one document on one line.
func printLine(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// amount is "1 record" or "5 records".
func amount(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// printText prints a result for people. An error of standard output is an error of the command: half a result that ends
// well would be taken for a whole one.
func printText(w io.Writer, text string) error {
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}

// style is how text is laid out on standard output: as wide as the terminal, in colour unless NO_COLOR is set.
func (e Env) style() report.Style {
	var s report.Style
	if size, err := unix.IoctlGetWinsize(int(e.Stdout.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
		s.Width = int(size.Col)
		s.Color = e.get("NO_COLOR") == "" && e.get("TERM") != "dumb"
	}
	if n, err := strconv.Atoi(e.get("COLUMNS")); err == nil && n > 0 {
		s.Width = n
	}
	return s
}

// view are the options of what is shown. A state that cannot be read shows as not paused: the pass says what is wrong
// with it, and so does doctor.
func (s *shared) view(ctx context.Context, h *host, c config.Config) report.Options {
	o := report.Options{Now: stamp.Wall(time.Now(), 0), Zone: time.Local, MaxDefer: c.MaxDefer, Paused: !c.Enabled, Program: s.called()}
	if state, err := h.home.Breaker().State(ctx); err == nil && state.Paused != nil {
		o.Paused = true
	}
	return o
}

// table lays cells out in columns, two spaces apart; the last column is not padded.
func table(rows [][]string) string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], report.Width(c))
		}
	}
	var b strings.Builder
	for _, row := range rows {
		for i, c := range row {
			b.WriteString(c)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-report.Width(c)+2))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// parseAge reads a time span: what Go reads ("90m", "36h"), or whole days ("7d").
func parseAge(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.Atoi(days)
		if err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usage("%q is no time span: write it like 30m, 12h or 7d", s)
	}
	return d, nil
}

// isTerminal tells whether people see what is written to f.
func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}
