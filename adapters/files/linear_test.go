package files_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/mulligan-dev/mulligan/adapters/files"
	"github.com/mulligan-dev/mulligan/ledger"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

type call struct {
	op  string // create, get, update
	key int
}

// answer is the revision that a call saw or made, 0 for no record; refused is a lost claim.
type answer struct {
	revision uint64
	refused  bool
}

// register is what one record must look like from outside: a revision that is made once and counts up.
var register = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		by := map[int][]porcupine.Operation{}
		for _, o := range history {
			by[o.Input.(call).key] = append(by[o.Input.(call).key], o)
		}
		var out [][]porcupine.Operation
		for _, os := range by {
			out = append(out, os)
		}
		return out
	},
	Init: func() any { return uint64(0) },
	Step: func(state, input, output any) (bool, any) {
		rev, a := state.(uint64), output.(answer)
		switch input.(call).op {
		case "create":
			if a.refused {
				return rev > 0, rev
			}
			return rev == 0, uint64(1)
		case "update":
			if rev == 0 {
				return a.revision == 0, rev
			}
			return a.revision == rev+1, rev + 1
		}
		return a.revision == rev, rev
	},
	DescribeOperation: func(in, out any) string { return fmt.Sprint(in, " -> ", out) },
}

// TestRecordsAreLinearizable lets two homes create, read and change a few records at once, and looks for an order of the
// calls that explains every answer.
func TestRecordsAreLinearizable(t *testing.T) {
	t.Parallel()
	dir := home(t).Dir()
	const clients, calls, keys = 6, 40, 3
	var mu sync.Mutex
	var history []porcupine.Operation
	var all sync.WaitGroup
	start := time.Now()
	for c := range clients {
		h := openIn(t, dir)
		all.Go(func() {
			for i := range calls {
				in := call{[]string{"get", "update", "get", "create"}[(i+c)%4], (i*7 + c) % keys}
				from := time.Since(start)
				out, err := do(t, h, in)
				to := time.Since(start)
				if err != nil {
					t.Errorf("%v: %v", in, err)
				}
				mu.Lock()
				history = append(history, porcupine.Operation{ClientId: c, Input: in, Output: out, Call: int64(from), Return: int64(to)})
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if got := porcupine.CheckOperationsTimeout(register, history, 2*time.Minute); got != porcupine.Ok {
		t.Errorf("no order of the calls explains what they saw: %s", got)
	}
}

func do(t *testing.T, h *files.Home, in call) (out answer, err error) {
	k := numbered(in.key)
	var r ledger.Record
	switch in.op {
	case "create":
		err = h.Ledger().Create(t.Context(), record(t, k, h.Instances().Self()))
		if errors.Is(err, ledger.ErrExists) {
			return answer{refused: true}, nil
		}
		return out, err
	case "get":
		r, err = h.Ledger().Get(t.Context(), k)
	case "update":
		r, err = h.Ledger().Update(t.Context(), k, func(cur ledger.Record, _ stamp.Time) (ledger.Record, error) {
			cur.Revision++
			return cur, nil
		})
	}
	if errors.Is(err, ledger.ErrNotFound) {
		err = nil
	}
	return answer{revision: r.Revision}, err
}
