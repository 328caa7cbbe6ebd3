package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inside reports whether a path is a directory or lies below it.
func inside(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// around gives the largest trees below root that hold none of the holes. Links
// are left out: where they lead to is judged by its own name.
func around(root string, holes []string) []string {
	split := false
	for _, hole := range holes {
		if inside(root, hole) {
			return nil
		}
		split = split || inside(hole, root)
	}
	if !split {
		return []string{root}
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil
	}
	var trees []string
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			trees = append(trees, around(filepath.Join(root, e.Name()), holes)...)
		}
	}
	return trees
}

// resolved is the one name of an absolute path that exists.
func resolved(path string) (string, bool) {
	if !filepath.IsAbs(path) {
		return "", false
	}
	real, err := filepath.EvalSymlinks(path)
	return real, err == nil
}

// existing resolves paths and drops those that do not exist.
func existing(paths []string) []string {
	var found []string
	for _, p := range paths {
		if real, ok := resolved(p); ok {
			found = append(found, real)
		}
	}
	return found
}

// outermost drops every path that lies in another one.
func outermost(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(paths, func(other string) bool { return other != path && inside(path, other) })
	})
}
