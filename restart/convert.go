package restart

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/mulligan-dev/mulligan/classify"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness"
)

// The ledger imports none of the packages whose findings it keeps, so that its format is its own; these are the bridges.

func witnessOf(e witness.Evidence) ledger.Witness {
	return ledger.Witness{Kind: string(e.Kind), Root: e.Root, From: e.From, To: e.To, When: e.When, Update: e.Update,
		Culprit: culpritOf(e.Culprit), Detail: e.Detail}
}

func culpritOf(c *witness.Culprit) *ledger.Culprit {
	if c == nil {
		return nil
	}
	return &ledger.Culprit{Root: c.Root, Commit: c.Commit, Subject: c.Subject, When: c.When, Path: c.Path, Name: c.Name}
}

func signatureOf(s ledger.Signature) classify.Verdict {
	return classify.Verdict{
		Disposition: classify.Skew, // nothing else leaves an open record
		Family:      classify.Family(s.Family), Reason: classify.Reason(s.Reason), Exception: s.Exception,
		Module: s.Module, Symbol: s.Symbol, ManagedModules: s.Modules, Root: s.Root, Asked: s.Asked, Message: s.Message,
	}
}

func roots(rs []witness.Root) []classify.Root {
	out := make([]classify.Root, len(rs))
	for i, r := range rs {
		out[i] = r.Root
		if len(r.Declared) == 0 {
			continue
		}
		// Runtimes print a file as it was asked for, through the link, or as it was resolved, in either release.
		out[i].Dirs = slices.Concat(r.Dirs, r.Declared)
		for _, d := range r.Declared {
			if now, err := filepath.EvalSymlinks(d); err == nil && !slices.Contains(out[i].Dirs, now) {
				out[i].Dirs = append(out[i].Dirs, now)
			}
		}
	}
	return out
}

// keyOf is the identity key of a root in a list, empty when it is not there or unknown.
func keyOf(ids []witness.Identity, root string) string {
	for _, i := range ids {
		if i.Root == root {
			return i.Key()
		}
	}
	return ""
}

// within reports whether path lies in dir, by whole components.
func within(path, dir string) bool {
	rel, err := filepath.Rel(filepath.Clean(dir), filepath.Clean(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func first(s []string) string {
	if len(s) == 0 {
		return ""
	}
	return s[0]
}
