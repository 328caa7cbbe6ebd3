package resolve

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pawlrun/pawl/event"
)

// gitReads are the subcommands of git that change nothing as long as their
// arguments are among gitLooks, or fit what stands here, where some would change
// something.
var gitReads = map[string]pattern{
	"status": nil, "diff": nil, "log": nil, "show": nil, "rev-parse": nil, "ls-files": nil, "blame": nil, "describe": nil, "cat-file": nil,
	"shortlog": nil, "grep": nil, "ls-tree": nil, "merge-base": nil, "rev-list": nil, "name-rev": nil, "show-ref": nil, "count-objects": nil,
	"branch": newPattern(`^(-a|-r|-v|-vv|-l|--list|--all|--remotes|--show-current)$`),
	"tag":    newPattern(`^(-l|--list)$`),
	"remote": newPattern(`^(-v|--verbose)$`),
	"stash":  newPattern(`^list$`),
}

// gitLooks are the arguments with which those subcommands run and write
// nothing, from the manual pages of git 2.39. Left out are those that write a file
// (--output), run a program (--ext-diff, --textconv, --filters, --help,
// --alternate-refs, --open-files-in-pager and -O), check signatures, look into
// other repositories or show a file that need not be of the repository (--contents).
var gitLooks = options{
	flags: "0123456789abBcCdDeEfFgGhHiIklLmMnoqpPrRsStuUvVwWxXz", values: "ABCGLMSUXefgnu",
	long: `abbrev abbrev-commit abbrev-ref absolute-git-dir after after-context ahead-behind all all-match always ancestry-path anchored and
		annotate-stdin author author-date-order base basic-regexp batch batch-all-objects
		batch-check batch-command before before-context binary bisect
		bisect-all bisect-vars boundary branch branches break break-rewrites broken buffer cached candidates cc check cherry cherry-mark
		cherry-pick children clear-decorations color color-by-age color-lines color-moved color-moved-ws color-words column
		combined-all-paths commit-header committer compact-summary contains context count cumulative date date-order debug decorate
		decorate-refs decorate-refs-exclude deduplicate default deleted dense dereference diff-algorithm diff-filter diff-merges directory
		dirstat dirstat-by-file dirty disambiguate disk-usage do-walk dst-prefix email empty-directory encoding eol error-unmatch exact-match exclude
		exclude-existing exclude-first-parent-only exclude-from exclude-hidden exclude-per-directory exclude-promisor-objects
		exclude-standard exit-code expand-tabs ext-grep extended-regexp files-with-matches files-without-match filter filter-print-omitted
		filter-provided-objects find-copies find-copies-harder find-object find-renames first-parent fixed-strings flags follow
		follow-symlinks fork-point format full-diff full-history full-index full-name full-tree function-context git-common-dir git-dir
		git-path glob graph grep grep-reflog group hash head header heading heads histogram human-readable ignore-all-space
		ignore-blank-lines ignore-case ignore-cr-at-eol ignore-matching-lines ignore-missing ignore-rev ignore-revs-file ignore-space-at-eol
		ignore-space-change ignore-submodules ignored in-commit-order incremental indent-heuristic independent index indexed-objects
		inter-hunk-context invert-grep invert-match irreversible-delete is-ancestor is-bare-repository is-inside-git-dir is-inside-work-tree
		is-shallow-repository ita-invisible-in-index ita-visible-in-index keep-dashdash killed left-only left-right line-number
		line-porcelain line-prefix local-env-vars log-size long mailmap match max-age max-count max-depth max-parents merge merge-base merges min-age
		min-parents minimal missing modified name-only name-status not notes null numbered numstat object-names object-only objects
		objects-edge objects-edge-aggressive octopus oneline only-matching or others ours output-indicator-context output-indicator-new
		output-indicator-old parents patch patch-with-raw patch-with-stat path path-format patience peel-tag perl-regexp pickaxe-all pickaxe-regex
		porcelain prefix pretty progress quiet raw recursive reflog refs regexp-ignore-case relative relative-date remotes remove-empty
		rename-empty renames resolve-git-dir resolve-undo reverse revs-only right-only root rotate-to score-debug shared-index-path short shortstat
		show-cdup show-email show-function show-linear-break show-name show-notes show-number show-object-format show-prefix show-pulls
		show-stash show-stats show-superproject-working-tree show-toplevel simplify-by-decoration simplify-merges since since-as-filter
		single-worktree skip skip-to source sparse sq src-prefix stage staged standard-notes stat stat-count stat-graph-width stat-name-width
		stat-width stdin stop-at-non-option stuck-long submodule summary symbolic symbolic-full-name tags text theirs threads timestamp topo-order
		undefined unified unmerged unordered unpacked until untracked untracked-files use-bitmap-index use-mailmap verbose verify walk-reflogs with-tree word-diff
		word-diff-regex word-regexp ws-error-highlight no-[a-z-]+`,
}.pattern()

