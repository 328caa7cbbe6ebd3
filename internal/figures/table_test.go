package main

import (
	"slices"
	"strings"
	"testing"
)

func TestAFigureIsSetBesideItsTargetByItsMedian(t *testing.T) {
	ratio := target{what: "CPU", bound: 2.5, unit: "x"}
	rate := target{what: "rate", bound: 20_000, least: true, unit: "events/s"}
	p99 := target{what: "p99", bound: 5e6, unit: "ns"}
	unpromised := target{what: "memory", unit: "KiB"}
	for name, c := range map[string]struct {
		target target
		got    values
		wanted int
		row    string
	}{
		"the median meets it though a run did not":  {ratio, values{2.2, 3.3, 2.45}, 3, "| CPU | <= 2.5 x | 2.45 x | 2.2 x to 3.3 x | 3 | 0.98 | met |"},
		"the median misses it though a run did not": {ratio, values{2.75, 2.2, 3.3}, 3, "| CPU | <= 2.5 x | 2.75 x | 2.2 x to 3.3 x | 3 | 1.10 | **missed** |"},
		"exactly at the bound":                      {ratio, values{2.5}, 1, "| CPU | <= 2.5 x | 2.5 x | | 1 | 1.00 | met |"},
		"at least":                                  {rate, values{40_662}, 1, "| rate | >= 20000 events/s | 40662 events/s | | 1 | 2.03 | met |"},
		"less than at least":                        {rate, values{19_999}, 1, "| rate | >= 20000 events/s | 19999 events/s | | 1 | 1.00 | **missed** |"},
		"times in the unit that they fill":          {p99, values{3_776_100, 990_000, 12_000_000}, 3, "| p99 | <= 5 ms | 3.7761 ms | 990 µs to 12 ms | 3 | 0.76 | met |"},
		"nothing promised":                          {unpromised, values{66.1, 65}, 2, "| memory | none | 65.55 KiB | 65 KiB to 66.1 KiB | 2 | | |"},
		"runs are missing":                          {ratio, values{2, 3}, 5, "| CPU | <= 2.5 x | 2.5 x | 2 x to 3 x | **2 of 5** | 1.00 | met |"},
		"all runs are missing":                      {ratio, nil, 5, "| CPU | <= 2.5 x | **not measured** | | **0 of 5** | | |"},
	} {
		t.Run(name, func(t *testing.T) {
			if row := c.target.row(c.got, c.wanted); row != c.row {
				t.Errorf("the row is\n%s\nwant\n%s", row, c.row)
			}
		})
	}
}

func TestNanosecondsAreWrittenInTheUnitThatTheyFill(t *testing.T) {
	for _, c := range []struct {
		value float64
		unit  string
		want  string
	}{
		{0.4224, "ns", "0.4224 ns"},
		{999, "ns", "999 ns"},
		{1_000, "ns", "1 µs"},
		{323_180, "ns", "323.18 µs"},
		{5e6, "ns", "5 ms"},
		{-2e6, "ns", "-2 ms"},
		{40_662, "events/s", "40662 events/s"},
	} {
		if got := quantity(c.value, c.unit); got != c.want {
			t.Errorf("%v %s is written %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestEveryTargetHasARowAndMissingRunsAreSaid(t *testing.T) {
	found := results{}
	for _, t := range targets {
		if found[t.bench] == nil {
			found[t.bench] = map[string]values{}
		}
		found[t.bench][t.metric] = values{1, 2, 3}
		if t.once {
			found[t.bench][t.metric] = values{1}
		}
	}
	page, missing := table(found, 3)
	if rows := strings.Count(page, "\n") - 2; rows != len(targets) {
		t.Errorf("%d rows for %d targets:\n%s", rows, len(targets), page)
	}
	if missing != nil {
		t.Errorf("runs are said to be missing though all are there: %q", missing)
	}

	found["BenchmarkBinary"]["version-ms"] = values{1, 2}
	delete(found, "BenchmarkPublishDelta/1")
	_, missing = table(found, 3)
	if want := []string{"allocations per delta published: 0 of 1 runs", "pawl version: 2 of 3 runs"}; !slices.Equal(missing, want) {
		t.Errorf("missing are %q, want %q", missing, want)
	}
}
