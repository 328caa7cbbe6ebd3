package resolve

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlrun/pawl/event"
)

// gitReads are the subcommands that never write a repository. All others count as
// writing, because they may be aliases.
var gitReads = strings.Fields(`annotate archive blame bundle cat-file check-attr check-ignore check-mailmap check-ref-format cherry clean column
	count-objects describe diagnose diff diff-files diff-index diff-tree difftool fast-export for-each-ref format-patch fsck grep help log ls-files
	ls-remote ls-tree merge-base name-rev range-diff request-pull rev-list rev-parse shortlog show show-branch show-ref status var verify-commit
	verify-pack verify-tag version whatchanged`)

// gitLists matches operands with which a subcommand that normally writes only lists
// something.
var gitLists = map[string]pattern{
	"apply":     newPattern(`^--(check|stat|numstat|summary)$`),
	"bisect":    newPattern(`^(log|view|visualize)$`),
	"branch":    newPattern(`^--(contains|no-contains|merged|no-merged|points-at|format|sort|column|list|all|remotes)(=.*)?$`),
	"notes":     newPattern(`^(list|show)$`),
	"remote":    newPattern(`^(show|get-url)$`),
	"stash":     newPattern(`^(list|show)$`),
	"submodule": newPattern(`^(status|summary)$`),
	"tag":       newPattern(`^(-l|-n[0-9]*|--(list|contains|no-contains|merged|no-merged|points-at|format|sort|column)(=.*)?)$`),
	"worktree":  newPattern(`^list$`),
}

// gitConfigures matches operands with which a subcommand also writes the settings of
// the repository; anyOperand matches all.
var (
	anyOperand    = newPattern(``)
	gitConfigures = map[string]pattern{
		"branch":          newPattern(`^(-[a-z]*[dDmMcCut].*|--(delete|move|copy|set-upstream-to|unset-upstream|edit-description|track).*)$`),
		"checkout":        newPattern(`^(-[a-z]*t.*|--track.*)$`),
		"switch":          newPattern(`^(-[a-z]*t.*|--track.*)$`),
		"fetch":           newPattern(`^--set-upstream$`),
		"pull":            newPattern(`^--set-upstream$`),
		"push":            newPattern(`^(-[a-z]*u[a-z]*|--set-upstream)$`),
		"init":            anyOperand,
		"maintenance":     anyOperand,
		"remote":          anyOperand,
		"sparse-checkout": anyOperand,
		"submodule":       anyOperand,
	}
)

// gitTakes matches the options of init and clone that take the next word.
var gitTakes = newPattern(`^(-[bojcu]|--(branch|config|depth|initial-branch|jobs|object-format|origin|ref-format|reference|separate-git-dir|template|upload-pack|filter))$`)

// gitWrites records which repositories a git command writes, and whether it also writes
// their settings.
func (r *reader) gitWrites(c gitCommand) {
	matches := func(table map[string]pattern) bool {
		of := table[c.sub]
		return of != nil && (len(c.operands) == 0 && of.MatchString("") || slices.ContainsFunc(c.operands, func(a word) bool { return of.MatchString(a.text) }))
	}
	switch c.sub {
	case "config":
		r.gitConfig(c)
		return
	case "init", "clone":
		r.gitMakes(c)
		return
	case "reflog":
		if len(c.operands) == 0 || !c.operands[0].computed && !c.operands[0].is("expire", "delete") {
			return
		}
	case "apply":
		if !slices.ContainsFunc(c.operands, func(a word) bool { return a.computed || a.is("--index", "--cached", "-3", "--3way") }) {
			return
		}
	}
	if c.sub == "" || slices.Contains(gitReads, c.sub) || matches(gitLists) {
		return
	}
	r.writesRepository(c, true, matches(gitConfigures) || c.branchesOff())
	if c.sub == "worktree" && len(c.operands) > 1 && c.operands[0].is("add") {
		for i, a := range c.operands[1:] {
			if !strings.HasPrefix(a.text, "-") && !c.operands[i].is("-b", "-B", "--reason") {
				r.path(a, c.dirs, event.PathUse{Write: true, Tree: true})
				return
			}
		}
	}
}