// gitRunsBy are arguments that may make git run a program although they fit
// gitLooks: a format for which it checks signatures, and an option of git grep
// behind letters that take a value elsewhere.
var gitRunsBy = newPattern(`%[-+ ]?G|^-[^-]*O`)

// gitNoLook are arguments of some subcommands that fit gitLooks and do what is
// left out there: --no-index and --untracked show files that are not of the
// repository, and others are short for --filters and --textconv.
var gitNoLook = map[string]pattern{
	"cat-file": newPattern(`^--(fi|te)`),
	"diff":     newPattern(`^--no-ind(ex?)?$`),
	"grep":     newPattern(`^--(no-ind(ex?)?|no-ex[a-z-]*|untr[a-z]*)$`),
}

// gitShows are the subcommands that show files of the working tree that are
// named. With two files git diff shows them wherever they are.
var gitShows = []string{"diff", "blame"}

// gitCommands are the other subcommands of git's own. Any other name is one of
// an alias or of a program, and nothing is known of it.
var gitCommands = strings.Fields(`add am annotate apply archive bundle bugreport check-attr check-ignore check-mailmap check-ref-format checkout
	checkout-index cherry cherry-pick clean clone column commit commit-graph commit-tree config credential diff-files diff-index diff-tree
	diagnose fast-export fast-import fetch fetch-pack for-each-ref format-patch fsck gc get-tar-commit-id hash-object help index-pack init
	init-db interpret-trailers ls-remote mailinfo mailsplit maintenance merge merge-base merge-file merge-index merge-tree mktag mktree mv
	notes pack-objects pack-refs patch-id prune prune-packed pull push range-diff read-tree rebase reflog repack replace request-pull rerere
	reset restore revert rm send-email send-pack show-branch show-index sparse-checkout stage stripspace submodule switch symbolic-ref
	unpack-file unpack-objects update-index update-ref update-server-info var verify-commit verify-pack verify-tag version whatchanged
	worktree write-tree`)

// gitValues are the options before a subcommand that take a word of their own.
var gitValues = []string{"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--config-env", "--attr-source", "--list-cmds"}

// gitSafe are the settings that make git run nothing, as [settings] takes them.
var gitSafe = settings(`advice.* color.* column.* user.email user.name safe.directory i18n.commitEncoding init.defaultBranch gc.auto protocol.version
	core.abbrev core.autocrlf core.compression core.fileMode core.ignoreCase core.longPaths core.precomposeUnicode core.quotePath core.safecrlf
	core.symlinks commit.gpgSign=false commit.gpgSign=no commit.gpgSign=0 commit.status commit.verbose
	diff.algorithm diff.context diff.mnemonicPrefix diff.noprefix diff.renameLimit diff.renames diff.wsErrorHighlight
	http.lowSpeedLimit http.lowSpeedTime http.postBuffer http.version log.abbrevCommit log.date log.decorate log.showSignature=false
	merge.autoStash merge.conflictStyle merge.ff merge.renames rebase.autoSquash rebase.autoStash
	fetch.prune pull.ff pull.rebase push.default push.gpgSign=false push.gpgSign=no push.gpgSign=0 status.branch status.renames status.short
	tag.forceSignAnnotated=false tag.gpgSign=false tag.gpgSign=no tag.gpgSign=0`)

