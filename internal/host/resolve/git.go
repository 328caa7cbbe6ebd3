package resolve

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// Git runs programs from the configuration of a repository, even to display something.
// So a git command counts as read-only only in a sandbox, which then limits what it can
// do. If it matters which files a command displays, it counts as displaying all.

// gitLooks are the subcommands that only display something if their operands match the
// pattern, gitShows for most of them.
var gitLooks = map[string]pattern{
	"status": gitShows, "diff": gitShows, "log": gitShows, "show": gitShows, "rev-parse": gitShows, "ls-files": gitShows, "blame": gitShows,
	"describe": gitShows, "cat-file": gitShows, "shortlog": gitShows, "grep": gitShows, "ls-tree": gitShows, "merge-base": gitShows,
	"rev-list": gitShows, "branch": newPattern(`^(-[arvl]+|--list|--all|--remotes|--show-current)$`), "tag": newPattern(`^(-l|--list)$`),
	"remote": newPattern(`^(-v|--verbose)$`), "stash": newPattern(`^list$`),
}

// gitShows matches operands with which those subcommands write nothing and start
// nothing beyond the repository's configuration.
var gitShows = newPattern(`^([^-].*|--?|-[0-9A-NP-Za-z][^O]*|--(abbrev-commit|abbrev-ref|all|always|author|branch|cached|color|count|date|decorate` +
	`|exclude-standard|first-parent|follow|graph|grep|line-number|list|max-count|merge-base|merges|name-only|name-status|no-color|no-ext-diff|no-merges` +
	`|no-patch|no-textconv|numstat|oneline|others|patch|porcelain|quiet|reverse|short|shortstat|show-current|show-toplevel|since|staged|stat|summary` +
	`|tags|unified|until|untracked-files|verify|word-diff|(format|pretty)=[^%]*(%[^G+ -][^%]*)*)(=[^%]*)?)$`)

// gitTells matches the operands of a log that does not display the contents of files.
var gitTells = newPattern(`^(-[0-9]+|-n[0-9]*|--(oneline|graph|all|decorate|format|pretty|author|since|until|before|after|max-count|reverse|no-merges|stat` +
	`|name-only|name-status|shortstat)(=.*)?)$`)

// gitQuiet are the subcommands that display no contents of files without an option for
// it. Nothing is known about subcommands that are neither here nor in gitHistories,
// because they may be aliases.
var (
	gitQuiet = strings.Fields(`add apply bisect branch check-attr check-ignore check-ref-format checkout cherry cherry-pick clean clone commit commit-tree
		config count-objects describe fetch for-each-ref fsck gc hash-object help init ls-files ls-remote ls-tree maintenance merge merge-base mktree mv
		name-rev notes pack-refs prune pull push read-tree rebase remote repack replace rerere reset restore rev-list rev-parse revert rm shortlog show-ref
		sparse-checkout stash status submodule switch symbolic-ref tag update-index update-ref var version worktree write-tree`)
	gitHistories = strings.Fields(`am archive blame bundle cat-file diff diff-files diff-index diff-tree difftool fast-export format-patch grep log
		range-diff reflog show whatchanged`)
	// gitVerbose matches the options with which others display changes.
	gitVerbose = newPattern(`^(-[a-ln-z]*[vp]|--(v|patch|show|ver)[a-z-]*)$`)
)

// gitSafe matches the settings that do not make git run a program.
var gitSafe = newPattern(`(?i)^((advice|color|column)\..*|user\.(name|email)|safe\.directory|init\.defaultBranch|core\.(abbrev|autocrlf|quotePath|safecrlf)` +
	`|diff\.(algorithm|context|noprefix|renames)|pull\.(ff|rebase)|merge\.conflictStyle|(commit|tag|push)\.gpgSign=(false|no|0)|core\.pager=(cat|less)?)(=.*)?$`)

// gitBefore are the options before a subcommand that do not change its meaning.
var gitBefore = []string{"-p", "-P", "--paginate", "--no-pager", "--no-optional-locks"}

// git judges a git command, and reports whether it is known to be read-only.
func (r *reader) git(args []word, computed bool, dirs []string) bool {
	c := r.gitOptions(args, dirs)
	fits := gitLooks[c.sub]
	shows := fits != nil && !computed && !slices.ContainsFunc(c.operands, func(a word) bool { return !fits.MatchString(a.text) }) &&
		!(c.sub == "stash" && len(c.operands) == 0)
	looks := shows && !c.elsewhere && r.ws.gitLooks && !slices.ContainsFunc(dirs, func(dir string) bool { return !r.ws.repository(dir) })
	if c.elsewhere {
		r.gitContents(c.sub, c.operands, []string{anywhere})
	} else {
		r.gitContents(c.sub, c.operands, dirs)
	}
	if looks {
		r.looksByGit = true
		if c.sub == "diff" || c.sub == "blame" { // git diff compares any two files
			r.operandFiles(c.operands, dirs)
		}
		return true
	}
	r.atLeast(event.RiskExecute)
	r.given(args, dirs)
	if !shows {
		r.gitWrites(c)
	}
	switch c.sub {
	case "clean", "reset", "restore", "checkout", "rm", "gc", "prune":
		r.atLeast(event.RiskDelete)
	case "push", "fetch", "pull", "clone", "ls-remote", "submodule", "send-email":
		r.atLeast(event.RiskSend)
	}
	return false
}

