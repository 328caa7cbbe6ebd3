package fs

import (
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxIgnoreFile bounds the bytes that are read of a file of patterns.
const maxIgnoreFile = 1 << 20

// ignores holds the patterns of one .gitignore file and links to those of the
// directories above, with the rules of gitignore(5). Nil ignores nothing. It does not
// consider whether git tracks a file that a pattern matches.
type ignores struct {
	above *ignores
	// base is the directory that the patterns are relative to, relative to the top of
	// the repository: "" or a path that ends in a slash.
	base  string
	rules []ignoreRule
}

type ignoreRule struct {
	match *regexp.Regexp
	// name reports that the pattern matches the last part of a path, keep that it
	// re-includes files, and dir that it matches only directories.
	name, keep, dir bool
}

// ignored reports whether git ignores an entry of a directory that is not ignored. The
// path is relative to the top of the repository.
func (g *ignores) ignored(p string, dir bool) bool {
	for ; g != nil; g = g.above {
		below := strings.TrimPrefix(p, g.base)
		for _, r := range slices.Backward(g.rules) {
			at := below
			if r.name {
				at = path.Base(p)
			}
			if (dir || !r.dir) && r.match.MatchString(at) {
				return !r.keep
			}
		}
	}
	return false
}

// with adds a file of patterns to those above it.
func (g *ignores) with(base, text string) *ignores {
	var rules []ignoreRule
	for l := range strings.Lines(text) {
		if r, ok := ignoreRuleOf(strings.TrimRight(l, "\r\n")); ok {
			rules = append(rules, r)
		}
	}
	if len(rules) == 0 {
		return g
	}
	return &ignores{above: g, base: base, rules: rules}
}

// ignoreRuleOf parses one line. An invalid pattern matches nothing.
func ignoreRuleOf(l string) (r ignoreRule, ok bool) {
	for strings.HasSuffix(l, " ") && !strings.HasSuffix(l, `\ `) {
		l = l[:len(l)-1]
	}
	if l == "" || l[0] == '#' {
		return r, false
	}
	l, r.keep = strings.CutPrefix(l, "!")
	l, r.dir = strings.CutSuffix(l, "/")
	r.name = !strings.Contains(l, "/")
	// Git has no alternatives in braces, so the braces are quoted.
	match, err := compileGlob(strings.ReplaceAll(strings.TrimPrefix(l, "/"), "{", `\{`))
	r.match = match
	return r, err == nil && l != ""
}

// repository is the git repository that contains a workspace.
type repository struct {
	// prefix is the path of the workspace in the repository: "" or a path that ends in
	// a slash.
	prefix string
	// above holds the patterns from outside the workspace that apply at its top.
	above *ignores
}

// repository finds the repository of the workspace; nil if there is none.
func (w *Workspace) repository() *repository {
	for top := w.real; ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return w.repositoryAt(top)
		}
		if top == filepath.Dir(top) {
			return nil
		}
	}
}

func (w *Workspace) repositoryAt(top string) *repository {
	rel, err := filepath.Rel(top, w.real)
	if err != nil {
		return nil
	}
	r := &repository{above: (*ignores)(nil).with("", textOf(filepath.Join(gitDir(top), "info", "exclude")))}
	if rel == "." {
		return r
	}
	base := ""
	for part := range strings.SplitSeq(filepath.ToSlash(rel), "/") {
		r.above = r.above.with(base, textOf(filepath.Join(top, base, ".gitignore")))
		base += part + "/"
	}
	r.prefix = base
	return r
}

// gitDir returns the directory that a repository shares with its worktrees.
func gitDir(top string) string {
	dir := filepath.Join(top, ".git")
	said, ok := strings.CutPrefix(strings.TrimSpace(textOf(dir)), "gitdir: ")
	if !ok {
		return dir
	}
	if dir = said; !filepath.IsAbs(dir) {
		dir = filepath.Join(top, dir)
	}
	if common := strings.TrimSpace(textOf(filepath.Join(dir, "commondir"))); common != "" {
		return filepath.Join(dir, common)
	}
	return dir
}

// textOf returns the beginning of a small file, empty if it cannot be read.
func textOf(name string) string {
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	return string(text)
}

// ignoring returns the patterns that apply in a directory of the workspace, given those
// of its parent.
func (k *walker) ignoring(dir string, above *ignores) *ignores {
	if k.repo == nil {
		return nil
	}
	if dir != "." {
		if _, err := k.w.root.Lstat(path.Join(dir, ".git")); err == nil {
			above = nil // a separate repository
		}
	}
	f, _, err := k.w.open(path.Join(dir, ".gitignore"), os.O_RDONLY)
	if err != nil {
		return above
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxIgnoreFile))
	return above.with(k.repo.prefix+inside(dir), string(text))
}

func inside(dir string) string {
	if dir == "." {
		return ""
	}
	return dir + "/"
}

// respectIgnores excludes from a walk what git ignores, unless the walk starts in an
// ignored directory or its pattern names one.
func (k *walker) respectIgnores(start, pattern string) {
	k.repo = k.w.repository()
	if k.repo == nil {
		return
	}
	named := path.Join(start, path.Dir(pattern[:firstSign(pattern)]+"x"))
	k.rules = k.repo.above
	at, rules := ".", k.ignoring(".", k.rules)
	for part := range strings.SplitSeq(named, "/") {
		if part == "." || part == ".." {
			continue
		}
		if at = path.Join(at, part); rules.ignored(k.repo.prefix+at, true) {
			k.repo = nil
			return
		}
		if strings.HasPrefix(start+"/", at+"/") {
			k.rules = rules
		}
		rules = k.ignoring(at, rules)
	}
	k.exact = pattern != "" && !strings.ContainsAny(path.Base(pattern), `*?[{\`)
}

// leftOut reports whether git ignores an entry, and counts it.
func (k *walker) leftOut(p string, dir bool, rules *ignores) bool {
	if k.repo == nil || k.exact && !dir || !rules.ignored(k.repo.prefix+p, dir) {
		return false
	}
	if dir {
		p += "/"
	}
	if k.ignored++; len(k.ignoredNames) < 3 {
		k.ignoredNames = append(k.ignoredNames, quote(p))
	}
	return true
}