// gitRuns are the settings whose value is a command line.
var gitRuns = settings(`core.askPass core.editor core.fsmonitor core.gitProxy core.pager core.sshCommand credential.*helper diff.external
	gpg.*program pager.* remote.*.receivepack remote.*.uploadpack sequence.editor
	*.clean *.cmd *.command *.driver *.process *.smudge *.textconv`)

// settings is the pattern of settings of git by their names, of which the case
// does not count and * is any text. A name with a value means that one alone.
func settings(list string) pattern {
	return sync.OnceValue(func() *regexp.Regexp {
		names := strings.ReplaceAll(regexp.QuoteMeta(list), `\*`, `.*`)
		return regexp.MustCompile(`(?i)^(` + strings.Join(strings.Fields(names), "|") + `)(=|$)`)
	})
}

func (r *reader) git(args []word, harmless bool, dirs []string) bool {
	sub, operands := r.gitOptions(args, dirs)
	if only, ok := gitReads[sub]; ok && args[0].text == sub && harmless && fits(sub, only, operands) && r.quietGit(dirs) {
		r.gitFiles(sub, operands, dirs)
		r.looksByGit = true
		return true
	}
	r.atLeast(event.RiskExecute)
	r.given(args, dirs)
	if gitMoves(args[:len(args)-min(len(args), len(operands)+1)]) {
		r.gitContents(sub, operands, false, []string{anywhere})
	} else {
		r.gitContents(sub, operands, false, dirs)
	}
	switch sub {
	case "":
	case "config":
		writes := !showsConfig(operands)
		for _, a := range args {
			if a.text == "--global" || a.text == "--system" {
				r.path(word{text: "~/.gitconfig", computed: true}, dirs, event.PathUse{Write: writes})
			}
		}
		r.path(word{text: ".git/config"}, dirs, event.PathUse{Write: writes})
	case "clean", "reset", "restore", "checkout", "rm", "gc", "prune":
		r.atLeast(event.RiskDelete)
	case "push", "fetch", "pull", "clone", "ls-remote", "submodule", "send-email":
		r.atLeast(event.RiskSend)
	}
	r.gitRunsMore(sub, operands, dirs)
	return false
}

// showsConfig reports whether git config only shows settings: its operands are an
// option that says so, others that are known to take no value, which could look like
// it, and then names. An option that is not known, or is computed, may take the first
// one back (--no-get).
func showsConfig(operands []word) bool {
	shows := false
	for _, a := range operands {
		switch {
		case a.computed:
			return false
		case a.is("-l", "--list", "--get", "--get-all", "--get-regexp", "--get-urlmatch"):
			shows = true
		case a.is("--global", "--system", "--local", "--worktree", "--bool", "--int", "--show-origin", "--show-scope", "--name-only", "--includes", "--no-includes", "-z", "--null"):
		case !shows, strings.HasPrefix(a.text, "-"):
			return false
		}
	}
	return shows
}

// fits reports whether a subcommand with these operands changes nothing. A stash
// without any changes the working tree.
func fits(sub string, only pattern, operands []word) bool {
	if sub == "stash" && len(operands) == 0 {
		return false
	}
	if only == nil {
		only = gitLooks
	}
	return !slices.ContainsFunc(operands, func(a word) bool {
		not := gitNoLook[sub]
		return !only.MatchString(a.text) || gitRunsBy.MatchString(a.text) || not != nil && not.MatchString(a.text)
	})
}

// gitFiles notes the files that a look of git reads because they are named.
func (r *reader) gitFiles(sub string, operands []word, dirs []string) {
	r.optionFiles("git "+sub, operands, dirs)
	r.gitContents(sub, operands, true, dirs)
	if slices.Contains(gitShows, sub) {
		r.operandFiles(operands, dirs)
	}
}