// gitCommand is a parsed git command.
type gitCommand struct {
	sub      string
	operands []word
	// dirs are its possible working directories, and dir is the repository of
	// --git-dir.
	dirs []string
	dir  word
	// elsewhere reports that git may use another repository than that of the directory
	// where it runs.
	elsewhere bool
}

// gitOptions parses the options before the subcommand.
func (r *reader) gitOptions(args []word, dirs []string) (c gitCommand) {
	c.dirs = dirs
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case a.computed:
			r.unclear("which command of git " + trim(a.text) + " is, is computed when it runs")
			return gitCommand{elsewhere: true}
		case a.text == "-c" && i+1 < len(args):
			i++
			r.gitSetting(args[i])
		case slices.Contains(gitBefore, a.text):
		case a.is("-C") && i+1 < len(args):
			i, c.elsewhere = i+1, true
			c.dirs = r.cd([]word{args[i]}, c.dirs).ok
		case a.is("--git-dir") && i+1 < len(args):
			i, c.elsewhere = i+1, true
			c.dir = args[i]
		case a.is("-C", "--git-dir", "--work-tree", "--namespace"):
			i, c.elsewhere = i+1, true
		case a.is("--exec-path", "--version", "--help"):
			return gitCommand{elsewhere: c.elsewhere}
		case strings.HasPrefix(a.text, "--git-dir="):
			c.elsewhere, c.dir = true, word{text: strings.TrimPrefix(a.text, "--git-dir=")}
		case strings.HasPrefix(a.text, "--work-tree="):
			c.elsewhere = true
		case strings.HasPrefix(a.text, "-"):
			r.unclear("what git does with " + trim(a.text) + " is not known")
			i++
		default:
			c.sub, c.operands = a.text, args[i+1:]
			r.gitRuns(c.sub, c.operands)
			return c
		}
	}
	return gitCommand{elsewhere: c.elsewhere}
}

// gitRuns marks a subcommand that runs a command line from its arguments, and an
// unknown subcommand, as needing approval.
func (r *reader) gitRuns(sub string, operands []word) {
	switch {
	case !slices.Contains(gitQuiet, sub) && !slices.Contains(gitHistories, sub):
		r.unclear("git " + trim(sub) + " may be an alias of anything")
	case sub == "bisect" && len(operands) > 0 && (operands[0].computed || operands[0].text == "run"),
		sub == "submodule" && slices.ContainsFunc(operands, func(a word) bool { return a.computed || a.text == "foreach" }):
		r.unclear("what git " + sub + " runs is not known before it runs")
	case sub == "clone":
		for _, a := range operands {
			if option, _, _ := strings.Cut(a.text, "="); named(option, "--config") || strings.HasPrefix(a.text, "-c") {
				r.unclear("what git clone sets by " + trim(a.text) + " may make it run something")
			}
		}
	}
}

func (r *reader) gitSetting(w word) {
	if w.computed || !gitSafe.MatchString(w.text) {
		key, _, _ := strings.Cut(w.text, "=")
		r.unclear("it sets git's " + trim(key) + ", which may make it run something")
	}
}

// gitContents records the files that a subcommand may display: those after "--", or the
// whole workspace.
func (r *reader) gitContents(sub string, operands []word, dirs []string) {
	verbose := func(a word) bool { return gitVerbose.MatchString(a.text) || a.computed && a.several }
	if slices.Contains(gitQuiet, sub) && !slices.ContainsFunc(operands, verbose) && !(sub == "stash" && len(operands) > 0 && operands[0].is("show")) {
		return
	}
	before, behind := operands, []word(nil)
	if at := slices.IndexFunc(operands, func(a word) bool { return a.is("--") }); at >= 0 {
		before, behind = operands[:at], operands[at+1:]
	}
	tells := func(a word) bool {
		if strings.HasPrefix(a.text, "-") {
			return gitTells.MatchString(a.text)
		}
		return !a.computed && !strings.Contains(a.text, ":")
	}
	magic := func(a word) bool { return a.computed || strings.ContainsAny(a.text, `:*?[\`) || a.text == "" }
	switch {
	case sub == "", strings.HasSuffix(sub, "log") && !slices.ContainsFunc(before, func(a word) bool { return !tells(a) }):
	case len(behind) > 0 && !slices.ContainsFunc(behind, magic) && !slices.ContainsFunc(before, func(a word) bool { return a.computed || strings.Contains(a.text, ":") || a.is("--follow") }):
		for _, file := range behind {
			r.path(file, dirs, event.PathUse{Tree: true})
		}
	default:
		r.path(word{text: r.ws.real}, dirs, event.PathUse{Tree: true})
	}
}

// Confined returns the workspace for sandboxed command lines whose user's git settings
// are in these directories. If one of them is in the workspace, a tool that may edit
// files may have written those settings.
func (w Workspace) Confined(settings ...string) Workspace {
	w.confined = true
	w.gitLooks = !slices.ContainsFunc(settings, func(dir string) bool { return filepath.IsAbs(dir) && !w.Path(dir).Outside })
	return w
}

// repository reports whether git, run in a directory of the workspace, finds the
// repository of the workspace, whose settings are protected, or one outside, and not
// one that the run's commands could have created.
func (w Workspace) repository(dir string) bool {
	for ; dir != anywhere; dir = filepath.Dir(dir) {
		switch below := strings.HasPrefix(dir, w.real+"/"); {
		case exists(dir, ".git"):
			return !below && !exists(dir, ".gitmodules") // git also enters repositories within this one
		case exists(dir, "HEAD") && exists(dir, "objects"): // a bare repository
			return false
		case dir == filepath.Dir(dir):
			return true
		}
	}
	return false
}
