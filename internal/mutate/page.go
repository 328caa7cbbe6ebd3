package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	figuresHead = "| package | mutants | killed | lived | of them harmless | not covered | killed, % | measured | took |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	survivors   = "| file | code | mutation | why it changes nothing |\n| --- | --- | --- | --- |\n"
)

// page is docs/mutation.md: what surrounds the table of figures, its rows, and the
// mutants that change nothing.
type page struct {
	before, after string
	figures       []string
	known         []known
}

// known are mutants that change nothing: of some kinds, at an operator in a piece of code.
type known struct {
	file, code string
	kinds      []string
}

var knownRow = regexp.MustCompile("(?m)^\\| ([^ ]+) \\| `(.+)` \\| ([A-Z_, ]+) \\| ")

func readPage(name string) (*page, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	before, rest, ok := strings.Cut(string(text), figuresHead)
	_, list, both := strings.Cut(rest, survivors)
	if !ok || !both {
		return nil, fmt.Errorf("%s does not have its two tables", name)
	}
	p := &page{before: before, after: rest}
	for line := range strings.Lines(rest) {
		if !strings.HasPrefix(line, "| ") {
			break
		}
		p.figures = append(p.figures, line)
		p.after = strings.TrimPrefix(p.after, line)
	}
	for _, m := range knownRow.FindAllStringSubmatch(list, -1) {
		p.known = append(p.known, known{file: m[1], code: strings.ReplaceAll(m[2], `\|`, "|"), kinds: strings.Split(m[3], ", ")})
	}
	return p, nil
}

// harmless reports whether the page lists a mutant as one that changes nothing.
func (p *page) harmless(m mutant) bool {
	return slices.ContainsFunc(p.known, func(k known) bool {
		at := strings.Index(m.text, k.code) + 1
		return k.file == m.file && slices.Contains(k.kinds, m.kind) && at > 0 && at <= m.column && m.column < at+len(k.code)
	})
}

// row is the place of a package's figures, -1 for none.
func (p *page) row(pkg string) int {
	return slices.IndexFunc(p.figures, func(r string) bool { return strings.HasPrefix(r, "| `"+pkg+"` |") })
}

// set puts the figures of a package in the place of those before.
func (p *page) set(pkg string, t tally, day time.Time, took time.Duration) {
	row := fmt.Sprintf("| `%s` | %d | %d | %d | %d | %d | %.1f | %s | %s |\n", pkg, t.all(), t.killed, t.lived, t.harmless, t.notCovered, t.share(),
		day.UTC().Format(time.DateOnly), took.Round(time.Second))
	if i := p.row(pkg); i >= 0 {
		p.figures[i] = row
	} else {
		p.figures = append(p.figures, row)
	}
	slices.Sort(p.figures)
}

func (p *page) write(name string) error {
	return os.WriteFile(name, []byte(p.before+figuresHead+strings.Join(p.figures, "")+p.after), 0o644)
}
