package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/pawlrun/pawl/internal/requirements"
)

// outcome counts how the subtests of a test ended, and whether it passed itself.
type outcome struct {
	passed, skipped int
	ok              bool
}

// ran reports whether something of a test ran and nothing of it failed.
func (o *outcome) ran() bool { return o != nil && o.ok && (o.passed > 0 || o.skipped == 0) }

// uncounted prints the rows of a requirements page none of whose tests ran: they were
// skipped, or are of another suite.
func (r *report) uncounted(out io.Writer, page string) error {
	sections, err := requirements.ReadSource(page)
	if err != nil {
		return err
	}
	total, counted := 0, 0
	var missing []string
	for _, s := range sections {
		for _, row := range s.Rows {
			total++
			ran := false
			for _, name := range row.Tests {
				ran = ran || r.outcomes[name].ran()
			}
			if ran {
				counted++
			} else {
				missing = append(missing, row.ID)
			}
		}
	}
	fmt.Fprintf(out, "%d of %d rows of %s count: a test of theirs ran and was not skipped\n", counted, total, page)
	if len(missing) > 0 {
		fmt.Fprintf(out, "%d rows do not count: %s\n", len(missing), strings.Join(missing, " "))
	}
	return nil
}

// claimed is the name that a requirements page has for a test.
func claimed(module, pkg, test string) string {
	rel := strings.TrimPrefix(strings.TrimPrefix(pkg, module), "/")
	if rel == "" {
		rel = "."
	}
	return rel + "." + test
}
