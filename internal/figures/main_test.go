package main

import (
	"io"
	"strings"
	"testing"
)

func TestAFigureIsSetBesideItsTargetAndAMissIsShown(t *testing.T) {
	const printed = `goos: linux
BenchmarkCycle/memory/runs=1-2   	 7	 500 cpu-ns/cycle	 1.25 ratio
BenchmarkCycle/durable/runs=1-2  	 7	 900 cpu-ns/cycle	 2.75 ratio
BenchmarkWriters64/events-per-append=1-2 	 9	 48660 ns/op	 34000 events/s
BenchmarkThousandRuns-2   	       1	        58.5 KiB/run
PASS
`
	results, err := parse(strings.NewReader(printed), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	page := table(results)
	for _, want := range []string{
		"in memory, one run | <= 1.6 x | 1.25 x | 0.78 | met |",
		"every event durable, one run | <= 2.5 x | 2.75 x | 1.10 | **missed** |",
		"events a second | >= 20000 events/s | 34000 events/s | 1.70 | met |",
		"memory of a run whose tool is at work | none | 58.5 KiB | | |",
		"pawl version | <= 20 ms | not measured | | |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
