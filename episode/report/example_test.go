package report_test

import (
	"fmt"
	"os"
	"strings"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
)

func ExampleBuild() {
	e := episode.Group(story())[0]
	r := report.Build(e, row(), report.Options{Now: clock(20, 0)})
	fmt.Println(r.Headline)
	for _, a := range r.Agents[:2] {
		fmt.Println(a.Name, "-", a.Now)
	}
	// Output:
	// 6 agents hit by an update of acme: 1 finished, 1 running again, 1 being put back, 1 waiting, 1 broke again, 1 left alone
	// coder - finished at 14:11
	// reviewer - running again since 14:02
}

func ExampleBuildCard() {
	c := report.BuildCard(story()[4], report.Options{Now: clock(20, 0)})
	text := c.Text(report.Style{Width: 80})
	first, _, _ := strings.Cut(text, "\n\n")
	fmt.Println(first)
	fmt.Println(c.GoOn)
	// Output:
	// planner web/lin-e
	// left alone: work had begun
	// To go on, look at it with: cd /srv/work/lin-e; then start it again: mulligan retry lin-e
}

func ExampleBuildList() {
	l := report.BuildList(story()[:2], answers(), nil, report.Options{Now: clock(20, 0)})
	_, _ = os.Stdout.WriteString(l.Text(report.Style{Width: 80}))
	// Output:
	// ↻ acme 4f1e2d3c4b5a wire: drop the old frame
	//   14:11:14 · 1 finished, 1 running again
	//   coder     web  14:02:14  finished at 14:11
	//   reviewer  web  14:02:15  running again since 14:02
	//
	// no episode
	//   writer    web  14:06:00  left alone: dismissed by a person
	//   scout     api  14:05:00  left alone: rate limit reached
}
