// Command figures reads what `go test -bench` printed and sets each figure
// beside its target, with the machine named. With -write it also records the
// table in docs/benchmarks.md. A missed figure is shown as missed.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// target is one promised figure: a metric of a benchmark and its bound.
type target struct {
	what   string
	bench  string
	metric string
	// bound is 0 for a figure that nobody promised.
	bound float64
	// least says that the figure must be at least the bound.
	least bool
	unit  string
}

var targets = []target{
	{what: "CPU per cycle against the bare loop, in memory, one run", bench: "BenchmarkCycle/memory/runs=1", metric: "ratio", bound: 1.6, unit: "x"},
	{what: "CPU per cycle against the bare loop, in memory, 64 runs", bench: "BenchmarkCycle/memory/runs=64", metric: "ratio", bound: 2.2, unit: "x"},
	{what: "CPU per cycle against the bare loop, every event durable, one run", bench: "BenchmarkCycle/durable/runs=1", metric: "ratio", bound: 2.5, unit: "x"},
	{what: "CPU per cycle against the bare loop, every event durable, 64 runs", bench: "BenchmarkCycle/durable/runs=64", metric: "ratio", bound: 3.5, unit: "x"},
	{what: "allocations a cycle above the bare loop, in memory", bench: "BenchmarkCycle/memory/runs=1", metric: "extra-allocs/cycle", bound: 300, unit: "allocs"},
	{what: "20,000 deltas decoded and published to one subscriber, CPU against Scanner with encoding/json", bench: "BenchmarkTwentyThousandDeltas", metric: "ratio", bound: 1, unit: "x"},
	{what: "allocations per delta published", bench: "BenchmarkPublishDelta/1", metric: "allocs/op", bound: 1, unit: "allocs"},
	{what: "one durable event alone, p50 against a raw 4 KiB append and fsync", bench: "BenchmarkOneEventAlone", metric: "ratio", bound: 1.5, unit: "x"},
	{what: "64 writers, events a second", bench: "BenchmarkWriters64/events-per-append=1", metric: "events/s", bound: 20_000, least: true, unit: "events/s"},
	{what: "64 writers, p99", bench: "BenchmarkWriters64/events-per-append=1", metric: "p99-ns", bound: 5e6, unit: "ns"},
	{what: "a thousand runs at once that never wait for a model, one file, CPU per cycle", bench: "BenchmarkThousandRuns", metric: "cpu-ns/cycle", unit: "ns"},
	{what: "the same, p99 of an append", bench: "BenchmarkThousandRuns", metric: "append-p99-ns", unit: "ns"},
	{what: "the same, memory of a run whose tool is at work", bench: "BenchmarkThousandRuns", metric: "KiB/run", unit: "KiB"},
	{what: "400-cycle run on disk, beyond 1.5 times its content", bench: "BenchmarkRunOnDisk", metric: "B/event-beyond-1.5x-content", bound: 600, unit: "B/event"},
	{what: "400-cycle run, CPU per request byte", bench: "BenchmarkLongRun", metric: "cpu-ns/request-byte", bound: 1, unit: "ns"},
	{what: "one more cycle on 200,000 tokens, projected, estimated and encoded with the memo warm", bench: "BenchmarkOneMoreCycleOn200kTokens", metric: "ms/cycle", bound: 1, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, by default", bench: "BenchmarkCompact1000Messages/default", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, rolling-window", bench: "BenchmarkCompact1000Messages/rolling-window", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, periodic-summary", bench: "BenchmarkCompact1000Messages/periodic-summary", metric: "ms", bound: 20, unit: "ms"},
	{what: "compaction of 1,000 messages without the model call, summarize-older", bench: "BenchmarkCompact1000Messages/summarize-older", metric: "ms", bound: 20, unit: "ms"},
	{what: "Messages decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/anthropic", metric: "ratio", bound: 1, unit: "x"},
	{what: "Messages decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/anthropic", metric: "times-less", bound: 4, least: true, unit: "x"},
	{what: "Responses decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/responses", metric: "ratio", bound: 1, unit: "x"},
	{what: "Responses decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/responses", metric: "times-less", bound: 4, least: true, unit: "x"},
	{what: "Chat Completions decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/chat", metric: "ratio", bound: 1, unit: "x"},
	{what: "Chat Completions decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/chat", metric: "times-less", bound: 4, least: true, unit: "x"},
	{what: "Gemini decoder, CPU against Scanner with encoding/json", bench: "BenchmarkAgainstScannerAndEncodingJSON/gemini", metric: "ratio", bound: 1, unit: "x"},
	{what: "Gemini decoder, times less CPU than the official SDK", bench: "BenchmarkAgainstTheOfficialSDK/gemini", metric: "times-less", bound: 4, least: true, unit: "x"},
	{what: "pawl version", bench: "BenchmarkBinary", metric: "version-ms", bound: 20, unit: "ms"},
	{what: "the stripped binary", bench: "BenchmarkBinary", metric: "MiB", bound: 25, unit: "MiB"},
}

type result struct {
	metrics map[string]float64
}

var cpuSuffix = regexp.MustCompile(`-\d+$`)

// parse reads benchmark lines: name, iterations, then value and unit pairs.
func parse(r io.Reader, echo io.Writer) (map[string]result, error) {
	results := map[string]result{}
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line := sc.Text()
		fmt.Fprintln(echo, line)
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cpuSuffix.ReplaceAllString(fields[0], "")
		res := result{metrics: map[string]float64{}}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				res.metrics[fields[i+1]] = v
			}
		}
		results[name] = res
	}
	return results, sc.Err()
}

// row is one line of the table.
func (t target) row(results map[string]result) string {
	sign := "<="
	if t.least {
		sign = ">="
	}
	want := fmt.Sprintf("%s %s %s", sign, number(t.bound), t.unit)
	if t.bound == 0 {
		want = "none"
	}
	v, ok := results[t.bench].metrics[t.metric]
	if !ok {
		return fmt.Sprintf("| %s | %s | not measured | | |", t.what, want)
	}
	if t.bound == 0 {
		return fmt.Sprintf("| %s | %s | %s %s | | |", t.what, want, number(v), t.unit)
	}
	verdict := "met"
	if t.least && v < t.bound || !t.least && v > t.bound {
		verdict = "**missed**"
	}
	return fmt.Sprintf("| %s | %s | %s %s | %.2f | %s |", t.what, want, number(v), t.unit, v/t.bound, verdict)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

func table(results map[string]result) string {
	var b strings.Builder
	b.WriteString("| figure | target | measured | measured / target | |\n| --- | --- | --- | --- | --- |\n")
	for _, t := range targets {
		b.WriteString(t.row(results) + "\n")
	}
	return b.String()
}

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

func main() {
	write := flag.String("write", "", "also record the table in this file")
	flag.Parse()
	results, err := parse(os.Stdin, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
	page := fmt.Sprintf("Measured on %s, on %s.\n\n%s", machine(), time.Now().UTC().Format(time.DateOnly), table(results))
	fmt.Println("\n" + page)
	if *write == "" {
		return
	}
	page = "# Benchmarks\n\nWritten by `make bench`. Every figure stands beside its yardstick from the same run; a missed one is shown as missed.\n" +
		"The bare loop is `internal/loopbench`: net/http, bufio.Scanner and encoding/json, nothing kept.\n\n" + page
	if err := os.WriteFile(*write, []byte(page), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}
