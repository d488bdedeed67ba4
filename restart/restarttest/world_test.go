package restarttest_test

import (
	"testing"
	"time"

	"github.com/mulligan-dev/mulligan/restart/restarttest"
)

func TestStory(t *testing.T) {
	t.Parallel()
	w := restarttest.New(t, restarttest.Config{})
	scout := w.Boot(restarttest.Run{Name: "scout"})
	w.Update("acme", "c2", restarttest.Change{Removes: []string{"acme.wire:Frame"}})
	scout.Die(restarttest.TornImport("acme.wire:Frame"))
	res, err := w.Pass()
	t.Logf("%+v %v %s", res, err, scout.Stands())
	w.Advance(31 * time.Second)
	res, err = w.Pass()
	t.Logf("%+v %v %s", res, err, scout.Stands())
	t.Logf("%+v", w.Starts())
	w.Latest("scout").Done()
	res, err = w.Pass()
	t.Logf("%+v %v %s %+v", res, err, scout.Stands(), w.Rows())
}
