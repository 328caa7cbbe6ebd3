package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

const tableHead = `| figure | target | median | lowest to highest | runs | median / target | |
| --- | --- | --- | --- | --- | --- | --- |
`

// table sets each figure beside its target and says of which the runs are
// missing: each is to have so many, or one where it is measured once.
func table(found results, runs int) (page string, missing []string) {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, t := range targets {
		got, wanted := found[t.bench][t.metric], runs
		if t.once {
			wanted = 1
		}
		if len(got) < wanted {
			missing = append(missing, fmt.Sprintf("%s: %d of %d runs", t.what, len(got), wanted))
		}
		b.WriteString(t.row(got, wanted) + "\n")
	}
	return b.String(), missing
}

// row is one line of the table. The median is what is held against the target.
func (t target) row(got values, wanted int) string {
	if len(got) == 0 {
		return cells(t.what, t.want(), "**not measured**", "", fmt.Sprintf("**0 of %d**", wanted), "", "")
	}
	spread, runs := "", strconv.Itoa(len(got))
	if len(got) > 1 {
		spread = quantity(got.lowest(), t.unit) + " to " + quantity(got.highest(), t.unit)
	}
	if len(got) < wanted {
		runs = fmt.Sprintf("**%d of %d**", len(got), wanted)
	}
	median := got.median()
	share := ""
	if t.bound != 0 {
		share = fmt.Sprintf("%.2f", median/t.bound)
	}
	return cells(t.what, t.want(), quantity(median, t.unit), spread, runs, share, t.verdict(median))
}

func (t target) want() string {
	switch {
	case t.bound == 0:
		return "none"
	case t.least:
		return ">= " + quantity(t.bound, t.unit)
	default:
		return "<= " + quantity(t.bound, t.unit)
	}
}

func (t target) verdict(v float64) string {
	switch {
	case t.bound == 0:
		return ""
	case t.least && v < t.bound, !t.least && v > t.bound:
		return "**missed**"
	default:
		return "met"
	}
}

func cells(texts ...string) string {
	var b strings.Builder
	b.WriteString("|")
	for _, text := range texts {
		if text != "" {
			b.WriteString(" " + text)
		}
		b.WriteString(" |")
	}
	return b.String()
}

// quantity writes a value with its unit; nanoseconds as the unit that they fill.
func quantity(v float64, unit string) string {
	if unit == "ns" {
		switch {
		case math.Abs(v) >= 1e6:
			v, unit = v/1e6, "ms"
		case math.Abs(v) >= 1e3:
			v, unit = v/1e3, "µs"
		}
	}
	return strconv.FormatFloat(v, 'g', 5, 64) + " " + unit
}
