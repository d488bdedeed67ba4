package framelog

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/mulligan-dev/mulligan/internal/durable"
)

// Repair makes a damaged log writable again. Each damaged part is first kept in a file beside the log, named after it
// with ".damage-" and the offset, and then covered by a gap that every reader sees. A sound log is left as it is.
//
// Nobody may be writing: a [*BusyError] says who is.
func Repair(d durable.Dir, name, holder string) ([]Gap, error) {
	lock, err := hold(d, name, holder)
	if err != nil {
		return nil, fmt.Errorf("repair log: %w", err)
	}
	f, err := open(d, name, d.Overwrite)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("repair log: %w", err), lock.Close())
	}
	gaps, err := f.repair(d, name)
	if err != nil {
		err = fmt.Errorf("repair log %s: %w", f.path, err)
	}
	return gaps, errors.Join(err, f.f.Close(), lock.Close())
}

func (f *file) repair(d durable.Dir, name string) (gaps []Gap, err error) {
	for at := (state{end: fileHead}); ; {
		if at, err = f.scan(at, math.MaxInt64, func(Entry) bool { return true }); err != nil {
			return gaps, err
		}
		_, err = f.tail(at.end)
		var damage *DamageError
		if !errors.As(err, &damage) {
			return gaps, err
		}
		g := Gap{Block: damage.At, Size: damage.Next - damage.At}
		if damage.lost > at.next {
			g.Lost = damage.lost - at.next
		}
		if g.Size < blockHead+gapBody {
			return gaps, fmt.Errorf("%d bytes at %d are too few for a block: this is no log of ours", g.Size, g.Block)
		}
		if err := f.cover(d, name, g, at.next); err != nil {
			return gaps, err
		}
		gaps = append(gaps, g)
	}
}

// cover keeps what is there and puts a gap in its place.
func (f *file) cover(d durable.Dir, name string, g Gap, next uint64) error {
	old := make([]byte, g.Size)
	if _, err := f.f.ReadAt(old, g.Block); err != nil {
		return err
	}
	if err := durable.Replace(d, "."+name+".damage", name+".damage-"+strconv.FormatInt(g.Block, 10), old, nil); err != nil {
		return err
	}
	if _, err := f.f.WriteAt(f.salt.sealGap(g, next), g.Block); err != nil {
		return err
	}
	return f.f.Sync()
}
