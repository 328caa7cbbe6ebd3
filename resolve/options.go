package resolve

import (
	"regexp"
	"strings"
	"sync"
)

// options are the arguments of a program that are known to do no harm. An
// option that is not among them may be one of a newer version that writes or
// runs something, and a long one must be written out, so that an abbreviation
// stands for none that is not here.
type options struct {
	// flags are the short options without a value, which may stand together in
	// one word; values those that take what follows, in the same word or the next.
	flags, values string
	// long are the long options, with a value or without, and words those of
	// find, which begin with one "-".
	long, words string
	// more is the pattern of further words.
	more string
	// alone says that there are no operands: by default every word is one that
	// does not begin with "-".
	alone bool
}

// pattern matches each word that does no harm.
func (o options) pattern() pattern {
	return sync.OnceValue(func() *regexp.Regexp {
		all := []string{"--?"}
		if !o.alone {
			all = append(all, "|[^-].*")
		}
		if o.flags != "" {
			all = append(all, "|-["+o.flags+"]+")
		}
		if o.values != "" {
			all = append(all, "|-["+o.flags+"]*["+o.values+"].*")
		}
		if o.long != "" {
			all = append(all, "|--("+strings.Join(strings.Fields(o.long), "|")+")(=.*)?")
		}
		if o.words != "" {
			all = append(all, "|-("+strings.Join(strings.Fields(o.words), "|")+")")
		}
		if o.more != "" {
			all = append(all, "|"+o.more)
		}
		return regexp.MustCompile(`(?s)^(` + strings.Join(all, "") + `)$`)
	})
}

// lookOptions are the programs that change nothing as long as all their
// arguments are known to do no harm.
var lookOptions = map[string]pattern{
	"find": options{flags: "HLPd", more: `-[0-9].*|-O[0-3]|-[ugoa]*[-+=][-+=,ugoarwxXst]*|-newer[aBcm][aBcmt]`, words: `
		name iname path ipath wholename iwholename regex iregex regextype type xtype size empty newer anewer cnewer mtime mmin atime amin
		ctime cmin used user group uid gid nouser nogroup perm readable writable executable links inum samefile lname ilname fstype context
		maxdepth mindepth depth mount xdev daystart follow noleaf warn nowarn ignore_readdir_race noignore_readdir_race prune print print0
		printf ls quit true false not and or a o`}.pattern(),
	"rg": options{flags: "abcFHhiIlLnNopPqsSuUvVwx0.", values: "ABCdefEgjmMrtT", long: `after-context before-context context binary block-buffered
		byte-offset case-sensitive color colors column no-column context-separator count count-matches crlf debug dfa-size-limit encoding
		engine field-context-separator field-match-separator file files files-with-matches files-without-match fixed-strings follow glob
		glob-case-insensitive heading no-heading help hidden no-hidden iglob ignore-case ignore-file include-zero invert-match json
		line-buffered line-number no-line-number line-regexp max-columns max-columns-preview max-count max-depth maxdepth max-filesize mmap
		no-mmap multiline multiline-dotall no-config no-ignore no-ignore-dot no-ignore-exclude no-ignore-files no-ignore-global
		no-ignore-messages no-ignore-parent no-ignore-vcs no-messages no-unicode null null-data one-file-system only-matching
		passthru path-separator pcre2 pcre2-version pretty quiet regex-size-limit regexp replace smart-case sort sortr stats
		stop-on-nonmatch text threads trim type type-not type-add type-clear type-list unrestricted version vimgrep with-filename
		no-filename word-regexp`}.pattern(),
	"sort": options{flags: "bcCdfghiMmnRrsuVz", values: "kSt", long: `ignore-leading-blanks dictionary-order ignore-case general-numeric-sort
		ignore-nonprinting month-sort human-numeric-sort numeric-sort random-sort random-source reverse sort version-sort batch-size check
		debug key merge stable buffer-size field-separator parallel unique zero-terminated help version`}.pattern(),
	"tree": options{flags: "aACdDfFghiIJlLnNpPqQrsStuUvxX", long: `dirsfirst filelimit filesfirst gitignore ignore-case inodes matchdirs metafirst
		noreport nolinks prune si du sort charset device timefmt help version`}.pattern(),
	"file": options{flags: "0bdEhikLlNnprsSv", values: "eF", long: `apple brief dereference extension keep-going mime mime-encoding mime-type no-buffer
		no-dereference no-pad preserve-date print0 raw separator special-files help version`}.pattern(),
	"date": options{alone: true, flags: "uR", more: `\+.*|-I[a-z]*|-[dr].+|--(date|reference|rfc-3339)=.*|--(utc|universal|rfc-email|iso-8601|help|version)(=.*)?`}.pattern(),
	"jq": options{flags: "acCehjMnrRsS", long: `arg argjson args jsonargs slurpfile rawfile ascii-output color-output monochrome-output compact-output
		exit-status help indent join-output null-input raw-input raw-output slurp sort-keys stream tab unbuffered`}.pattern(),
	"uniq": options{flags: "0123456789cdDiuz", values: "fsw", long: `count repeated all-repeated skip-fields group ignore-case skip-chars unique
		zero-terminated check-chars help version`}.pattern(),
	"xxd": options{more: `--?(a|autoskip|b|bits|C|capitalize|d|e|E|EBCDIC|h|help|i|include|p|ps|postscript|plain|u|upper|v|version)|` +
		`--?(c|cols|g|groupsize|l|len|o|offset|s|seek|skip)|-[cglos][0-9]+`}.pattern(),
	"read": options{alone: true, flags: "ers", more: `[a-z_0-9]*|-[dnNtpu]|-[ers]*[nNtu][0-9.]+`}.pattern(),
	"set":  options{alone: true, flags: "abCefmnuvxo", more: `\+[abCefmnuvxo]+|pipefail|errexit|nounset|noglob|noclobber|xtrace|verbose`}.pattern(),
}
