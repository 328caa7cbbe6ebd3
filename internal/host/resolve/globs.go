package resolve

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

const (
	// maxNames bounds the number of files that match the wildcards of a line; more are
	// not listed.
	maxNames = 50
	// maxLooked bounds the number of directory entries that are compared with patterns.
	maxLooked = 4096
)

// glob records the files that match a wildcard, as the shell will expand it, and the
// directory of the pattern: if no file matches, the command gets the pattern itself and
// may create a file with that name.
func (r *reader) glob(w word, dirs []string, use event.PathUse) {
	base, rest, below := globBase(w.names)
	if below {
		r.path(word{text: base}, dirs, event.PathUse{Given: use.Given || use.Write})
	}
	for _, dir := range dirs {
		if dir == anywhere && !filepath.IsAbs(w.names) {
			r.unknown(w, use)
			continue
		}
		found, ok := r.expand(absolute(dir, w.names))
		many := r.globbed+len(found) > maxNames
		if !ok || many {
			r.manyNames(dir, base, rest, use)
		} else {
			r.globbed += len(found)
		}
		for _, name := range found {
			if many && r.straight(dir, name) {
				continue
			}
			each := use
			each.Found = true
			r.path(word{text: name}, []string{dir}, each)
		}
	}
}

// intoDirectory records the files that are created in a directory under the names that
// a pattern matches.
func (r *reader) intoDirectory(w word, to string, dirs []string, into event.PathUse) {
	for _, dir := range dirs {
		found, ok := r.expand(absolute(dir, w.names))
		if !ok || dir == anywhere || r.globbed+len(found) > maxNames {
			r.manyNames(dir, to+"/", path.Base(w.names), into)
			continue
		}
		r.globbed += len(found)
		for _, name := range found {
			each := into
			each.Found = true
			r.path(word{text: to + "/" + path.Base(name)}, []string{dir}, each)
		}
	}
}

// globBase splits a pattern before its first part with a wildcard.
func globBase(names string) (base, rest string, below bool) {
	at := strings.LastIndexByte(names[:strings.IndexAny(names+"*", "*?[")], '/')
	return names[:at+1], names[at+1:], at >= 0
}

// manyNames records a pattern that matches too many files to list.
func (r *reader) manyNames(dir, base, rest string, use event.PathUse) {
	parts := strings.Split(rest, "/")
	if slices.Contains(parts, "..") || dir == anywhere && !filepath.IsAbs(base) {
		r.unknown(word{text: base + rest}, use)
		return
	}
	for i, part := range parts {
		parts[i] = withoutBrackets(part)
	}
	at := r.ws.PathFrom(dir, base)
	use.Path, use.Outside, use.Pattern = path.Join(at.Path, path.Join(parts...)), at.Outside, true
	r.use(use)
}

// straight reports whether no link leads from a name to its file.
func (r *reader) straight(dir, name string) bool {
	return r.ws.PathFrom(dir, name) == r.ws.within(filepath.Clean(name))
}

// withoutBrackets replaces the brackets of a pattern's part by wildcards.
func withoutBrackets(part string) string {
	if before, _, bracket := strings.Cut(part, "["); bracket {
		return before + "*"
	}
	return part
}

// expand returns the files whose absolute names match a pattern, and possibly more,
// because a bracket matches anything. It returns false if there are too many to check.
func (r *reader) expand(pattern string) (names []string, ok bool) {
	names = []string{"/"}
	for part := range strings.SplitSeq(pattern, "/") {
		if part == "" || part == "." {
			continue
		}
		if r.looked += len(names); r.looked > maxLooked {
			return nil, false
		}
		part = withoutBrackets(part)
		if !strings.ContainsAny(part, "*?") {
			var next []string
			for _, dir := range names {
				name := dir + "/" + part // not cleaned, because ".." after a link leads elsewhere
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
		names = next
	}
	return names, true
}
