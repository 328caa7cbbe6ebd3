package fs

import (
	"path"
	"regexp"
	"strings"
)

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
