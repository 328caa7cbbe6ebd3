package resolve

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Options of git with which diff and show say of a change which files it is about
// and leave out what they hold, and those that say how a log looks. An option that
// is among neither may show it.
var (
	gitSummaries = newPattern(`^(-s|--(no-patch|stat|numstat|shortstat|summary|name-only|name-status|quiet|dirstat|compact-summary)(=.*)?)$`)
	gitTells     = newPattern(`^(-[0-9]+|-n[0-9]*|-[iEFgq]|--(oneline|graph|all|decorate|no-decorate|format|pretty|abbrev-commit|abbrev|author|committer|grep` +
		`|since|after|until|before|max-count|skip|reverse|date|no-merges|merges|first-parent|branches|tags|remotes|topo-order|date-order|color|no-color` +
		`|no-textconv|no-renames|follow|full-history|walk-reflogs|cached|staged|merge-base|diff-filter|use-mailmap|mailmap)(=.*)?)$`)
	// gitCommits are names of commits and of kinds of objects, and gitAsks the
	// options of cat-file that show nothing of an object itself.
	gitCommits = newPattern(`^((HEAD|@)([~^][0-9]*)*|commit|tree|tag|blob)$`)
	gitAsks    = newPattern(`^-[tse]$`)
)

// gitHistories are the subcommands that may show what files hold or held. Only
// of the first four, and of a log of references, is it known when they do not.
var gitHistories = []string{"diff", "show", "log", "cat-file", "whatchanged", "format-patch", "range-diff", "fast-export", "diff-files", "diff-index", "diff-tree",
	"reflog", "archive", "bundle", "pack-objects", "merge-tree", "request-pull", "difftool"}

// gitShowsChanges are the options with which other subcommands show what changes.
var gitShowsChanges = map[string]pattern{
	"status": newPattern(`^(-[^-u]*v|--v)`),
	"commit": newPattern(`^(-[^-mFCctSu]*v|--verb)`),
	"am":     newPattern(`^--show`),
	"rebase": newPattern(`^--show`),
}

// showsChanges reports whether a subcommand which is about something else may
// show what files hold or held.
func showsChanges(sub string, operands []word) bool {
	if sub == "stash" {
		return len(operands) > 0 && operands[0].is("show") || len(operands) > 1 && operands[0].is("list")
	}
	shows := gitShowsChanges[sub]
	return shows != nil && slices.ContainsFunc(operands, func(a word) bool {
		return shows.MatchString(a.text) || a.computed && (a.several || sub == "status")
	})
}

// gitShown notes the files that a subcommand of git may show: those behind "--",
// those that a word names in a revision (HEAD:file), and all of the workspace
// where no word says which.
func (r *reader) gitShown(sub string, operands []word, look bool, dirs []string) {
	for _, a := range operands {
		r.gitRevision(a, dirs)
	}
	if !slices.Contains(gitHistories, sub) && !showsChanges(sub, operands) {
		return
	}
	before, behind := operands, []word(nil)
	if at := slices.IndexFunc(operands, func(a word) bool { return a.is("--") }); at >= 0 {
		before, behind = operands[:at], operands[at+1:]
	}
	switch {
	case gitSilent(sub, before):
	case len(behind) > 0 && !slices.ContainsFunc(behind, gitMagic) && !slices.ContainsFunc(before, func(a word) bool { return a.is("--follow") }):
		for _, file := range behind {
			r.path(file, dirs, event.PathUse{Tree: true})
		}
	case look && len(behind) == 0 && slices.Contains(gitShows, sub) && r.step == 1 && namesFile(before, dirs):
	default:
		r.path(word{text: r.ws.real}, dirs, event.PathUse{Tree: true})
	}
}

// gitMagic reports whether git takes a path for a pattern.
func gitMagic(a word) bool { return a.computed || strings.ContainsAny(a.text, `:*?[\`) }

// gitSilent reports whether a subcommand shows nothing of what files hold, but
// for those that a word names in a revision.
func gitSilent(sub string, args []word) bool {
	summary, unknown, objects := false, false, 0
	for _, a := range args {
		isOption := strings.HasPrefix(a.text, "-")
		switch {
		case a.computed:
			return false
		case isOption && (gitSummaries.MatchString(a.text) || sub == "cat-file" && gitAsks.MatchString(a.text)):
			summary = true
		case isOption && !gitTells.MatchString(a.text) && !(sub == "cat-file" && a.text == "-p"):
			unknown = true
		case !isOption && !strings.Contains(a.text, ":") && !(gitCommits.MatchString(a.text) && (summary || sub == "cat-file")):
			objects++
		}
	}
	switch sub {
	case "log", "reflog":
		return !unknown
	case "diff":
		return summary && !unknown
	case "cat-file":
		return summary || !unknown && objects == 0
	case "show":
		return !unknown && objects == 0 && (summary || slices.ContainsFunc(args, func(a word) bool { return strings.Contains(a.text, ":") }))
	}
	return false
}

// namesFile reports whether some word names a file that is there.
func namesFile(operands []word, dirs []string) bool {
	return slices.ContainsFunc(operands, func(a word) bool {
		return a.text != "" && !strings.HasPrefix(a.text, "-") && !slices.ContainsFunc(dirs, func(dir string) bool {
			_, err := os.Lstat(absolute(dir, a.text))
			return dir == anywhere || err != nil
		})
	})
}

// gitRevision notes the file that a word names in a revision or in the index, or
// behind the lines of -L. Where the revision has colons itself, every one may be
// the one.
func (r *reader) gitRevision(a word, dirs []string) {
	if strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "-L") {
		return
	}
	for i, c := range a.text {
		name := a.text[i+1:]
		switch {
		case c != ':' || name == "":
		case strings.HasPrefix(name, "./"), strings.HasPrefix(name, "../"):
			r.path(word{text: name}, dirs, event.PathUse{Tree: true})
		default:
			r.path(word{text: strings.TrimLeft(name, "/")}, gitRoots(dirs), event.PathUse{Tree: true})
		}
	}
}

// gitRoots are the directories of the working trees that these lie in.
func gitRoots(dirs []string) []string {
	var roots []string
	for _, dir := range dirs {
		root := dir
		for at := dir; dir != anywhere; at = filepath.Dir(at) {
			if exists(at, ".git") {
				root = at
			}
			if exists(at, ".git") || at == filepath.Dir(at) {
				break
			}
		}
		roots = union(roots, []string{root})
	}
	return roots
}