// gitMoves reports whether git may look at another directory than the one where
// it runs, because of the options before its subcommand.
func gitMoves(options []word) bool {
	for i, a := range options {
		if value := i > 0 && options[i-1].is("-c"); !value && !a.is("-c", "-p", "-P", "--paginate", "--no-pager", "--no-optional-locks") {
			return true
		}
	}
	return false
}

// gitContents notes the files that a subcommand of git may show.
func (r *reader) gitContents(sub string, operands []word, look bool, dirs []string) {
	if sub == "grep" {
		r.gitGreps(operands, dirs)
	}
	r.gitShown(sub, operands, look, dirs)
}

// gitOptions reads the options before the subcommand, and gives that and what
// follows it.
func (r *reader) gitOptions(args []word, dirs []string) (sub string, operands []word) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.computed:
			r.unclear("which command of git " + trim(a.text) + " is, is computed when it runs")
			return "", nil
		case a.text == "-c" && i+1 < len(args):
			i++
			r.gitSetting(args[i], dirs)
		case strings.HasPrefix(a.text, "--config-env"):
			r.unclear("git takes a setting from a variable")
			i++
		case strings.HasPrefix(a.text, "--exec-path="):
			r.unclear("git looks for its own programs in another place")
		case slices.Contains(gitValues, a.text):
			i++
		case strings.HasPrefix(a.text, "-"):
		default:
			return a.text, args[i+1:]
		}
	}
	return "", nil
}

// gitSetting reads the setting of git -c: an alias and a program to run are
// command lines.
func (r *reader) gitSetting(w word, dirs []string) {
	key, value, _ := strings.Cut(w.text, "=")
	switch {
	case w.computed:
		r.unclear("what git is set to, is computed when it runs")
	case strings.HasPrefix(strings.ToLower(key), "alias."):
		command, isShell := strings.CutPrefix(value, "!")
		if !isShell {
			command = "git " + value
		}
		r.nested(word{text: command}, dirs, r.depth)
	case gitRuns.MatchString(key):
		r.nested(word{text: strings.TrimPrefix(value, "!")}, dirs, r.depth)
	case !gitSafe.MatchString(w.text):
		r.unclear("it sets git's " + trim(key) + ", which may make it run something")
	}
}

// gitRunsMore reads the command lines that subcommands run themselves, and asks
// about a subcommand that nobody knows.
func (r *reader) gitRunsMore(sub string, operands []word, dirs []string) {
	switch sub {
	case "bisect":
		switch {
		case len(operands) == 0 || !operands[0].computed && operands[0].text != "run":
		case len(operands) == 1 || operands[0].computed:
			r.unclear("what git bisect runs is not known before it runs")
		default:
			r.simple(operands[1:], dirs, r.depth)
		}
	case "submodule":
		if slices.ContainsFunc(operands, func(a word) bool { return a.text == "foreach" }) {
			r.forEach(operands, dirs)
		}
	case "rebase", "difftool":
		for _, command := range optionValues(operands, "-x") {
			r.nested(command, dirs, r.depth)
		}
	case "clone":
		for _, setting := range optionValues(operands, "-c", "--config") {
			r.gitSetting(setting, dirs)
		}
	default:
		if _, reads := gitReads[sub]; !reads && sub != "" && !slices.Contains(gitCommands, sub) {
			r.unclear("git " + trim(sub) + " may be an alias of anything")
		}
	}
}

// forEach reads the command of git submodule foreach: one word is a command
// line, several are a command.
func (r *reader) forEach(operands []word, dirs []string) {
	rest := operands
	for len(rest) > 0 && (strings.HasPrefix(rest[0].text, "-") || rest[0].text == "foreach") {
		rest = rest[1:]
	}
	switch len(rest) {
	case 0:
	case 1:
		r.nested(rest[0], dirs, r.depth)
	default:
		r.simple(rest, dirs, r.depth)
	}
}
