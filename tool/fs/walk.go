package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

const (
	// maxDirEntries bounds the entries of one directory that are examined.
	maxDirEntries = 100_000
	// maxDepth bounds the depth of a search; what is below counts as unread.
	maxDepth = 200
)

// hidden are the directories that a search does not enter unless it starts in
// them: version control, and the journal of the run itself.
var hidden = []string{".git", ".pawl"}

// walker walks a tree in a fixed order and follows no symbolic link, so it sees every
// file once.
type walker struct {
	w *Workspace
	// depth, if not 0, is the number of levels below the start to search.
	depth int
	// match reports whether a path of the workspace is searched for; nil means all.
	match func(p string) bool
	// visit is called for each match that is not a directory, with the path relative to
	// the workspace. fs.SkipAll ends the walk.
	visit func(p string, e fs.DirEntry) error
	// unread counts directories that could not be read completely.
	unread int
	// repo is the repository whose ignored files are excluded, nil for none; rules are
	// the patterns that apply above the start. exact reports that the pattern of the
	// walk names files, which are found even if they are ignored.
	repo  *repository
	rules *ignores
	exact bool
	// ignored counts the excluded files and directories.
	ignored      int
	ignoredNames []string
}

func (k *walker) walk(ctx context.Context, start string) error {
	err := k.directory(ctx, start, 1, k.rules)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

func (k *walker) directory(ctx context.Context, dir string, level int, rules *ignores) error {
	entries, err := k.w.entries(dir)
	switch {
	case err != nil && level == 1:
		return err
	case err != nil:
		k.unread++
		return nil
	case len(entries) == maxDirEntries:
		k.unread++
	}
	rules = k.ignoring(dir, rules)
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		p := path.Join(dir, e.Name())
		switch {
		case !e.IsDir():
			if k.wants(p) && !k.leftOut(p, false, rules) {
				err = k.visit(p, e)
			}
		case level == k.depth, slices.Contains(hidden, e.Name()), k.leftOut(p, true, rules):
		case level == maxDepth:
			k.unread++
		default:
			err = k.directory(ctx, p, level+1, rules)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *walker) wants(p string) bool { return k.match == nil || k.match(p) }

// report reports what the walk excluded or could not read.
func (k *walker) report(out *page) {
	if k.ignored > 0 {
		names := strings.Join(k.ignoredNames, ", ")
		if k.ignored > len(k.ignoredNames) {
			names += ", …"
		}
		out.note("%s that git ignores left out: %s; a path or pattern that names one searches it", counted(k.ignored), names)
	}
	if k.unread > 0 {
		out.note("%d directories could not be read, or not whole", k.unread)
	}
}

// entries lists a directory by name, at most maxDirEntries entries.
func (w *Workspace) entries(dir string) ([]fs.DirEntry, error) {
	info, err := w.root.Stat(dir)
	if err != nil {
		return nil, explain(dir, err)
	}
	if !info.IsDir() {
		return nil, invalid("%s is not a directory", quote(dir))
	}
	f, err := w.root.OpenFile(dir, os.O_RDONLY, 0)
	if err != nil {
		return nil, explain(dir, err)
	}
	defer f.Close()
	entries, err := f.ReadDir(maxDirEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, explain(dir, err)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(a.Name(), b.Name()) })
	return entries, nil
}

func counted(n int) string {
	if n == 1 {
		return "1 file or directory"
	}
	return fmt.Sprintf("%d files or directories", n)
}
