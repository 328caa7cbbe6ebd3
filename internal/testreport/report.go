package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// record is a line of `go test -json`, as `go doc test2json` describes it.
type record struct {
	Action     string
	Package    string
	ImportPath string // of a build
	Test       string
	Output     string
	Elapsed    float64
}

// name is the test, or the package where the line is about the package.
func (r record) name() string {
	if r.Test == "" {
		return r.Package + r.ImportPath
	}
	return path.Base(r.Package) + "." + r.Test
}

// skip is a reason for which tests were skipped.
type skip struct {
	reason string
	count  int
	tests  []string // without their subtests, each once
}

// report collects what a run of the tests said.
type report struct {
	out, log io.Writer
	said     map[string][]string // output by test, until its result is known
	failures [][]string
	skips    []skip
	passed   int
	failed   int
	// running are the packages whose tests have begun and not ended.
	running map[string]bool
	// outcomes are those of the tests, by the names that a requirements page has for them.
	outcomes map[string]*outcome
}

func newReport(out, log io.Writer) *report {
	return &report{out: out, log: log, said: map[string][]string{}, outcomes: map[string]*outcome{}, running: map[string]bool{}}
}

func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := r.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the output of go test: %w", err)
		}
	}
}

func (r *report) line(line []byte) error {
	var rec record
	if err := json.Unmarshal(line, &rec); err != nil || rec.Action == "" {
		// go test writes some complaints of its own as plain text.
		rec = record{Action: "output", Package: "go test", Output: string(line)}
		_, _ = r.out.Write(line)
	}
	key := rec.Package + rec.ImportPath + " " + rec.Test
	switch rec.Action {
	case "output", "build-output":
		r.said[key] = append(r.said[key], rec.Output)
		if gate.MatchString(rec.Output) {
			fmt.Fprintln(r.out, strings.TrimSpace(rec.Output))
		}
		if _, err := io.WriteString(r.log, rec.Output); err != nil {
			return fmt.Errorf("write the log: %w", err)
		}
		return nil
	case "start":
		r.running[rec.Package] = true
	case "pass", "skip", "fail", "build-fail":
		if rec.Test == "" {
			delete(r.running, rec.Package)
		}
		r.result(rec, r.said[key])
		delete(r.said, key)
	}
	return nil
}

// gate is the summary line of a test over many fixtures.
var gate = regexp.MustCompile(`gate .* passed`)

func (r *report) result(rec record, said []string) {
	r.note(rec)
	switch {
	case rec.Action == "build-fail" || rec.Action == "fail":
		if rec.Test != "" {
			r.failed++
		} else if rec.Action == "fail" {
			fmt.Fprintf(r.out, "FAIL\t%s\t%.1fs\n", rec.Package, rec.Elapsed)
		}
		r.failures = append(r.failures, append([]string{"--- " + rec.name() + "\n"}, said...))
	case rec.Test == "":
		if rec.Action == "pass" {
			fmt.Fprintf(r.out, "ok\t%s\t%.1fs\n", rec.Package, rec.Elapsed)
		}
	case rec.Action == "skip":
		r.skip(rec, reason(said))
	default:
		r.passed++
	}
}

// note takes in how a test or one of its subtests ended.
func (r *report) note(rec record) {
	test, sub, isSub := strings.Cut(rec.Test, "/")
	if test == "" {
		return
	}
	name := claimed(module, rec.Package, test)
	o := r.outcomes[name]
	if o == nil {
		o = &outcome{}
		r.outcomes[name] = o
	}
	switch {
	case !isSub:
		o.ok = rec.Action == "pass"
	case strings.Contains(sub, "/"): // what it is part of says the same
	case rec.Action == "pass":
		o.passed++
	case rec.Action == "skip":
		o.skipped++
	}
}

func (r *report) skip(rec record, reason string) {
	i := slices.IndexFunc(r.skips, func(s skip) bool { return s.reason == reason })
	if i < 0 {
		i = len(r.skips)
		r.skips = append(r.skips, skip{reason: reason})
	}
	s := &r.skips[i]
	s.count++
	name, _, _ := strings.Cut(rec.name(), "/")
	if !slices.Contains(s.tests, name) {
		s.tests = append(s.tests, name)
	}
}

// reason is what a skipped test said, without the lines that go test adds.
func reason(said []string) string {
	var words []string
	for _, s := range said {
		s = strings.TrimSpace(s)
		if s == "" || strings.HasPrefix(s, "=== ") || strings.HasPrefix(s, "--- SKIP") {
			continue
		}
		words = append(words, place.ReplaceAllString(s, ""))
	}
	if len(words) == 0 {
		return "no reason given"
	}
	return strings.Join(words, " ")
}

// place is the file and line that go test puts before a message.
var place = regexp.MustCompile(`^[\w.-]+\.go:\d+: `)

// shown bounds what is printed of one failure; the log has the rest.
const shown = 200

func (r *report) finish() error {
	for _, f := range r.failures {
		if cut := len(f) - shown; cut > 0 {
			f = slices.Concat(f[:shown/2], []string{fmt.Sprintf("... %d lines ...\n", cut)}, f[len(f)-shown/2:])
		}
		fmt.Fprint(r.out, strings.Join(f, ""))
	}
	skipped := 0
	for _, s := range r.skips {
		skipped += s.count
		fmt.Fprintf(r.out, "skipped %d, because %s: %s\n", s.count, s.reason, strings.Join(s.tests, " "))
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, r.failed, skipped)
	switch {
	case len(r.failures) > 0:
		return errors.New("tests failed")
	case len(r.running) > 0:
		return fmt.Errorf("the tests of %s have begun and not ended", strings.Join(slices.Sorted(maps.Keys(r.running)), ", "))
	case r.passed == 0:
		return errors.New("no test ran")
	}
	return nil
}
