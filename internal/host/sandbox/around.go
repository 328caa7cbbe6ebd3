package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// inside reports whether a path is a directory or below it.
func inside(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}

// around returns the largest trees below root that contain none of the holes. It omits
// links, because their targets are judged by their own names.
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

// resolved returns the canonical name of an absolute path that exists.
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

// outermost drops every path that is within another one.
func outermost(paths []string) []string {
	paths = slices.Clone(paths)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(paths, func(other string) bool { return other != path && inside(path, other) })
	})
}
