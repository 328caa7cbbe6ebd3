package main

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEveryRunOfABenchmarkIsRead(t *testing.T) {
	const printed = `goos: linux
pkg: github.com/pawlrun/pawl/internal/loopbench
BenchmarkCycle/durable/runs=1
BenchmarkCycle/durable/runs=1-2  	 7	 900 cpu-ns/cycle	 2.75 ratio
--- FAIL: BenchmarkLongRun
BenchmarkWriters64/events-per-append=1-2 	 9	 48660 ns/op	 34000 events/s
PASS
ok  	github.com/pawlrun/pawl/internal/loopbench	77.6s
BenchmarkCycle/durable/runs=1-2  	 7	 800 cpu-ns/cycle	 2.25 ratio
BenchmarkCycle/durable/runs=1-2  	 7	 1.5e+03 cpu-ns/cycle
`
	var echoed strings.Builder
	got, err := parse(strings.NewReader(printed), &echoed)
	if err != nil {
		t.Fatal(err)
	}
	want := results{
		"BenchmarkCycle/durable/runs=1":          {"cpu-ns/cycle": {900, 800, 1500}, "ratio": {2.75, 2.25}},
		"BenchmarkWriters64/events-per-append=1": {"ns/op": {48660}, "events/s": {34000}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("what was read (-want +got):\n%s", d)
	}
	if echoed.String() != printed {
		t.Errorf("what the benchmarks print is not shown on: %q", echoed.String())
	}
}

func TestALineTooLongToReadIsAnError(t *testing.T) {
	if _, err := parse(strings.NewReader(strings.Repeat("x", 1<<20)), io.Discard); err == nil {
		t.Error("parse has read on behind a line that it could not hold")
	}
}

func TestTheMedianIsTheMiddleOfTheRunsInAnyOrder(t *testing.T) {
	for name, c := range map[string]struct {
		runs                    values
		median, lowest, highest float64
	}{
		"one run":                  {values{3}, 3, 3, 3},
		"an odd number":            {values{9, 1, 4, 100, -2}, 4, -2, 100},
		"an even number":           {values{4, 1, 2, 100}, 3, 1, 100},
		"an outlier moves nothing": {values{2.4, 2.2, 50}, 2.4, 2.2, 50},
	} {
		t.Run(name, func(t *testing.T) {
			before := append(values{}, c.runs...)
			got := []float64{c.runs.median(), c.runs.lowest(), c.runs.highest()}
			if d := cmp.Diff([]float64{c.median, c.lowest, c.highest}, got); d != "" {
				t.Errorf("median, lowest, highest (-want +got):\n%s", d)
			}
			if d := cmp.Diff(before, c.runs); d != "" {
				t.Errorf("the runs were put in another order (-before +after):\n%s", d)
			}
		})
	}
}
