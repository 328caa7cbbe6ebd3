package resolve

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// gitQuiet are the settings of a repository, beside gitSafe, with which commands
// that only look run nothing. Whoever made the repository may have put any other
// there: a file system monitor, a filter, a remote to fetch missing objects from.
// Left out are also format.pretty, which may ask for signatures, other settings
// of lfs, whose filter may run an extension, and submodule, as git enters the
// repositories within and does what their configurations say.
var gitQuiet = settings(`core.autocrlf core.bare core.eol core.fscache core.logAllRefUpdates core.preloadIndex core.repositoryFormatVersion core.safecrlf
	core.sparseCheckout core.sparseCheckoutCone core.untrackedCache core.hideDotFiles extensions.objectFormat extensions.refStorage
	extensions.worktreeConfig extensions.relativeWorktrees core.excludesFile core.attributesFile core.commentChar core.whitespace core.sharedRepository
	core.commitGraph core.multiPackIndex remote.url remote.fetch remote.push remote.pushurl remote.tagOpt remote.prune remote.gh-resolved branch.* init.*
	pull.* push.* fetch.* gc.* index.* pack.* rerere.* maintenance.auto
	maintenance.strategy user.signingKey gui.* alias.* http.* url.* credential.* gitflow.* receive.* feature.* notes.* grep.* commit.gpgSign gpg.format
	status.showUntrackedFiles status.aheadBehind status.relativePaths status.showStash diff.tool diff.colorMoved merge.tool
	blame.ignoreRevsFile=.git-blame-ignore-revs
	lfs.repositoryFormatVersion lfs.url lfs.pushURL lfs.access lfs.locksVerify lfs.fetchInclude lfs.fetchExclude lfs.concurrentTransfers`)

// gitSorts are the orders of branches and tags for which git runs nothing: for
// one by signatures it runs the program that checks them.
var gitSorts = newPattern(`(?i)^(branch|tag)\.sort=-?((version|v):)?(refname|[a-z]*date)$`)

// The lines of a configuration: a section, perhaps with the name of what it is
// about, and a setting.
var (
	gitSection = newPattern(`^\[\s*([A-Za-z0-9-]+)(?:\s+"(?:[^"\\]|\\.)*")?\s*\]\s*(.*)$`)
	gitKey     = newPattern(`^([A-Za-z][A-Za-z0-9-]*)\s*(=|$|[#;])`)
)

// quietSettings reports whether every setting of a configuration is known to make
// commands that only look run nothing.
func quietSettings(config string) bool {
	section := ""
	for line := range strings.Lines(config) {
		line = strings.TrimSpace(line)
		if found := gitSection.FindStringSubmatch(line); found != nil {
			section, line = found[1], found[2]
		}
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		key := gitKey.FindStringSubmatch(line)
		if key == nil || strings.HasSuffix(line, `\`) {
			return false
		}
		setting := section + "." + key[1]
		if key[2] == "=" {
			setting += "=" + strings.TrimSpace(line[len(key[0]):])
		}
		if !quiet(setting) {
			return false
		}
	}
	return true
}

func quiet(setting string) bool {
	name, _, _ := strings.Cut(strings.ToLower(setting), "=")
	if strings.HasSuffix(name, ".sort") {
		return gitSorts.MatchString(setting)
	}
	return gitQuiet.MatchString(setting) || gitSafe.MatchString(setting)
}

// maxGitConfig is how much of a configuration is looked at; what is longer may
// say anything.
const maxGitConfig = 64 << 10

// quietGit reports whether the repository of each directory is known to make git
// run nothing when it only looks, and so are the settings of its user that lie in
// the workspace.
func (r *reader) quietGit(dirs []string) bool {
	for _, file := range r.ws.gitConfigs {
		if !quietFile(filepath.Join(r.ws.real, file)) {
			return false
		}
	}
	for _, dir := range dirs {
		if dir == anywhere || !quietRepository(dir) {
			return false
		}
	}
	return true
}

// repositoryParts are the names by which git finds a repository and what it
// is told to do there.
var repositoryParts = []string{
	".git", ".gitmodules", "HEAD", "objects", "refs", "config", "config.worktree", "commondir", "gitdir", "hooks", "index", "worktrees", "modules",
}

// makesRepository reports whether a write may make a repository, or change what one
// does: a look of git's later in the same line is then not the one that was judged.
func makesRepository(p event.PathUse) bool {
	return p.Write && (p.Unknown || p.Tree || slices.ContainsFunc(strings.Split(p.Path, "/"), func(part string) bool {
		return slices.ContainsFunc(repositoryParts, func(name string) bool { return strings.EqualFold(name, part) })
	}))
}

func quietRepository(dir string) bool {
	for ; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return !exists(dir, ".gitmodules") && quietConfigs(filepath.Join(dir, ".git"), info.IsDir())
		}
		// What looks like a repository without a working tree is one, and may
		// have been committed as files.
		if exists(dir, "HEAD") && exists(dir, "objects") {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

// quietConfigs looks at the configuration of a .git directory, or of the one
// that a .git file leads to, as in a working tree beside the first.
func quietConfigs(git string, isDir bool) bool {
	if !isDir {
		text, err := beginning(git)
		to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir:")
		if err != nil || !ok {
			return false
		}
		git = within(filepath.Dir(git), strings.TrimSpace(to))
	}
	dirs := []string{git}
	if common, err := beginning(filepath.Join(git, "commondir")); err == nil {
		dirs = append(dirs, within(git, strings.TrimSpace(common)))
	}
	for _, dir := range dirs {
		if exists(dir, "hooks/post-index-change") || !quietIndex(dir) {
			return false
		}
		for _, name := range []string{"config", "config.worktree"} {
			if !quietFile(filepath.Join(dir, name)) {
				return false
			}
		}
	}
	return true
}

// quietFile reports whether a configuration is quiet, or not there.
func quietFile(path string) bool {
	text, err := beginning(path)
	return (err == nil || os.IsNotExist(err)) && len(text) < maxGitConfig && quietSettings(text)
}

// maxGitIndex is how much of an index is looked at.
const maxGitIndex = 32 << 20

// gitlink is the mode of a directory in an index that is a repository of its
// own. Its configuration counts when the outer one is looked at.
var gitlink = []byte{0, 0, 0xe0, 0}

// quietIndex reports whether no repository within the repository is registered.
func quietIndex(git string) bool {
	shared, err := filepath.Glob(filepath.Join(git, "sharedindex.*"))
	if err != nil || len(shared) > 0 {
		return false
	}
	f, err := os.Open(filepath.Join(git, "index"))
	if err != nil {
		return os.IsNotExist(err)
	}
	defer f.Close()
	index, err := io.ReadAll(io.LimitReader(f, maxGitIndex))
	return err == nil && len(index) < maxGitIndex && !bytes.Contains(index, gitlink)
}

func exists(dir, name string) bool {
	_, err := os.Lstat(filepath.Join(dir, name))
	return err == nil
}

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

func beginning(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxGitConfig))
	return string(b), err
}
