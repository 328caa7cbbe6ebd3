package resolve

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pawlrun/pawl/event"
)

const (
	// maxNames is how many files a pattern of names may stand for before they are no
	// longer told apart.
	maxNames = 50
	// maxLooked is how many entries of directories are held against patterns.
	maxLooked = 4096
)

// givenGlob notes the files whose names are given to a program of which it is not
// known what it does with them, as the shell will find them. Of too many it notes
// the directory that they lie below. Where there are none a program is given the
// pattern itself, and may make a file of that name.
func (r *reader) givenGlob(a word, dirs []string) {
	if dir, _, below := cutLast(a.prefix, "/"); below {
		r.path(word{text: dir + "/"}, dirs, event.PathUse{Given: true})
	}
	for _, dir := range dirs {
		if dir == anywhere && !filepath.IsAbs(a.names) {
			r.unknown(a, event.PathUse{Given: true})
			continue
		}
		found, ok := r.expand(absolute(dir, a.names))
		if !ok {
			r.path(a, []string{dir}, event.PathUse{Given: true})
		}
		for _, name := range found {
			r.path(word{text: name}, []string{dir}, event.PathUse{Given: true, Found: true})
		}
	}
}

// expand gives the files whose absolute names match a pattern, and perhaps some
// more: a bracket in it stands for anything. It is false where that is too much to
// look at.
func (r *reader) expand(pattern string) (names []string, ok bool) {
	names = []string{"/"}
	for part := range strings.SplitSeq(pattern, "/") {
		if part == "" || part == "." {
			continue
		}
		if r.looked += len(names); r.looked > maxLooked {
			return nil, false
		}
		if before, _, bracket := strings.Cut(part, "["); bracket {
			part = before + "*"
		}
		if !strings.ContainsAny(part, "*?") {
			var next []string
			for _, dir := range names {
				name := dir + "/" + part // not cleaned: ".." behind a link leads elsewhere
				if _, err := os.Lstat(name); err == nil {
					next = append(next, name)
				}
			}
			names = next
			continue
		}
		var next []string
		for _, dir := range names {
			entries, _ := os.ReadDir(dir)
			if r.looked += len(entries); r.looked > maxLooked {
				return nil, false
			}
			for _, e := range entries {
				hidden := strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(part, ".")
				if matched, err := path.Match(part, e.Name()); (matched || err != nil) && !hidden {
					next = append(next, dir+"/"+e.Name())
				}
			}
		}
		if names = next; len(names) > maxNames {
			return nil, false
		}
	}
	return names, true
}
