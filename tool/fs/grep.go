package fs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/pawlrun/pawl/tool"
	"github.com/pawlrun/pawl/tool/internal/search"
)

const (
	// maxMatches bounds the lines that one search returns.
	maxMatches = 200
	// maxSearched is the size in bytes of the largest file that is searched.
	maxSearched = 1 << 20
	// maxMatchText is how many bytes of a matching line are shown.
	maxMatchText = 250
)

type grepArgs struct {
	Pattern string `json:"pattern" jsonschema:"regular expression in RE2 syntax, matched line by line; (?i) at its beginning ignores case"`
	Path    string `json:"path,omitempty" jsonschema:"directory or file to search; the workspace when absent"`
	Include string `json:"include,omitempty" jsonschema:"pattern of the files to search, such as *.go or cmd/**/*.go"`
}

func (w *Workspace) grepTool() tool.Tool {
	t := tool.NewWithCall("fs.grep", "Search the text files of the workspace. Gives path:line:text, at most 200 lines; binary files, files above 1 MB, .git and what git ignores are left out.",
		withinCall(w, w.grep))
	t.Aliases = []string{"search"}
	w.reads(&t, "search for", pathOf, true)
	return t
}

func (w *Workspace) grep(ctx context.Context, c tool.Call, a grepArgs) (tool.Result, error) {
	pattern, err := search.Compile(a.Pattern)
	if err != nil {
		return tool.Result{}, invalid("the pattern is no RE2 regular expression: %v", err)
	}
	files, err := newInclude(a.Include)
	if err != nil {
		return tool.Result{}, err
	}
	start, err := w.resolve(cmp.Or(a.Path, "."))
	if err != nil {
		return tool.Result{}, err
	}
	s := grepping{w: w, pattern: pattern, redact: c.Redact}
	if info, err := w.root.Stat(start); err == nil && !info.IsDir() {
		return s.one(ctx, start)
	}
	k := walker{w: w, match: func(p string) bool { return files.match(below(start, p)) }, visit: func(p string, e fs.DirEntry) error {
		if !e.Type().IsRegular() {
			return nil
		}
		return s.file(ctx, p)
	}}
	k.respectIgnores(start, strings.TrimPrefix(a.Include, "./"))
	if err := k.walk(ctx, start); err != nil {
		return tool.Result{}, err
	}
	s.report()
	k.report(&s.out)
	return s.out.result(s.more), nil
}

// grepping collects the matches of one call.
type grepping struct {
	w       *Workspace
	pattern *search.Pattern
	// redact may be nil.
	redact func(string) string

	out  page
	hits int
	more bool

	large, binary, unread int
}

// one searches the one file that the call names, and returns the error if it cannot.
func (s *grepping) one(ctx context.Context, p string) (tool.Result, error) {
	f, info, err := s.w.open(p, os.O_RDONLY)
	if err != nil {
		return tool.Result{}, err
	}
	f.Close()
	if info.Size() > maxSearched {
		return tool.Result{}, invalid("%s has %d bytes; files above %d are not searched", quote(p), info.Size(), maxSearched)
	}
	if err := s.file(ctx, p); err != nil && !errors.Is(err, fs.SkipAll) {
		return tool.Result{}, err
	}
	if s.binary > 0 {
		return tool.Result{}, invalid("%s is a binary file", quote(p))
	}
	s.report()
	return s.out.result(s.more), nil
}

// file searches one file of a walk. A file that cannot be read is counted and is no
// error.
func (s *grepping) file(ctx context.Context, p string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	f, info, err := s.w.open(p, os.O_RDONLY)
	if err != nil {
		s.unread++
		return nil
	}
	defer f.Close()
	if info.Size() > maxSearched {
		s.large++
		return nil
	}
	data, err := load(ctx, p, f, maxSearched)
	switch {
	case err != nil:
		s.unread++
		return ctx.Err()
	case isBinary(data):
		s.binary++
		return nil
	}
	return s.text(ctx, p, data)
}

func (s *grepping) text(ctx context.Context, p string, data []byte) error {
	name, n := quote(p), 0
	for l := range bytes.Lines(data) {
		n++
		l = bytes.TrimRight(l, "\r\n")
		at, err := s.pattern.Find(ctx, l)
		if err != nil {
			return err
		}
		if at == nil {
			continue
		}
		if s.more = s.hits == maxMatches || !s.out.add(fmt.Sprintf("%s:%d:%s", name, n, s.excerpt(l, at[0]))); s.more {
			return fs.SkipAll
		}
		s.hits++
	}
	return nil
}

// excerpt returns the part of a line around a match. It does not cut a secret in half,
// because the redaction would miss the half.
func (s *grepping) excerpt(l []byte, at int) string {
	if len(l) > maxMatchText && s.redact != nil {
		before := s.redact(string(l[:at]))
		l = []byte(s.redact(string(l)))
		at = min(len(before), len(l))
	}
	if len(l) <= maxMatchText {
		return string(l)
	}
	from := max(0, min(at-maxMatchText/4, len(l)-maxMatchText))
	to := from + maxMatchText
	for from > 0 && !utf8.RuneStart(l[from]) {
		from--
	}
	for to < len(l) && !utf8.RuneStart(l[to]) {
		to++
	}
	text := string(l[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(l) {
		text += "…"
	}
	return text
}

func (s *grepping) report() {
	switch {
	case s.more:
		s.out.note("the first %d matching lines; there are more, so use a narrower pattern or path", s.hits)
	case s.hits == 0:
		s.out.note("no line matches")
	}
	if s.large > 0 {
		s.out.note("%d files above %d bytes were not searched", s.large, maxSearched)
	}
	if s.binary > 0 {
		s.out.note("%d binary files were not searched", s.binary)
	}
	if s.unread > 0 {
		s.out.note("%d files could not be read", s.unread)
	}
}

// include says which files to search. A pattern without a slash matches file names in
// any directory.
type include struct {
	re   *regexp.Regexp
	name bool
}

func newInclude(pattern string) (include, error) {
	if pattern == "" {
		return include{}, nil
	}
	re, err := compileGlob(strings.TrimPrefix(pattern, "./"))
	return include{re: re, name: !strings.Contains(pattern, "/")}, err
}

func (i include) match(p string) bool {
	if i.re == nil {
		return true
	}
	if i.name {
		p = path.Base(p)
	}
	return i.re.MatchString(p)
}
