package episode

import (
	"crypto/sha256"
	"encoding/hex"
	"path"
	"strconv"
	"strings"

	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/witness"
)

// Cause is what is known, at the claim and after the quiet check, of what broke a lineage. Only the strongest part that
// is there goes into the id.
type Cause struct {
	// Root is the root that the witness or the signature belongs to. Where it lies counts, not what it is called.
	Root witness.Root
	// Culprit is the commit that changed the missing name's presence.
	Culprit *witness.Culprit
	// Update is the id of the journal row that meets the run's life and changed the root.
	Update string
	// Quiet is the root's identity key as the quiet check read it.
	Quiet string
	// Lineage is the record's own key, for a death that nothing else can be said of.
	Lineage ledger.Key
}

// ID is the episode that a lineage belongs to. It is fixed at the claim, after quiet, and never rewritten:
//
//   - "c-": by the culprit commit and the tree it lies in;
//   - "u-": by the journal row, when there is no culprit;
//   - "q-": by the tree and the identity it came to rest at, when there is no row either;
//   - "l-": by the lineage itself.
//
// What an agent booted with takes no part, so agents that started at different commits and were broken by one update
// share the id. The failure's text takes none either, so agents that only read alike do not.
//
// The id is lower case, safe as a file name and at most 80 bytes long. Its middle is for people; the digest at its end
// is over the whole cause, so that two trees, or two lineages of two projects, do not meet by a like name.
func ID(c Cause) string {
	tree := place(c.Root)
	switch {
	case c.Culprit != nil && c.Culprit.Commit != "":
		commit := shortCommit(c.Culprit.Commit)
		return id("c", slug(commit, 12)+"-"+slug(label(c.Root), 32), commit, tree)
	case c.Update != "":
		return id("u", slug(c.Update, 40), c.Update)
	case c.Quiet != "":
		return id("q", slug(c.Quiet, 12)+"-"+slug(label(c.Root), 32), c.Quiet, tree)
	}
	return id("l", slug(c.Lineage.Project, 20)+"-"+slug(c.Lineage.Lineage, 36), c.Lineage.Project, c.Lineage.Lineage)
}

// place names the tree. A root that declares no place (an image digest, a host's own kind) is told by its name.
func place(r witness.Root) string {
	if len(r.Dirs) == 0 && r.Package == "" {
		return "name:" + r.Kind + ":" + r.Name
	}
	return "place:" + r.Place()
}

// label is what people read of the tree. It comes from the place too, so that two hosts that call one tree by two names
// get one id.
func label(r witness.Root) string {
	switch {
	case r.Package != "":
		return r.Package
	case len(r.Dirs) == 1:
		return path.Base(strings.ReplaceAll(r.Dirs[0], `\`, "/"))
	case len(r.Dirs) > 1:
		first := r.Dirs[0]
		for _, d := range r.Dirs {
			first = min(first, d)
		}
		return path.Base(strings.ReplaceAll(first, `\`, "/"))
	}
	return r.Name
}

// shortCommit is the first twelve digits of a hash: enough within one tree, and the same whether a full hash or an
// abbreviated one was at hand. Other revisions stay whole.
func shortCommit(rev string) string {
	rev = strings.ToLower(rev)
	if len(rev) < 12 || strings.Trim(rev, "0123456789abcdef") != "" {
		return rev
	}
	return rev[:12]
}

// id joins the parts and a digest of what they stand for; each piece is framed by its length.
func id(kind, readable string, whole ...string) string {
	h := sha256.New()
	h.Write([]byte(kind))
	for _, w := range whole {
		h.Write([]byte(strconv.Itoa(len(w)) + ":" + w))
	}
	digest := hex.EncodeToString(h.Sum(nil))[:8]
	if readable = strings.Trim(readable, "-"); readable == "" {
		return kind + "-" + digest
	}
	return kind + "-" + readable + "-" + digest
}

// Own reports that the episode is one lineage's own: nothing is known of an update that broke it.
func (e Episode) Own() bool { return strings.HasPrefix(e.ID, "l-") }

// slug is s in lower-case letters, digits and single dashes, at most limit bytes.
func slug(s string, limit int) string {
	var b strings.Builder
	for _, c := range []byte(strings.ToLower(s)) {
		switch {
		case b.Len() == limit:
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b.WriteByte(c)
		case b.Len() > 0 && b.String()[b.Len()-1] != '-':
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
