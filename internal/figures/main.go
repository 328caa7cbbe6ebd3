// Command figures reads what `go test -bench` printed, several runs of each
// benchmark, and sets the median and the spread of each figure beside its target,
// with the machine named. With -write it also records the table as a page. A
// missed figure is shown as missed, and so is one of which runs are missing.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

func main() {
	write := flag.String("write", "", "also record the table in this file, as docs/benchmarks.md")
	runs := flag.Int("runs", 1, "how many runs of each benchmark are read")
	flag.Parse()
	if err := report(*runs, *write); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

// report prints the table, and records it before it complains of missing runs.
func report(runs int, write string) error {
	found, err := parse(os.Stdin, os.Stderr)
	if err != nil {
		return err
	}
	rows, missing := table(found, runs)
	measured := fmt.Sprintf("Measured on %s, on %s.\n\n%s", machine(), time.Now().UTC().Format(time.DateOnly), rows)
	fmt.Println("\n" + measured)
	if write != "" {
		if err := record(write, measured); err != nil {
			return fmt.Errorf("record the table: %w", err)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("runs are missing:\n\t%s", strings.Join(missing, "\n\t"))
	}
	return nil
}

// byHand is the heading of what stays on the page as it is.
const byHand = "\n## Measured by hand\n"

// record puts what was measured onto a page, in the place of what was before.
func record(page, measured string) error {
	before, err := os.ReadFile(page)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	text := pageHead + measured
	if _, stays, ok := strings.Cut(string(before), byHand); ok {
		text += byHand + stays
	}
	return os.WriteFile(page, []byte(text), 0o644)
}

const pageHead = "# Benchmarks\n\n" +
	"Written by `make bench`, which runs the benchmarks of the loop and of the journal several times, one round after the other: a figure is the\n" +
	"median of its runs, with the lowest and the highest beside it, and the median says whether its target is met. Every figure stands beside\n" +
	"its yardstick from the same run; a missed one is shown as missed, and so are runs that are missing.\n" +
	"The lean loop is `internal/loopbench/lean`: net/http, a request that grows by what is appended to it, and a stream of which the few members\n" +
	"that matter are read. It keeps nothing. It and Pawl run in programs of their own (`internal/loopbench/drive`), with one processor each, against\n" +
	"a model server that has the other; Pawl's does what a program does that uses it: `Agent.Start` for each run, and all else by default.\n\n"

// machine names what the figures were measured on.
func machine() string {
	cpu := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d cores, %s/%s, %s", cpu, runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
}
