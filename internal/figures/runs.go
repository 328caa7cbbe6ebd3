package main

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// results holds, by benchmark and metric, one value for each run that printed it.
type results map[string]map[string]values

// values are what the runs of one benchmark gave for one metric.
type values []float64

var cpuSuffix = regexp.MustCompile(`-\d+$`)

// parse reads benchmark lines: name, iterations, then value and unit pairs. A
// benchmark that ran several times has a line for each.
func parse(r io.Reader, echo io.Writer) (results, error) {
	found := results{}
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		line := sc.Text()
		fmt.Fprintln(echo, line)
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		name := cpuSuffix.ReplaceAllString(fields[0], "")
		if found[name] == nil {
			found[name] = map[string]values{}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			if v, err := strconv.ParseFloat(fields[i], 64); err == nil {
				found[name][fields[i+1]] = append(found[name][fields[i+1]], v)
			}
		}
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read what the benchmarks printed: %w", err)
	}
	return found, nil
}

// median is the middle value, or the mean of the two in the middle.
func (v values) median() float64 {
	sorted := slices.Sorted(slices.Values(v))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func (v values) lowest() float64  { return slices.Min(v) }
func (v values) highest() float64 { return slices.Max(v) }