// branchesOff reports whether a command may create a branch with an upstream, which is
// a setting.
func (c gitCommand) branchesOff() bool {
	made, operands := false, 0
	for _, a := range c.operands {
		switch {
		case a.is("-b", "-B", "-c", "-C"):
			made = true
		case !strings.HasPrefix(a.text, "-"):
			operands++
		}
	}
	return slices.Contains([]string{"checkout", "switch"}, c.sub) && made && operands > 1
}

// writesRepository records the directories that git writes, and the settings. It
// records nothing for a directory that does not exist: what the run creates is its own.
func (r *reader) writesRepository(c gitCommand, content, settings bool) {
	note := func(dir string, content, settings bool) {
		if content {
			r.path(word{text: dir}, []string{dir}, event.PathUse{Write: true, Tree: true, Repository: true})
		}
		if settings {
			r.path(word{text: dir + "/config"}, []string{dir}, event.PathUse{Write: true})
		}
	}
	if c.dir.text != "" {
		if c.dir.computed || slices.Contains(c.dirs, anywhere) && !filepath.IsAbs(c.dir.text) {
			r.unknown(c.dir, event.PathUse{Write: true})
			return
		}
		for _, dir := range c.dirs {
			note(absolute(dir, c.dir.text), content, settings)
		}
		return
	}
	for _, dir := range c.dirs {
		switch found, ok := FindRepository(dir); {
		case dir == anywhere:
			r.unknown(word{text: ".git"}, event.PathUse{Write: true})
		case !ok:
			note(absolute(dir, ".git"), content && exists(dir, "."), settings)
		case exists(dir, "."):
			for i, own := range found.Dirs {
				note(own, content, settings && i == len(found.Dirs)-1)
			}
		}
	}
}

// gitMakes records the repository that is created, with its settings.
func (r *reader) gitMakes(c gitCommand) {
	var operands []word
	for i, a := range c.operands {
		if !strings.HasPrefix(a.text, "-") && (i == 0 || !gitTakes.MatchString(c.operands[i-1].text)) {
			operands = append(operands, a)
		}
	}
	to := word{text: "."}
	switch {
	case c.sub == "init" && len(operands) > 0:
		to = operands[0]
	case c.sub == "clone" && len(operands) < 2:
		return // it creates a new directory
	case c.sub == "clone":
		to = operands[1]
	}
	if to.computed {
		r.unknown(to, event.PathUse{Write: true})
		return
	}
	for _, dir := range c.dirs {
		at := absolute(dir, to.text)
		if dir == anywhere && !filepath.IsAbs(at) {
			r.unknown(word{text: to.text + "/.git"}, event.PathUse{Write: true})
			continue
		}
		r.path(word{text: at + "/.git"}, []string{dir}, event.PathUse{Write: true, Tree: true, Repository: true})
		if exists(at, ".git") { // otherwise it is created completely
			r.path(word{text: at + "/.git/config"}, []string{dir}, event.PathUse{Write: true})
		}
	}
}

// gitConfig records what git config changes: it only lists settings if an option says
// so and no other option follows.
func (r *reader) gitConfig(c gitCommand) {
	shows := len(c.operands) > 0 && c.operands[0].is("-l", "--list", "--get", "--get-all", "--get-regexp")
	writes := !shows || slices.ContainsFunc(c.operands[1:], func(a word) bool { return a.computed || strings.HasPrefix(a.text, "-") })
	if slices.ContainsFunc(c.operands, func(a word) bool { return a.is("--global", "--system") }) {
		r.path(word{text: "~/.gitconfig", computed: true}, c.dirs, event.PathUse{Write: writes})
	}
	if !writes {
		r.path(word{text: ".git/config"}, c.dirs, event.PathUse{})
		return
	}
	r.writesRepository(c, false, true)
}
