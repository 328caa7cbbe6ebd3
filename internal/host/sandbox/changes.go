package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Change is a change of a protected path by a command, in a tier that cannot prevent
// it. A directory that was created or removed is one change.
type Change struct {
	// Path is relative to the workspace and separated by "/", or absolute if it is
	// outside.
	Path string
	// Undone reports that the path is again as it was before the command.
	Undone bool
	// Kept is where the undone version was moved; empty if there is none.
	Kept string
}

// Limits on the number and size of protected files that can be restored, because they
// are read before each command.
const (
	maxKeptFiles = 1_000
	maxKeptBytes = 16 << 20
)

// snapshot records the protected paths of a directory before a command: of the
// workspace, or of a repository that is open to the command.
type snapshot struct {
	// workspace is the directory, and names the directory that paths are named relative
	// to.
	workspace, names string
	// protection is nil if mounts protect what exists, so that only new paths matter:
	// those of absent, and those in dirs in addition to the names listed there.
	protection Protection
	absent     []string
	dirs       map[string][]string
	// hidden paths cannot be written; granted ones may be.
	hidden  []string
	granted []Grant
	// call has the grants of the commands that ran at the same time.
	call   *call
	roots  []root
	before map[string]entry
	// aside is the directory for undone versions; it is created when needed.
	aside string
}

// root is a protected path with everything below it.
type root struct {
	path  string
	files int
	bytes int64
	// kept reports that the snapshot has its content, so that it can be restored.
	kept bool
}

// entry is the state of a path. A file whose content is not kept is compared by its
// stamp.
type entry struct {
	mode    fs.FileMode
	link    string
	size    int64
	changed time.Time
	stamp   stamp
	kept    bool
	content []byte
}

// stamp holds the attributes that the system updates whenever a file changes.
type stamp struct {
	inode                   uint64
	size, modified, changed int64
}

// snapshots records what the tier does not protect; it returns none if commands cannot
// change anything protected.
func (b *Box) snapshots(v view, granted []Grant, c *call) ([]*snapshot, error) {
	if b.policy.Filesystem == FilesystemReadOnly || b.policy.Protected == nil {
		return nil, nil
	}
	var all []*snapshot
	add := func(dir string, p Protection, granted []Grant) error {
		s := &snapshot{workspace: dir, names: b.policy.Workspace, hidden: v.hide, granted: granted, call: c}
		if b.tier == Landlock {
			s.protection, all = p, append(all, s)
			return s.take()
		}
		if s.absent, s.dirs = v.unheld(dir); len(s.absent)+len(s.dirs) > 0 {
			all = append(all, s)
		}
		return nil
	}
	// The open part of a repository is compared separately from the rest.
	single := slices.DeleteFunc(slices.Clone(granted), func(g Grant) bool { return g.Repository })
	err := add(b.policy.Workspace, b.policy.Protected, granted)
	for _, dir := range v.repositories {
		err = errors.Join(err, add(dir, decisive{}, single))
	}
	for dir := range v.dirs {
		if !inside(dir, b.policy.Workspace) && !v.inRepository(dir) {
			err = errors.Join(err, add(dir, decisive{}, single))
		}
	}
	return all, err
}

// take records what is protected. The view excludes the paths granted to this command,
// and has other names of protected files: a write under such a name changes both.
func (s *snapshot) take() error {
	found, links, err := protected(s.workspace, s.protection)
	if err != nil {
		return err
	}
	for _, path := range outermost(slices.Concat(found, links)) {
		s.roots = append(s.roots, root{path: path})
	}
	if s.before, err = s.scan(s.paths()); err != nil {
		return err
	}
	s.keep()
	return nil
}

func (s *snapshot) paths() []string {
	var paths []string
	for _, r := range s.roots {
		paths = append(paths, r.path)
	}
	return paths
}

