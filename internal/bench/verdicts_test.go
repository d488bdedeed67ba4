package bench

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mulligan-dev/mulligan/classify"
)

var updateVerdicts = flag.Bool("update-verdicts", false, "write the verdicts of now to testdata/verdicts.txt")

const verdictsFile = "testdata/verdicts.txt"

// stream is a log without a failure in which kinds of lines take turns, or are all of one kind where one is not negative.
func stream(r *rand.Rand, size, one int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		kinds, n := healthy, one
		if one < 0 {
			if r.IntN(25) == 0 {
				kinds = decoys
			}
			n = r.IntN(len(kinds))
		}
		fmt.Fprintf(&b, kinds[n], r.IntN(24), r.IntN(60), r.IntN(60), r.IntN(1000), r.IntN(90000), r.IntN(900))
	}
	return b.Bytes()
}

// settings are a text as it is, and with a log around it in the ways that short cuts of the classifier tell apart.
func settings(text []byte) [][]byte {
	h := fnv.New64a()
	h.Write(text)
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	alone := text
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text[:len(text):len(text)], '\n')
	}
	one := int(h.Sum64() % uint64(len(healthy)))
	front, behind := stream(r, classify.TailLimit+4096, -1), stream(r, 500+r.IntN(3500), -1)
	return [][]byte{
		alone,
		inARow(front, text),
		inARow(text, behind),
		inARow(front, text, behind),
		inARow(front, text, stream(r, 12<<10, -1)),
		inARow(stream(r, 20<<10, one), text, stream(r, 2000, one)),
		inARow(bytes.ReplaceAll(front, []byte(" INFO "), []byte(" \x1b[32mINFO\x1b[0m ")), text),
		bytes.ReplaceAll(inARow(front, text), []byte("\n"), []byte("\r\n")),
	}
}

// inARow is one text behind the other.
func inARow(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// TestVerdictsAreTheSame: nothing that makes the classifier quick has changed a verdict. Every labelled text, alone and with
// a log around it, is judged as when testdata/verdicts.txt was written, in every field of the verdict. Texts that are not in
// the file, or have changed, are passed over. After a change that is meant to change verdicts: -update-verdicts.
func TestVerdictsAreTheSame(t *testing.T) {
	t.Parallel()
	judge := everyRuntime(t)
	files, err := filepath.Glob("../../classify/*/testdata/corpus/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../classify/*/testdata/corpus/*/*.json")
	if err != nil {
		t.Fatal(err)
	}
	was := map[string]string{}
	if b, err := os.ReadFile(verdictsFile); err == nil {
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			if text, verdicts, ok := strings.Cut(s.Text(), " "); ok {
				was[text] = verdicts
			}
		}
	} else if !*updateVerdicts {
		t.Fatal(err)
	}
	var out bytes.Buffer
	held := 0
	for _, file := range append(files, more...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		k, err := classify.DecodeCase(data)
		if err != nil {
			continue // no case, but a list of them or a label
		}
		text, verdicts := fnv.New64a(), []string{}
		fmt.Fprintf(text, "%s %+v", k.ID, k.Input)
		for _, s := range settings(k.Input.Text) {
			k.Input.Text = s
			v := judge.Classify(k.Input)
			refusal := classify.Refusal{}
			if v.Refusal != nil {
				refusal = *v.Refusal
			}
			v.Refusal = nil
			h := fnv.New32a()
			fmt.Fprintf(h, "%+v %+v", v, refusal)
			verdicts = append(verdicts, fmt.Sprintf("%s/%s/%s/%08x", v.Disposition, v.Family, v.Reason, h.Sum32()))
		}
		key, got := fmt.Sprintf("%s/%016x", k.ID, text.Sum64()), strings.Join(verdicts, " ")
		fmt.Fprintf(&out, "%s %s\n", key, got)
		if want, ok := was[key]; ok && !*updateVerdicts {
			held++
			if got != want {
				t.Errorf("%s:\n%s, want\n%s", k.ID, got, want)
			}
		}
	}
	if *updateVerdicts {
		if err := os.WriteFile(verdictsFile, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if held < 300 {
		t.Errorf("%d labelled texts are in %s, want more: see -update-verdicts", held, verdictsFile)
	}
}
