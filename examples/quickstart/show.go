package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/mulligan-dev/mulligan/episode"
	"github.com/mulligan-dev/mulligan/episode/report"
	"github.com/mulligan-dev/mulligan/ledger/stamp"
)

// show prints what a person reads: the ledger, one lineage in full, and the report of the update that broke most.
func (h *host) show(ctx context.Context) error {
	style := report.Style{Color: isTerminal(os.Stdout)}
	opts := report.Options{Now: stamp.Wall(time.Now(), 0)}
	records, damaged, err := h.healer.Records(ctx)
	if err != nil {
		return err
	}
	answers, err := h.healer.Answers(ctx)
	if err != nil {
		return err
	}
	head("The ledger")
	fmt.Print(report.BuildList(records, answers, damaged, opts).Text(style))

	scout, err := h.record(ctx, "scout")
	if err != nil {
		return err
	}
	head("One card")
	fmt.Print(report.BuildCard(scout, opts).Text(style))

	head("The episode's report")
	for _, e := range episode.Group(records) {
		if e.ID != scout.Episode {
			continue
		}
		for row, err := range h.home.Updates().Rows(ctx) {
			if err != nil {
				return err
			}
			if row.ID == e.Update {
				fmt.Print(report.Build(e, &row, opts).Text(style))
			}
		}
	}

	head("Look around")
	fmt.Printf("  go run ./adapters/cli/mulligan --home %s\n", h.home.Dir())
	fmt.Printf("  go run ./adapters/cli/mulligan --home %s show warden\n", h.home.Dir())
	fmt.Printf("  ls %s\n", filepath.Join(h.home.Dir(), scout.Evidence))
	return nil
}

func head(s string) { fmt.Printf("\n── %s\n\n", s) }

func isTerminal(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}
