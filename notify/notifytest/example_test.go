package notifytest_test

import (
	"context"
	"fmt"

	"github.com/mulligan-dev/mulligan/notify"
	"github.com/mulligan-dev/mulligan/notify/notifytest"
)

func ExampleRecorder() {
	var seen notifytest.Recorder
	row := notify.PauseRow(notify.PauseFacts{Reason: "storm_window"})
	for range 2 { // delivery is at least once
		if err := seen.Notify(context.Background(), row); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(len(seen.Rows()), "row,", seen.Toasts(), "toast")
	fmt.Println(seen.Rows()[0].Title)
	// Output:
	// 1 row, 1 toast
	// Restarts are paused: too many restarts in a short time
}