// scan examines everything below some paths. Paths that cannot be read count as
// missing.
func (s *snapshot) scan(paths []string) (map[string]entry, error) {
	found := map[string]entry{}
	for _, path := range outermost(paths) {
		err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			if slices.Contains(s.hidden, path) {
				return skip(d)
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			e := entry{mode: info.Mode(), size: info.Size(), stamp: stampOf(info), changed: info.ModTime()}
			if e.mode&fs.ModeSymlink != 0 {
				e.link, _ = os.Readlink(path)
			}
			if found[path] = e; len(found) > maxLinkEntries {
				return fmt.Errorf("sandbox: protected paths hold more than %d files, too many to be compared before and after a command", maxLinkEntries)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// keep reads the files of as many roots as the limits allow, the smaller ones first.
func (s *snapshot) keep() {
	for path, e := range s.before {
		if r := s.rootOf(path); !e.mode.IsDir() {
			r.files++
			r.bytes += e.size
		}
	}
	slices.SortFunc(s.roots, func(a, b root) int {
		return cmp.Or(cmp.Compare(a.files, b.files), cmp.Compare(a.bytes, b.bytes), strings.Compare(a.path, b.path))
	})
	files, bytes := 0, int64(0)
	for i := range s.roots {
		r := &s.roots[i]
		if files+r.files > maxKeptFiles || bytes+r.bytes > maxKeptBytes || !s.read(r) {
			continue
		}
		files, bytes, r.kept = files+r.files, bytes+r.bytes, true
	}
}

// rootOf returns the root that contains a path; nil for a path that did not exist.
func (s *snapshot) rootOf(path string) *root {
	i := slices.IndexFunc(s.roots, func(r root) bool { return inside(path, r.path) })
	if i < 0 {
		return nil
	}
	return &s.roots[i]
}

// read reads the contents of a root's files, and reports whether all could be read.
func (s *snapshot) read(r *root) bool {
	for path, e := range s.before {
		if !inside(path, r.path) || !e.mode.IsRegular() {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil || len(content) > maxKeptBytes {
			return false
		}
		e.content, e.kept = content, true
		s.before[path] = e
	}
	return true
}

// settle compares what is protected with the snapshot, restores what it can, and
// returns the changes. No process of the command may still run.
func (s *snapshot) settle() []Change {
	if s == nil {
		return nil
	}
	changed := s.changes()
	if len(changed) == 0 {
		return nil
	}
	left := changed
	if tree, err := os.OpenRoot(s.workspace); err == nil {
		defer tree.Close()
		// The second pass finds the contents of directories that could not be read.
		for range 2 {
			s.undo(tree, left)
			left = s.changes()
		}
	}
	return s.report(changed, left)
}

// delta is a path that has changed.
type delta struct {
	path string
	// whole reports that a directory was created or removed, with everything below it.
	whole bool
}

// changes returns the paths that have changed, in order.
func (s *snapshot) changes() []delta {
	paths := s.paths()
	// If the search fails, the paths of the snapshot are compared in any case. The
	// target of a new link is not protected because of the link.
	found, links, _ := protected(s.workspace, s.protection)
	found = append(found, s.made()...)
	found = slices.DeleteFunc(found, func(path string) bool { return !s.named(path) })
	after, err := s.scan(slices.Concat(paths, found, links))
	if err != nil {
		after, _ = s.scan(paths)
	}
	var changed []delta
	for path, was := range s.before {
		if is, there := after[path]; (!there || !was.same(is, path)) && !s.mayChange(path) {
			changed = append(changed, delta{path, was.mode.IsDir() != (there && is.mode.IsDir())})
		}
	}
	for path, is := range after {
		dir := is.mode.IsDir()
		if _, was := s.before[path]; !was && !s.mayChange(path) && !(dir && s.leadsToGrant(path)) {
			changed = append(changed, delta{path, dir})
		}
	}
	slices.SortFunc(changed, func(a, b delta) int { return strings.Compare(a.path, b.path) })
	return changed
}

// named reports whether a path is protected by its own name.
func (s *snapshot) named(path string) bool {
	if s.protection == nil {
		return true
	}
	rel, err := filepath.Rel(s.workspace, path)
	rel = filepath.ToSlash(rel)
	if _, git := s.protection.(decisive); git && s.rootOf(path) == nil && strings.Contains(rel, "/") {
		return false // a worktree or a submodule that git created
	}
	return err == nil && s.protection.Protects(rel)
}

// made returns the paths that did not exist and now do.
func (s *snapshot) made() []string {
	made := existingAt(s.absent)
	for dir, before := range s.dirs {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if path := filepath.Join(dir, e.Name()); !slices.Contains(before, e.Name()) && !s.leadsToGrant(path) {
				made = append(made, path)
			}
		}
	}
	return made
}

// mayChange reports whether the command, or one that ran at the same time, was allowed
// to change a path, or nothing can change it.
func (s *snapshot) mayChange(path string) bool {
	return slices.ContainsFunc(s.hidden, func(hidden string) bool { return inside(path, hidden) }) ||
		slices.ContainsFunc(s.granted, func(g Grant) bool { return path == g.Path || g.Tree && inside(path, g.Path) }) ||
		slices.ContainsFunc(s.call.others(), func(g Grant) bool { _, was := s.before[path]; return g.covers(path, was) })
}

// leadsToGrant reports whether a directory is a parent of a path that the command, or
// one that ran at the same time, may write.
func (s *snapshot) leadsToGrant(dir string) bool {
	return slices.ContainsFunc(slices.Concat(s.granted, s.call.others()), func(g Grant) bool { return inside(g.Path, dir) })
}

// same reports whether a path is unchanged.
func (e entry) same(is entry, path string) bool {
	switch {
	case e.mode != is.mode || e.link != is.link:
		return false
	case !e.mode.IsRegular():
		return true
	case !e.kept:
		return e.stamp == is.stamp
	case e.size != is.size:
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && string(content) == string(e.content)
}
