package resolve_test

import (
	"testing"

	"github.com/pawlrun/pawl/event"
)

// Only options that are known keep a program from counting as one that may do
// anything: a newer version may have others.
func TestAnOptionThatIsNotKnownMayDoAnything(t *testing.T) {
	_, ws := tree(t, "a", "b")
	for line, looks := range map[string]bool{
		"sort -k2,2n -t: -u a": true, "sort --key=2 --unique a": true, "sort -": true,
		"sort -ob a": false, "sort --outp=b a": false, "sort --o=b a": false, "sort --te=. a": false, "sort --co=./x a": false, "sort --new a": false, "sort -T. a": false,
		"find . ( -name *.go -o -perm -u+x ) -size -10k -newermt 2020":             false, // a subshell
		`find . \( -name '*.go' -o -perm -u+x \) -size -10k -newermt 2020 -print0`: true, "find -L . -maxdepth 2 ! -empty": true,
		"find . -fprint b": false, "find . -files0-from a": false, "find . -new-action": false,
		"rg -n --glob '*.go' -C3 x": true, "rg -g'*.go' -tgo x": true, "rg --files": true,
		"rg -z x": false, "rg -nz x": false, "rg --search-zip x": false, "rg --pr=./x y": false, "rg --hostname-bin=./x y": false, "rg --new y": false,
		"tree -L 2 -a": true, "tree -o b": false, "tree -ao b": false, "tree -R": false,
		"file -bi a": true, "file -z a": false, "file -C": false, "file --magic-file=b a": false, "file --uncompress a": false,
		"date -u +%F": true, "date -Iseconds": true, "date 010100002030": false, "date -s now": false, "date --set=now": false,
		"jq -r .x a": true, "jq -f b a": false, "jq -L. .x a": false,
		"arch": true, "arch -x86_64 rm a": false, "hostname": true, "hostname b": false,
		"git log --oneline -n5 -p -- a": true, "git diff --stat --no-color HEAD~1": true, "git grep -n -e x": true, "git show --no-textconv HEAD": true,
		"git log --outp=b": false, "git log --format=%G? a": false, "git log --format=%+GS": false, "git log --show-signature": false, "git diff --ext-diff": false,
		"git grep -nO./x y": false, "git grep --open=./x y": false, "git log --alternate-refs": false, "git log --help": false, "git log --new": false,
		"git cat-file --textconv HEAD:a": false, "git cat-file -p HEAD": true, "git blame -L1,2 a": true,
		"git diff --no-index /dev/null .env": false, "git grep --no-index TOKEN": false, "git grep --no-ind TOKEN": false, "git grep --untracked x": false,
		"git grep --no-exclude-standard x": false, "git blame --contents .env a": false,
		"git cat-file --filter HEAD:a": false, "git cat-file --text HEAD:a": false,
		"uniq -c": true, "uniq -f1 -": true, "uniq --count": true, "uniq a": false,
		"uniq - b": false, "uniq -- - b": false, "uniq -- a -b": false, "uniq a -c": false, "uniq -c 1 b": false, "uniq -new a": false,
		"xxd - b": false, "xxd -- a -b": false, "xxd -capitalize a b": false, "xxd -r a": false, "xxd --revert a": false, "xxd -c a b c": false,
		"wait 12": true, "wait $x": false,
	} {
		if f := ws.Shell(line); (f.Risk == event.RiskRead) != looks {
			t.Errorf("%s is %s, and only looks: %t (%v)", line, f.Risk, looks, f.Unclear)
		}
	}
}
